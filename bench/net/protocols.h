// protocols.h: the protocols of the load generator, by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/net/protocol.h"

namespace skep::bench {

// Returns null if there is no such protocol.
std::unique_ptr<NetProtocol> MakeNetProtocol(std::string_view name, const NetFormat& format);

std::vector<std::string> NetProtocolNames();

}  // namespace skep::bench

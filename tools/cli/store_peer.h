// store_peer.h: exports and imports over the packed protocol.
#pragma once

#include <memory>
#include <string>

#include "tools/dump_peer.h"

namespace skep::cli {

std::unique_ptr<DumpPeer> ConnectStorePeer(const ServerAddress& server, std::string* problem);

}  // namespace skep::cli

// store_link.h: connects the tools to a server as a store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "skep/store.h"
#include "tools/server_client.h"

namespace skep::cli {

// Connects and logs in, over the packed protocol. On failure returns null; *problem is a line for
// people.
std::unique_ptr<Store> ConnectStore(const ServerAddress& server, std::string* problem);

// Returns whether there is such a keyspace. The server told when the connection was made; nothing
// is sent.
bool HasKeyspace(Store& store, uint64_t keyspace);
inline constexpr std::string_view kNoSuchKeyspace = "ERR DB index is out of range";

}  // namespace skep::cli

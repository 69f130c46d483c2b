// store_link.h: a server as a store, for the tools.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "skep/store.h"
#include "tools/server_client.h"

namespace skep::cli {

// Connects and logs in, over the packed protocol. Null: *problem is a line for a person.
std::unique_ptr<Store> ConnectStore(const ServerAddress& server, std::string* problem);

// Whether there is such a keyspace. The server has told at the beginning; nothing is asked.
bool HasKeyspace(Store& store, uint64_t keyspace);
inline constexpr std::string_view kNoSuchKeyspace = "ERR DB index is out of range";

}  // namespace skep::cli

#include "tools/cli/store_link.h"

#include <fmt/format.h>

namespace skep::cli {

std::unique_ptr<Store> ConnectStore(const ServerAddress& server, std::string* problem) {
  auto store = Store::Connect({.address = server.ToAddress(), .password = server.password});
  if (store) return std::move(*store);
  *problem = fmt::format("{}: {}", server.ToString(), store.error().ToString());
  return nullptr;
}

bool HasKeyspace(Store& store, uint64_t keyspace) {
  Batch nothing;
  return keyspace <= UINT32_MAX && store.Execute(nothing, static_cast<uint32_t>(keyspace)).ok();
}

}  // namespace skep::cli

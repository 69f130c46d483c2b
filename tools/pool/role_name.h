// role_name.h: what people call the roles of an index server.
#pragma once

#include <cstdint>
#include <string_view>

#include "pool/pool_map.h"

namespace skep {

inline std::string_view RoleName(const pool::PoolMap& map, uint32_t server) {
  if (server == map.hash_server) return map.sorted_server == 0 ? "both roles" : "hash server";
  return server == map.sorted_server ? "sorted server" : "no role";
}

}  // namespace skep

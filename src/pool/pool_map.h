// pool_map.h: who is what in a pool, as the coordinator has it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/network.h"
#include "pool/key_digest.h"

namespace skep::pool {

// Each process of a server has a number of its own, not 0, which no other one ever had. `epoch`
// rises with every change of the two roles, and each change is made by one versioned set: of two
// servers that want one, the coordinator takes one and refuses the other.
struct PoolMap {
  uint64_t epoch = 0;
  uint32_t hash_server = 0;
  uint32_t sorted_server = 0;  // 0: the hash server is solo, and has both roles
  std::map<uint32_t, Address> index_servers;
  std::map<uint32_t, Address> memory_servers;
  std::set<uint32_t> live_memory_servers;  // whose sessions last
  DigestKeys keys;

  friend bool operator==(const PoolMap&, const PoolMap&) = default;
};

// What one versioned set changes: the bytes of the node of the roles.
struct PoolRoles {
  uint64_t epoch = 0;
  uint32_t hash_server = 0;
  uint32_t sorted_server = 0;  // 0: the hash server is solo

  std::string Encode() const;
  // False: the bytes are none.
  static bool Decode(std::string_view bytes, PoolRoles* roles);
  friend bool operator==(const PoolRoles&, const PoolRoles&) = default;
};

}  // namespace skep::pool

// map_follower.h: who is what in a pool, as a session of the coordinator tells it.
//
//   /skep/POOL/keys            persistent   the digest keys, 4 x 8 bytes
//   /skep/POOL/roles           persistent   epoch, hash server, sorted server; set by versions only
//   /skep/POOL/index/ID        ephemeral    the address of an index server
//   /skep/POOL/memory/ID       ephemeral    the address of a memory server
//
// A follower reads all of it, leaves watches, and reads again what has changed. While the pool's
// root is not there, nothing can be watched: Refresh() is to be called now and then
// (wants_refresh()). The map that it gives is of no one instant; but the roles are one node, and
// whoever acts on them is refused if they were changed meanwhile (role_keeper.h). An index server
// whose node is gone stays in the map as long as it has a role, at its last address: clients go on
// with it as long as it goes on, which the leases decide (hash_role.h), not the map. One that is
// there and has no role is in the map, too: it may be given the state (state_transfer.h). A memory
// server stays for ever; whether its node is there is told apart.
//
// Thread safety: one owner, which passes all events of the session.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/coordinator.h"
#include "pool/pool_map.h"

namespace skep::pool {

// The names of a pool's nodes.
struct PoolPaths {
  explicit PoolPaths(std::string_view pool) : root("/skep/" + std::string(pool)) {}

  std::string keys() const { return root + "/keys"; }
  std::string roles() const { return root + "/roles"; }
  std::string index() const { return root + "/index"; }
  std::string index(uint32_t id) const { return index() + "/" + std::to_string(id); }
  std::string memory() const { return root + "/memory"; }
  std::string memory(uint32_t id) const { return memory() + "/" + std::to_string(id); }

  const std::string root;
};

class MapFollower {
 public:
  // Requests have tokens from `first_token` on, kTokens of them.
  static constexpr uint64_t kTokens = uint64_t{1} << 32;
  MapFollower(CoordinatorSession& session, std::string_view pool, uint64_t first_token);

  // Reads all again, if the session is connected.
  void Refresh();
  // Takes an event of the session. Whether something may have changed of what follows.
  bool Handle(const CoordinatorEvent& event);

  // What is known. epoch 0: there are no roles yet, or they were not read yet.
  const PoolMap& map() const { return map_; }
  const PoolRoles& roles() const { return roles_; }
  // The version of the node of the roles; -1: there is none, or it was not read yet.
  int32_t roles_version() const { return roles_version_; }
  // Whether everything that is there has been read since the session was connected last.
  bool is_complete() const { return unanswered_ == 0 && has_root_; }
  // Whether the pool's root was not there when it was asked for: Refresh() asks again.
  bool wants_refresh() const { return unanswered_ == 0 && !has_root_; }
  // The index servers whose nodes are there.
  const std::set<uint32_t>& live_index_servers() const { return live_index_; }
  bool has_keys() const { return has_keys_; }

 private:
  enum class What : uint8_t {
    kRoot,
    kKeys,
    kRoles,
    kIndexIds,
    kMemoryIds,
    kIndexAddress,
    kMemoryAddress
  };
  struct Asked {
    What what;
    uint32_t id = 0;
  };

  void Ask(What what, uint32_t id = 0);
  void Take(const Asked& asked, const CoordinatorEvent& event);
  void TakeRoot(const CoordinatorEvent& event);
  void TakeIds(const Asked& asked, const CoordinatorEvent& event);
  void LeaveOutTheGone();

  CoordinatorSession& session_;
  const PoolPaths paths_;
  uint64_t next_token_;
  std::map<uint64_t, Asked> asked_;  // by token; those that are answered stay for their watches
  std::set<std::string, std::less<>> known_;  // the root's children that are followed
  size_t unanswered_ = 0;
  bool has_root_ = false;

  PoolMap map_;
  PoolRoles roles_;
  int32_t roles_version_ = -1;
  bool has_keys_ = false;
  std::set<uint32_t> live_index_;
};

}  // namespace skep::pool

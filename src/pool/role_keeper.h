// role_keeper.h: gives one index server its roles: says that it is there, and takes a role when it
// may.
//
//   1  Makes the pool's nodes that are not there yet, and the ephemeral node of its own.
//   2  No roles yet: of two index servers that are there, the one with the lower number sets
//      {epoch 1, itself hash server, the other sorted server}.
//   3  This server has a role and the node of the other one is gone: it sets {epoch + 1, itself
//      hash server, nobody sorted server}, in the version that it has read.
//   4  This server is the hash server and wants other roles of the next epoch (Want): it sets them,
//      in the version that it has read.
//   5  The nodes of all servers that have a role are gone, and this server wants to go on with what
//      one of them had (Want; index_log.h): it sets the roles that it wants, of the next epoch, in
//      the version that it has read.
//   6  It passes every map to the index server, which takes what the map gives it (index_server.h).
//
// Safety. All changes of the roles are versioned sets of one node: of two servers that want one,
//   the service takes one and refuses the other (kStale), which reads what the roles are now and
//   finds itself without one. That the former hash server does not answer any more is not the
//   coordinator's business: its authority ends by its own clock (hash_role.h).
//   A set whose answer is lost may have been done or not: the roles are read again, and if they are
//   as they were, it is made again in the same version.
// Progress. A server that dies is noticed when its session ends. While the service does not answer
//   nothing changes: the two servers go on as they are.
// A server whose session has ended opens another one and makes its node again. If it has lost its
//   role meanwhile, it has none until it gets the state of another one (state_transfer.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/coordinator.h"
#include "base/random.h"
#include "pool/kept_session.h"
#include "pool/map_follower.h"
#include "pool/registration.h"

namespace skep::pool {

struct RoleKeeperOptions {
  std::string pool;
  // A number that no other server of the pool has or had, also not an earlier process of this one,
  // whose roles it must not be taken for: drawn at random, not 0.
  uint32_t id = 0;
  Address address;             // of this index server
  uint32_t session_ms = 1000;  // how long the service waits for a sign of life
  std::function<void()> wake;  // as CoordinatorSessionOptions::wake
};

class RoleKeeper {
 public:
  // `random` draws the digest keys of a new pool. All outlive it.
  RoleKeeper(Coordinator& coordinator, Clock& clock, Random& random, RoleKeeperOptions options);

  // The roles that the index server wants to be set; nothing: the present ones. What was wanted
  // before and is no more may be set yet, or not: the map tells.
  void Want(const std::optional<PoolRoles>& roles) { wanted_ = roles; }
  // Does what is due. True: the map has changed; map() is to be passed on.
  bool Turn();
  // Whether the coordinator knows that this server is there, as far as was heard.
  bool is_registered() const { return registration_ != nullptr && registration_->is_done(); }
  // epoch 0: not known yet.
  const PoolMap& map() const { return map_; }

 private:
  enum Token : uint64_t { kMakeKeys = 1, kSetRoles, kRegister, kFollow = 1 << 10 };

  void FollowSession(CoordinatorSession* session);
  void Handle(const CoordinatorEvent& event);
  void MakeKeys();
  void WantRoles();
  void SetRoles(const PoolRoles& roles);
  bool TakeMap();

  Random& random_;
  const RoleKeeperOptions options_;
  const PoolPaths paths_;
  KeptSession session_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<MapFollower> follower_;
  PoolMap map_;
  std::optional<PoolRoles> wanted_;
  bool is_setting_ = false;  // a set of the roles is under way
};

}  // namespace skep::pool

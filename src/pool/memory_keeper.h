// memory_keeper.h: tells a pool that one memory server is there: keeps its node at the coordinator
// (map_follower.h), and makes it again in a new session when one has ended.
//
// Nothing else hangs on the node: a memory server whose session has ended goes on serving those who
// know it, and a client that starts meanwhile learns of it when the node is there again.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/coordinator.h"
#include "pool/kept_session.h"
#include "pool/registration.h"

namespace skep::pool {

struct MemoryKeeperOptions {
  std::string pool;
  // As RoleKeeperOptions::id.
  uint32_t id = 0;
  Address address;  // of the memory server
  uint32_t session_ms = 1000;
  std::function<void()> wake;  // as CoordinatorSessionOptions::wake
};

class MemoryKeeper {
 public:
  // Both outlive it.
  MemoryKeeper(Coordinator& coordinator, Clock& clock, MemoryKeeperOptions options);

  // Does what is due.
  void Turn();
  // Whether the node is there, as far as was heard.
  bool is_registered() const { return registration_ != nullptr && registration_->is_done(); }

 private:
  void FollowSession(CoordinatorSession* session);

  const MemoryKeeperOptions options_;
  KeptSession session_;
  std::unique_ptr<Registration> registration_;
};

}  // namespace skep::pool

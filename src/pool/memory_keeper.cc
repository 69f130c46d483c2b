#include "pool/memory_keeper.h"

#include "pool/map_follower.h"

namespace skep::pool {

MemoryKeeper::MemoryKeeper(Coordinator& coordinator, Clock& clock, MemoryKeeperOptions options)
    : options_(std::move(options)),
      session_(coordinator, clock, {.timeout_ms = options_.session_ms, .wake = options_.wake},
               [this](CoordinatorSession* session) { FollowSession(session); }) {}

void MemoryKeeper::FollowSession(CoordinatorSession* session) {
  registration_.reset();
  if (session == nullptr) return;
  registration_ = std::make_unique<Registration>(
      *session, PoolPaths(options_.pool).memory(options_.id), options_.address, 1);
}

void MemoryKeeper::Turn() {
  const bool is_due = session_.Turn();
  if (session_.get() == nullptr) return;
  for (const CoordinatorEvent& event : session_.get()->TakeEvents()) registration_->Handle(event);
  if (is_due && session_.is_connected()) registration_->Want();
}

}  // namespace skep::pool

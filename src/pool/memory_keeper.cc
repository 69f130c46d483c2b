#include "pool/memory_keeper.h"

#include "pool/map_follower.h"

namespace skep::pool {

MemoryKeeper::MemoryKeeper(Coordinator& coordinator, Clock& clock, MemoryKeeperOptions options)
    : coordinator_(coordinator), clock_(clock), options_(std::move(options)) {}

// A session that cannot be opened now is opened later.
void MemoryKeeper::OpenSession() {
  registration_.reset();
  session_.reset();
  auto session = coordinator_.Open({.timeout_ms = options_.session_ms, .wake = options_.wake});
  if (!session) return;
  session_ = std::move(*session);
  registration_ = std::make_unique<Registration>(
      *session_, PoolPaths(options_.pool).memory(options_.id), options_.address, 1);
}

void MemoryKeeper::Turn() {
  const uint64_t now = clock_.MonotonicNs();
  const bool is_due = now >= retry_ns_;
  if (is_due) retry_ns_ = now + kRetryNs;
  const bool is_over =
      session_ == nullptr || session_->state() == CoordinatorSession::State::kExpired;
  if (is_over && is_due) OpenSession();
  if (session_ == nullptr) return;
  for (const CoordinatorEvent& event : session_->TakeEvents()) registration_->Handle(event);
  if (is_due && session_->state() == CoordinatorSession::State::kConnected) registration_->Want();
}

}  // namespace skep::pool

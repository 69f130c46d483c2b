#include "pool/memory_keeper.h"

namespace skep::pool {

MemoryKeeper::MemoryKeeper(Coordinator& coordinator, Clock& clock, MemoryKeeperOptions options)
    : coordinator_(coordinator),
      clock_(clock),
      options_(std::move(options)),
      paths_(options_.pool) {}

// A session that cannot be opened now is opened later.
void MemoryKeeper::OpenSession() {
  session_.reset();
  is_registered_ = false;
  auto session = coordinator_.Open({.timeout_ms = options_.session_ms, .wake = options_.wake});
  if (session) session_ = std::move(*session);
}

void MemoryKeeper::Turn() {
  const uint64_t now = clock_.MonotonicNs();
  const bool is_due = now >= retry_ns_;
  if (is_due) retry_ns_ = now + kRetryNs;
  const bool is_over =
      session_ == nullptr || session_->state() == CoordinatorSession::State::kExpired;
  if (is_over && is_due) OpenSession();
  if (session_ == nullptr) return;
  for (const CoordinatorEvent& event : session_->TakeEvents()) {
    if (event.kind != CoordinatorEvent::Kind::kAnswer || event.token != kRegister) continue;
    is_registered_ = event.outcome == CoordinatorOutcome::kDone;
  }
  const bool is_connected = session_->state() == CoordinatorSession::State::kConnected;
  if (is_connected && is_due && !is_registered_) MakeNodes();
}

// Those that are there already stay as they are. A node of this number that an earlier session has
// left is gone soon.
void MemoryKeeper::MakeNodes() {
  session_->Create(kMake, "/skep", "", CoordinatorNode::kPersistent);
  session_->Create(kMake, paths_.root, "", CoordinatorNode::kPersistent);
  session_->Create(kMake, paths_.memory(), "", CoordinatorNode::kPersistent);
  session_->Create(kRegister, paths_.memory(options_.id), options_.address,
                   CoordinatorNode::kEphemeral);
}

}  // namespace skep::pool

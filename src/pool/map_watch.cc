#include "pool/map_watch.h"

#include <chrono>

namespace skep::pool {

MapWatch::MapWatch(Coordinator& coordinator, Clock& clock, const std::string& pool,
                   uint32_t session_ms)
    : coordinator_(coordinator),
      clock_(clock),
      pool_(pool),
      session_ms_(session_ms),
      thread_([this] { Run(); }) {}

MapWatch::~MapWatch() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  // It may wake the thread that is gone until it has ended.
  follower_.reset();
  session_.reset();
}

MapWatch::View MapWatch::view() const {
  const MutexLock lock(mutex_);
  return view_;
}

PoolMap MapWatch::map() const {
  const MutexLock lock(mutex_);
  return view_.map;
}

bool MapWatch::AwaitRoles(uint32_t timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  const MutexLock lock(mutex_);
  while (view_.map.epoch == 0) {
    if (!changed_.WaitUntil(mutex_, until)) return view_.map.epoch != 0;
  }
  return true;
}

void MapWatch::Wake() {
  const MutexLock lock(mutex_);
  is_woken_ = true;
  changed_.NotifyAll();
}

void MapWatch::Run() {
  MutexLock lock(mutex_);
  while (!stops_) {
    {
      const MutexUnlock unlock(mutex_);
      Turn();
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPauseMs);
    while (!is_woken_ && !stops_ && changed_.WaitUntil(mutex_, until)) {
    }
    is_woken_ = false;
  }
}

void MapWatch::Turn() {
  const uint64_t now = clock_.MonotonicNs();
  const bool is_due = now >= retry_ns_;
  if (is_due) retry_ns_ = now + uint64_t{kPauseMs} * 1'000'000;
  const bool is_over =
      session_ == nullptr || session_->state() == CoordinatorSession::State::kExpired;
  if (is_over && is_due) OpenSession();
  if (session_ == nullptr) return;
  for (const CoordinatorEvent& event : session_->TakeEvents()) follower_->Handle(event);
  if (is_due && follower_->wants_refresh()) follower_->Refresh();
  Publish();
}

void MapWatch::OpenSession() {
  follower_.reset();
  session_.reset();
  auto session = coordinator_.Open({.timeout_ms = session_ms_, .wake = [this] { Wake(); }});
  if (!session) return;
  session_ = std::move(*session);
  follower_ = std::make_unique<MapFollower>(*session_, pool_, 1);
}

// What was read once stays until it is read anew.
void MapWatch::Publish() {
  const MutexLock lock(mutex_);
  view_.is_connected = session_->state() == CoordinatorSession::State::kConnected;
  if (!follower_->is_complete() || !follower_->has_keys()) return;
  if (follower_->map() == view_.map) return;
  view_.map = follower_->map();
  changed_.NotifyAll();
}

}  // namespace skep::pool

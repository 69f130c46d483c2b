#include "pool/map_watch.h"

#include <chrono>

namespace skep::pool {

MapWatch::MapWatch(Coordinator& coordinator, Clock& clock, const std::string& pool,
                   uint32_t session_ms)
    : pool_(pool),
      session_(coordinator, clock, {.timeout_ms = session_ms, .wake = [this] { Wake(); }},
               [this](CoordinatorSession* session) { FollowSession(session); }),
      thread_([this] { Run(); }) {}

MapWatch::~MapWatch() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
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
  const bool is_due = session_.Turn();
  if (session_.get() == nullptr) return;
  for (const CoordinatorEvent& event : session_.get()->TakeEvents()) follower_->Handle(event);
  if (is_due && follower_->wants_refresh()) follower_->Refresh();
  Publish();
}

void MapWatch::FollowSession(CoordinatorSession* session) {
  follower_.reset();
  if (session != nullptr) follower_ = std::make_unique<MapFollower>(*session, pool_, 1);
}

// What was read once stays until it is read anew.
void MapWatch::Publish() {
  const MutexLock lock(mutex_);
  view_.is_connected = session_.is_connected();
  if (!follower_->is_complete() || !follower_->has_keys()) return;
  if (follower_->map() == view_.map) return;
  view_.map = follower_->map();
  changed_.NotifyAll();
}

}  // namespace skep::pool

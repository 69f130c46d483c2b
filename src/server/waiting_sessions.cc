#include "server/waiting_sessions.h"

#include <algorithm>
#include <utility>

namespace skep {

bool WaitingSessions::Wait(Session& session, std::shared_ptr<KeyWaiter> waiter,
                           const KeyWaiters::Execute& execute) {
  waiter->client = session.info;
  waiter->inbox = inbox_;
  waiter->session = &session;
  if (waiters_.Begin(waiter, execute)) return true;
  if (waiter->deadline_ms != 0) {
    by_deadline_.emplace(std::pair(waiter->deadline_ms, session.info->id), &session);
  }
  session.waiter = std::move(waiter);
  session.info->waits.store(true, std::memory_order_relaxed);
  return false;
}

std::vector<Session*> WaitingSessions::TakeEnded(uint64_t now_ms) {
  std::vector<Session*> ended;
  for (const auto& waiter : inbox_->Take()) {
    if (waiter->session == nullptr) continue;  // it was closed meanwhile
    by_deadline_.erase({waiter->deadline_ms, waiter->client->id});
    ended.push_back(waiter->session);
  }
  while (!by_deadline_.empty() && by_deadline_.begin()->first.first <= now_ms) {
    Session* const session = by_deadline_.begin()->second;
    by_deadline_.erase(by_deadline_.begin());
    // A closed session's waiter has left. One that has ended a moment ago is in the inbox, and is
    // taken in the next turn.
    if (waiters_.Leave(*session->waiter, KeyWaiter::State::kTimedOut)) ended.push_back(session);
  }
  for (Session* const session : ended) {
    session->info->waits.store(false, std::memory_order_relaxed);
  }
  return ended;
}

int WaitingSessions::PatienceMs(uint64_t now_ms, int most_ms) const {
  if (by_deadline_.empty()) return most_ms;
  const uint64_t first_ms = std::max(by_deadline_.begin()->first.first, now_ms);
  return static_cast<int>(std::min<uint64_t>(first_ms - now_ms, static_cast<uint64_t>(most_ms)));
}

void WaitingSessions::DropClosed() {
  std::erase_if(by_deadline_, [](const auto& entry) { return entry.second->closed; });
}

}  // namespace skep

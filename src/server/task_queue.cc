#include "server/task_queue.h"

#include <algorithm>
#include <utility>

namespace skep {
namespace {

constexpr uint64_t kTasksNs = 500'000;  // for the tasks of all connections, in a turn
constexpr int kPatienceMs = 100;        // at most
constexpr uint64_t kScarceMemory = 8;   // scarce: less than limit / kScarceMemory is left
// How long a client may take nothing while memory is scarce: longer if more is left.
constexpr uint64_t kStalledMsMax = 5000;
constexpr uint64_t kStalledMsMin = 100;

}  // namespace

void TaskQueue::Add(Session& session) {
  ready_.push_back(&session);
  patience_ms_ = 0;
}

bool TaskQueue::PutsOff(Session& session) {
  if (session.port != nullptr || !turn_.HasWorked()) return false;
  session.put_off = true;
  put_off_.push_back(&session);
  return true;
}

Session* TaskQueue::TakePutOff() {
  if (put_off_.empty() || turn_.HasWorked()) return nullptr;
  Session* const session = put_off_.front();
  put_off_.pop_front();
  session->put_off = false;
  return session;
}

void TaskQueue::Step(const std::function<bool(Session&)>& step) {
  if (ready_.empty()) return;
  const uint64_t until_ns = clock_.MonotonicNs() + kTasksNs;
  const std::vector<Session*> ready = std::exchange(ready_, {});
  patience_ms_ = kPatienceMs;
  for (auto at = ready.begin(); at != ready.end(); ++at) {
    if (clock_.MonotonicNs() > until_ns) {
      // The tasks that were not reached come first in the next turn.
      patience_ms_ = 0;
      ready_.insert(ready_.begin(), at, ready.end());
      return;
    }
    Session* const session = *at;
    if (session->closed) continue;
    session->stalled =
        session->task->waits_for_reader() && session->unsent() > turn_.UnsentMax(*session);
    if (session->stalled) {
      stalled_.push_back(session);
    } else if (step(*session)) {
      ready_.push_back(session);
      patience_ms_ = std::min(patience_ms_, session->task->patience_ms());
    }
  }
}

void TaskQueue::Resume(Session& session) {
  std::erase(stalled_, &session);
  Add(session);
}

// A client that takes something now and then keeps its range, and so does one whose range holds
// nothing back, since giving that up would free nothing.
void TaskQueue::GiveUpStalledPins() {
  const MemoryBudget& budget = keyspaces_.budget();
  const uint64_t scarce = budget.limit() / kScarceMemory;
  if (stalled_.empty() || budget.HasRoomFor(scarce)) return;
  const uint64_t left = budget.limit() - std::min(budget.limit(), budget.used());
  const uint64_t patience_ms =
      std::max(kStalledMsMin, kStalledMsMax * left / std::max<uint64_t>(scarce, 1));
  std::erase_if(stalled_, [&](Session* session) {
    const bool takes_nothing =
        session->write_blocked && turn_.monotonic_ms() > session->taken_ms + patience_ms;
    if (!takes_nothing) return false;
    const Engine& engine = keyspaces_.at(session->keyspace);
    if (engine.Statistics().old_versions == 0) return false;
    session->task->GiveUpPin();
    return true;
  });
}

void TaskQueue::DropClosed() {
  const auto is_closed = [](const Session* session) { return session->closed; };
  std::erase_if(ready_, is_closed);
  std::erase_if(stalled_, is_closed);
  std::erase_if(put_off_, is_closed);
}

}  // namespace skep

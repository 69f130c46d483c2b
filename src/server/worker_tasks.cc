// What a worker does with commands that take many turns.
#include <algorithm>
#include <memory>
#include <utility>

#include "server/postponed_task.h"
#include "server/worker.h"

namespace skep {
namespace {

constexpr uint64_t kTasksNs = 500'000;  // for the tasks of all connections, in a turn
constexpr int kPatienceMs = 100;        // at most

}  // namespace

void Worker::StepTasks() {
  Clock& clock = state_.environment().clock;
  const uint64_t until_ns = clock.MonotonicNs() + kTasksNs;
  std::vector<Session*> tasks = std::exchange(tasks_, {});
  task_patience_ms_ = kPatienceMs;
  for (auto at = tasks.begin(); at != tasks.end(); ++at) {
    if (clock.MonotonicNs() > until_ns) {
      // The others come first in the next turn.
      task_patience_ms_ = 0;
      tasks_.insert(tasks_.begin(), at, tasks.end());
      return;
    }
    Session* const session = *at;
    session->stalled = session->unsent() > UnsentMax(*session);
    if (session->dead) continue;
    if (session->stalled) {
      stalled_tasks_.push_back(session);
      continue;
    }
    static const Command kNone{};
    Call call(state_, *this, *session, kNone, {});
    if (session->task->Step(call)) {
      tasks_.push_back(session);
      task_patience_ms_ = std::min(task_patience_ms_, session->task->patience_ms());
    } else {
      if (session->task->is_of_one_command()) session->CountSync();
      session->task.reset();
      if (session->port == nullptr) resumed_.push_back(session);
    }
    Queue(*session);
  }
}

// It is its turn at once.
void Worker::AddTask(Session& session) {
  tasks_.push_back(&session);
  task_patience_ms_ = 0;
}

// While a command of the session is pending it has no other task.
PostponedTask& Worker::TaskOf(Session& session) {
  if (session.task == nullptr) {
    session.task = std::make_unique<PostponedTask>(state_.keyspaces().budget());
    AddTask(session);
  }
  return static_cast<PostponedTask&>(*session.task);
}

// Its commands took their time: it goes on in the next turn.
void Worker::LetOthersGoFirst(Session& session) {
  if (session.port == nullptr && !session.dead) TaskOf(session);
}

// True: it waits for a turn that has time for it. False always for a datagram, which cannot wait.
bool Worker::PutsOff(Session& session) {
  if (session.port != nullptr || !HasWorked()) return false;
  session.put_off = true;
  put_off_.push_back(&session);
  return true;
}

// One of them goes on in each turn at least, since nothing is executed before.
void Worker::ResumePutOff() {
  while (!put_off_.empty() && !HasWorked()) {
    Session& session = *put_off_.front();
    put_off_.pop_front();
    session.put_off = false;
    if (!session.dead) DecodeKept(session);
  }
}

}  // namespace skep

// task_queue.h: sessions whose command takes many turns, or waits for a turn that has time for it.
//
//   ready     has a task that can do a piece. Each turn does pieces for half a millisecond, one for
//             each task; tasks that were not reached come first in the next turn
//   stalled   has a task that waits until the peer has read more
//   put off   has no task: its next command cannot be divided, and the turn has had its share of
//             work. First come, first served: at least one of them goes on in each turn
//
// A session with a task, or put off, reads no further command (Session::paused).
//
// Invariants. True between calls, except for closed sessions that are not dropped yet.
//   Q1  A session with a task is ready or stalled, not both. A session whose pin was given up while
//       it was stalled is neither until it is resumed.
//   Q2  A stalled session has Session::stalled, until its connection has sent enough.
//   Q3  session.put_off is true if and only if the session is listed as put off.
//
// Callers: the worker (worker.h) and the rooms that execute its commands.
// Thread safety: the owning worker only.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "keyspace/keyspaces.h"
#include "server/session.h"
#include "server/turn_context.h"

namespace skep {

class TaskQueue {
 public:
  // All arguments must outlive the queue.
  TaskQueue(Clock& clock, Keyspaces& keyspaces, const TurnContext& turn)
      : clock_(clock), keyspaces_(keyspaces), turn_(turn) {}

  // The session has got a task, whose first piece must be done at once.
  void Add(Session& session);
  // Whether the session has to wait for a turn that has time for it; if so, puts it off. Always
  // false for a datagram, which cannot wait.
  bool PutsOff(Session& session);
  // The next session that was put off and may go on; null if there is none, or the turn has had its
  // share of work.
  Session* TakePutOff();

  // Does a piece of every ready task. `step` does it for a session and returns whether the task
  // goes on; `step` also takes away a task that is done.
  void Step(const std::function<bool(Session&)>& step);
  // The peer of a session whose task was stalled has read enough.
  void Resume(Session& session);

  // Makes ranges whose clients do not read give up their versions while there is still some memory
  // left, so that no write is refused because of them.
  void GiveUpStalledPins();
  // Forgets the sessions that are closed.
  void DropClosed();

  bool has_ready() const { return !ready_.empty(); }
  bool has_put_off() const { return !put_off_.empty(); }
  // How long all ready tasks can wait.
  int patience_ms() const { return patience_ms_; }

 private:
  Clock& clock_;
  Keyspaces& keyspaces_;
  const TurnContext& turn_;
  std::vector<Session*> ready_;
  std::vector<Session*> stalled_;
  std::deque<Session*> put_off_;
  int patience_ms_ = 0;
};

}  // namespace skep

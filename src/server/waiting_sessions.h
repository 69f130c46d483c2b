// waiting_sessions.h: the sessions of one worker whose command waits for a key (key_waiters.h), and
// for how long they do.
//
//   Wait       a command has found nothing: its session waits, and reads no further command
//   TakeEnded  the sessions that need not wait any more: what they waited for has come, CLIENT
//              UNBLOCK has ended it, or the time is over. The worker makes their replies
//
// What a client sends while it waits is read and kept, up to kReadAheadMax bytes (session.h): so
// its worker learns that it has gone.
//
// Invariants. True between calls, except for closed sessions that are not dropped yet.
//   W1  A session has a waiter if and only if that is entered, or has ended and is in the inbox.
//   W2  by_deadline_ has every session whose waiter is entered and has a deadline.
//
// Callers: the worker and its rooms (worker.h).
// Thread safety: the owning worker only. Any thread may end a waiter: that wakes the poller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "server/key_waiters.h"
#include "server/session.h"

namespace skep {

class WaitingSessions {
 public:
  // The waiters must outlive this object.
  WaitingSessions(KeyWaiters& waiters, std::shared_ptr<Poller> poller)
      : waiters_(waiters), inbox_(std::make_shared<WaiterInbox>(std::move(poller))) {}

  // Fills in what the waiter needs of its session, and begins it. Returns true if it has ended: the
  // caller replies. Else the session waits.
  bool Wait(Session& session, std::shared_ptr<KeyWaiter> waiter,
            const KeyWaiters::Execute& execute);

  // Returns the sessions that wait no more; each has its waiter still, which has ended.
  std::vector<Session*> TakeEnded(uint64_t now_ms);
  // How long nothing ends by itself, at most `most_ms`.
  int PatienceMs(uint64_t now_ms, int most_ms) const;

  // Forgets the sessions that are closed, whose waiters have left (Connections::MarkClosed).
  void DropClosed();

 private:
  KeyWaiters& waiters_;
  const std::shared_ptr<WaiterInbox> inbox_;
  std::map<std::pair<uint64_t, uint64_t>, Session*> by_deadline_;  // and by the client's id
};

}  // namespace skep

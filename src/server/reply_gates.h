// reply_gates.h: what replies wait for, and how a worker learns that they need not wait any more.
//
// A reply may leave once the gate of its keyspace has released its ticket (release_gate.h):
//
//   Mark, ReplyTo  a reply is about to be encoded whose ticket is not released: its session is one
//                  that waits. Mark: all that is encoded from here on waits, in order. ReplyTo:
//                  this message of the packed protocol alone does, and is held aside
//   SyncIfDue      asks the log to sync what replies wait for. It lets a few turns pass, so that
//                  one sync serves what came meanwhile
//   StayAwake      nothing else is to be done: looks at the first gate for a moment, since the
//                  batch of another worker is mostly at its end; then asks the gates for a wake
//   Pass           which sessions waited; those whose gates are all released wait no more
//
// Invariants. True between calls.
//   G1  session.waiting is true if and only if the session is listed here.
//   G2  A listed session has a mark, or its PackedSession holds a reply, until the next Pass.
//   G3  Of every ticket that is not released, the gate was asked to wake the worker, or it is
//       listed in awaited_, and then the worker does not sleep (has_work).
//   G4  Of every ticket that waits for a sync, WantSync was called, or it is listed in unsynced_.
//
// Callers: commands and their tasks mark; the turn of the worker (worker.h) does the rest.
// Thread safety: the owning worker only. Releasing is any thread's: it wakes the poller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/network.h"
#include "engine/engine.h"
#include "server/session.h"

namespace skep {

class ReplyGates {
 public:
  explicit ReplyGates(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}

  // What is encoded for the session from here on waits until the engine has released the ticket.
  void Mark(Session& session, Engine& engine, Version ticket);
  // Where a message's reply goes, which waits until the engine has released the ticket, or synced
  // it: into what may be sent, or aside. Valid until the next call.
  std::string& ReplyTo(Session& session, Engine& engine, Version ticket, bool syncs);

  // Whether the worker has to look again without waiting for the network.
  bool has_work() const { return !awaited_.empty() || !unsynced_.empty(); }
  // Once a turn: syncs what replies wait for if nothing has come (`is_idle`), or if it has waited
  // for some turns. `sessions`: all of the worker.
  void SyncIfDue(bool is_idle, size_t sessions);
  // If any reply waits and nobody was asked to wake the worker: stays awake for a moment, and asks
  // if that was in vain. Called when there is nothing else to do.
  void StayAwake();
  // The sessions that waited since the last call; those that need not wait any more have
  // `waiting` false. What their PackedSessions held and may leave is appended to `out`.
  std::vector<Session*> Pass();

  // Forgets the sessions for which `is_dropped` holds.
  template <typename Predicate>
  void DropIf(Predicate is_dropped) {
    std::erase_if(waiting_, is_dropped);
  }

 private:
  struct Awaited {
    ReleaseGate* gate;
    Version ticket;
    bool operator==(const Awaited&) const = default;
  };
  struct Unsynced {
    Engine* engine;
    ReleaseGate* gate;
    Version ticket;
  };

  // Where a reply waits. If everything is synced before it is told, the other gate may have been
  // released further under another policy.
  static ReleaseGate& GateOf(Engine& engine, bool syncs) {
    return syncs || engine.syncs_to_release() ? engine.synced_gate() : engine.gate();
  }
  ReleaseGate* ClosedGate(Engine& engine, Version ticket, bool syncs);
  void Await(Session& session, ReleaseGate& gate, Version ticket);
  void NoteUnsynced(const Unsynced& unsynced);
  void Sync(size_t sessions);
  bool IsReleasedSoon();
  void ArrangeWakes();

  const std::shared_ptr<Poller> poller_;
  std::vector<Session*> waiting_;
  std::vector<Awaited> awaited_;    // nobody is asked yet to wake the worker
  std::vector<Unsynced> unsynced_;  // WantSync() is to be called
  uint32_t turns_unsynced_ = 0;     // it has waited for so many
  uint32_t in_vain_ = 0;            // times in a row that the worker stayed awake
  uint32_t sleeps_left_ = 0;        // before it does again
};

}  // namespace skep

// reply_gates.h: the gates that replies wait for, and how a worker learns that they were released.
//
// A reply may leave once the gate of its keyspace has released its ticket (release_gate.h):
//
//   Mark, ReplyTo  a reply is about to be encoded whose ticket is not released: its session waits.
//                  Mark: all replies encoded from here on wait, in order. ReplyTo: only this
//                  message of the packed protocol waits, and is held aside
//   SyncIfDue      asks the log to sync the tickets that replies wait for. It lets a few turns
//                  pass, so that one sync serves many
//   StayAwake      called when nothing else is to be done: polls the first gate for a moment, since
//                  the batch of another worker is mostly at its end; then asks the gates for a
//                  wake-up
//   Pass           returns the sessions that waited; those whose gates are all released wait no
//                  more
//
// Invariants. True between calls.
//   G1  session.waiting is true if and only if the session is listed here.
//   G2  A listed session has a mark, or its PackedSession holds a reply, until the next Pass.
//   G3  For every ticket that is not released, the gate was asked to wake the worker, or the ticket
//       is listed in awaited_, and then the worker does not sleep (has_work).
//   G4  For every ticket that waits for a sync, WantSync was called, or it is listed in unsynced_.
//
// Callers: commands and their tasks mark replies; the turn of the worker (worker.h) does the rest.
// Thread safety: the owning worker only. Any thread may release: that wakes the poller.
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
  // Gates for a session that is served on another thread, of which others take over what waits.
  ReplyGates GatesBeside() const { return ReplyGates(poller_); }

  // The replies encoded for the session from here on wait until the engine has released the ticket.
  void Mark(Session& session, Engine& engine, Version ticket);
  // Likewise for the ticket of another session's mark.
  void MarkAs(Session& session, ReleaseGate& gate, Version ticket);
  // Likewise for all marks of `from`, a session that `gates` have served on another thread.
  void TakeOver(Session& session, const ReplyGates& gates, const Session& from);
  // Returns where to encode a message's reply that waits until the engine has released the ticket,
  // or synced it: the bytes that may be sent, or bytes held aside. Valid until the next call.
  std::string& ReplyTo(Session& session, Engine& engine, Version ticket, bool syncs);

  // Whether the worker must look again without waiting for the network.
  bool has_work() const { return !awaited_.empty() || !unsynced_.empty(); }
  // Once a turn: asks for syncs if no input has come (`is_idle`), or if replies have waited for
  // some turns. `sessions`: how many the worker has.
  void SyncIfDue(bool is_idle, size_t sessions);
  // If a reply waits and no gate was asked to wake the worker: polls for a moment, and then asks
  // the gates. Called when there is nothing else to do.
  void StayAwake();
  // Returns the sessions that waited since the last call; those that need not wait any more have
  // `waiting` false. Replies held by their PackedSessions that may leave are appended to `out`.
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

  // The gate that a reply waits for. If everything is synced before it is acknowledged, the other
  // gate may have been released further under an earlier policy.
  static ReleaseGate& GateOf(Engine& engine, bool syncs) {
    return syncs || engine.syncs_to_release() ? engine.synced_gate() : engine.gate();
  }
  ReleaseGate* ClosedGate(Engine& engine, Version ticket, bool syncs);
  void Await(Session& session, ReleaseGate& gate, Version ticket);
  void NoteUnsynced(const Unsynced& unsynced);
  void Sync(size_t sessions);
  static bool PassHeld(Session& session);
  bool IsReleasedSoon();
  void ArrangeWakes();

  const std::shared_ptr<Poller> poller_;
  std::vector<Session*> waiting_;
  std::vector<Awaited> awaited_;    // no gate was asked yet to wake the worker
  std::vector<Unsynced> unsynced_;  // WantSync() must be called for them
  uint32_t turns_unsynced_ = 0;     // turns for which unsynced_ has waited
  uint32_t in_vain_ = 0;            // times in a row that polling did not help
  uint32_t sleeps_left_ = 0;        // sleeps before the worker polls again
};

}  // namespace skep

#include "server/reply_gates.h"

#include <algorithm>
#include <utility>

#include "base/cpu.h"

namespace skep {
namespace {

constexpr uint32_t kAwakeSpins = 1024;     // polls of a gate: 20 to 50 us
constexpr uint32_t kTurnsUnsyncedMax = 3;  // turns that may add to a sync
constexpr size_t kWaitingMin = 8;          // sessions that a sync on this thread serves
constexpr uint32_t kInVainMax = 4;         // polls in a row

// Whether the replies wait for that ticket or a later one of the gate already.
bool Waits(const Session& session, const ReleaseGate& gate, Version ticket) {
  if (session.marks.empty()) return false;
  const Session::Mark& last = session.marks.back();
  return last.gate == &gate && last.ticket >= ticket;
}

}  // namespace

// The gate that the ticket has not passed; null if it has.
ReleaseGate* ReplyGates::ClosedGate(Engine& engine, Version ticket, bool syncs) {
  ReleaseGate& gate = GateOf(engine, syncs);
  if (gate.IsReleased(ticket)) return nullptr;
  if (&gate == &engine.synced_gate()) {
    NoteUnsynced({.engine = &engine, .gate = &gate, .ticket = ticket});
    return &gate;
  }
  engine.Release();
  return gate.IsReleased(ticket) ? nullptr : &gate;
}

void ReplyGates::Mark(Session& session, Engine& engine, Version ticket) {
  if (Waits(session, GateOf(engine, session.wants_sync()), ticket)) return;
  ReleaseGate* const gate = ClosedGate(engine, ticket, session.wants_sync());
  if (gate == nullptr) return;
  session.marks.push_back({.from = session.out_end(), .gate = gate, .ticket = ticket});
  Await(session, *gate, ticket);
}

// The session that has the ticket's own mark sees to it that it is synced.
void ReplyGates::MarkAs(Session& session, ReleaseGate& gate, Version ticket) {
  if (gate.IsReleased(ticket) || Waits(session, gate, ticket)) return;
  session.marks.push_back({.from = session.out_end(), .gate = &gate, .ticket = ticket});
  Await(session, gate, ticket);
}

void ReplyGates::TakeOver(Session& session, const ReplyGates& gates, const Session& from) {
  for (const Session::Mark& mark : from.marks) MarkAs(session, *mark.gate, mark.ticket);
  for (const Unsynced& unsynced : gates.unsynced_) NoteUnsynced(unsynced);
}

std::string& ReplyGates::ReplyTo(Session& session, Engine& engine, Version ticket, bool syncs) {
  ReleaseGate* const gate = ClosedGate(engine, ticket, syncs);
  if (gate == nullptr) return session.out;
  Await(session, *gate, ticket);
  return session.packed->Hold(*gate, ticket);
}

void ReplyGates::Await(Session& session, ReleaseGate& gate, Version ticket) {
  if (!session.waiting) waiting_.push_back(&session);
  session.waiting = true;
  const Awaited awaited{.gate = &gate, .ticket = ticket};
  if (awaited_.empty() || awaited_.back() != awaited) awaited_.push_back(awaited);
}

void ReplyGates::NoteUnsynced(const Unsynced& unsynced) {
  const auto at = std::ranges::find(unsynced_, unsynced.gate, &Unsynced::gate);
  if (at == unsynced_.end()) {
    unsynced_.push_back(unsynced);
  } else {
    at->ticket = std::max(at->ticket, unsynced.ticket);
  }
}

void ReplyGates::SyncIfDue(bool is_idle, size_t sessions) {
  if (unsynced_.empty()) return;
  if (is_idle || ++turns_unsynced_ == kTurnsUnsyncedMax) Sync(sessions);
}

// While the log's thread syncs, this thread executes further requests; a sync on this thread saves
// waking that thread and being woken. The saving is greater if many sessions wait, and few others
// would have to wait for the sync.
void ReplyGates::Sync(size_t sessions) {
  const size_t waiting = waiting_.size();
  const bool here = sessions == 1 || (waiting >= kWaitingMin && waiting >= sessions / 2);
  turns_unsynced_ = 0;
  for (const Unsynced& unsynced : std::exchange(unsynced_, {})) {
    if (!unsynced.gate->IsReleased(unsynced.ticket)) {
      unsynced.engine->WantSync(unsynced.ticket, here);
    }
  }
}

void ReplyGates::StayAwake() {
  if (!awaited_.empty() && !IsReleasedSoon()) ArrangeWakes();
}

// Another worker's batch that replies here wait for is mostly at its end, and sleeping and being
// woken takes longer. If polling does not help (the gate waits for a disk), it is tried more and
// more rarely.
bool ReplyGates::IsReleasedSoon() {
  if (sleeps_left_ > 0) {
    --sleeps_left_;
    return false;
  }
  const Awaited first = awaited_.front();
  for (uint32_t i = 0; i < kAwakeSpins; ++i) {
    if (first.gate->IsReleased(first.ticket)) {
      in_vain_ = 0;
      return true;
    }
    Pause();
  }
  ++in_vain_;
  if (in_vain_ > kInVainMax) sleeps_left_ = 1u << std::min(in_vain_ - kInVainMax, 6u);
  return false;
}

void ReplyGates::ArrangeWakes() {
  for (const Awaited& a : std::exchange(awaited_, {})) {
    // The gate wakes the poller, not the worker: an engine may release after the worker has ended.
    a.gate->CallWhenReleased(a.ticket, [poller = poller_] { poller->Wake(); });
  }
}

// Sends on what its PackedSession has held and may leave. Returns true if it holds nothing then.
bool ReplyGates::PassHeld(Session& session) {
  std::vector<packed::PinnedPart> pins;
  const bool is_done = session.packed->PassGates(session.out, pins);
  session.Refer(std::move(pins));
  return is_done;
}

std::vector<Session*> ReplyGates::Pass() {
  std::erase_if(awaited_, [](const Awaited& a) { return a.gate->IsReleased(a.ticket); });
  std::vector<Session*> waited = std::exchange(waiting_, {});
  for (Session* const session : waited) {
    auto& marks = session->marks;
    while (!marks.empty() && marks.front().gate->IsReleased(marks.front().ticket)) {
      marks.pop_front();
    }
    const bool holds = session->packed != nullptr && !PassHeld(*session);
    session->waiting = !marks.empty() || holds;
    if (session->waiting) waiting_.push_back(session);
  }
  return waited;
}

}  // namespace skep

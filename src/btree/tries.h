// tries.h: how a write goes on when other writes meet it in its leaf.
//
// A write decides without locks, and takes the leaf's lock if the leaf is as it was. Other writes
// to that leaf make it begin again; a large value beside a busy neighbour has to begin again nearly
// always. So after kOptimistic tries a write takes a turn: a ticket at the turnstile of the leaf's
// LID; tickets are served in order. A write that begins a try and finds tickets that are not served
// waits for those, and for none that are drawn later.
//
// Roles
//   a write that has the turn    goes on as before, until it is done or the leaf has another LID
//   a write that finds a ticket  waits before it locks, holding no lock, out of its epoch, its
//                                floor rising
//
// Why a write is done after a bounded number of tries
//   (1) A try is in vain only if another write takes the lock between this write's look at the leaf
//       and its own lock: a write that finds the leaf locked waits. A write that began before the
//       ticket was drawn does at most one write before it meets the ticket. So while a write has
//       its turn, at most one write of each other thread makes it begin again.
//   (2) The tickets before a write's own are served one after the other, each after so many tries.
//       There are at most as many as threads.
//   (3) A split gives the leaf another LID, and the write begins to count again. The split was made
//       by this write, or by one of the writes of (1).
//   Atomic batches wait for tickets too, before their first lock. They do not while they hold locks
//   or have stopped the writers, as the thread that has the turn may wait for them; and they draw
//   no tickets. So (1) does not count what they write in their other leaves or in a stop, and their
//   own wait for a lock has no bound but chance.
//
// Cost: each try loads a line that is seldom written. LIDs share turnstiles, so a write may
// wait for one of another leaf.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "btree/link.h"
#include "btree/versions.h"

namespace skep::btree {

// Thread-safe.
class Turnstile {
 public:
  // Whether every ticket that was drawn is served.
  bool IsFree() const { return last_ticket() == served_.load(std::memory_order_acquire); }
  uint64_t last_ticket() const { return drawn_.load(std::memory_order_acquire); }
  uint64_t Draw() { return drawn_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  // Whether all tickets up to this one are served.
  bool HasServed(uint64_t ticket) const {
    return served_.load(std::memory_order_acquire) >= ticket;
  }
  // Ends the turn; called by the thread that has it.
  void Serve() { served_.fetch_add(1, std::memory_order_acq_rel); }

 private:
  alignas(64) std::atomic<uint64_t> drawn_{0};
  std::atomic<uint64_t> served_{0};
};

class Turnstiles {
 public:
  Turnstile& Of(Lid lid) { return turnstiles_[lid % turnstiles_.size()]; }

 private:
  std::array<Turnstile, 64> turnstiles_;
};

// Owner: one write, inside its epoch.
class Tries {
 public:
  // The number of tries without a turn.
  static constexpr uint32_t kOptimistic = 8;

  Tries(Turnstiles& turnstiles, Versions& versions, ThreadState& thread)
      : turnstiles_(turnstiles), versions_(versions), thread_(thread) {}
  ~Tries() { GiveTurn(); }
  Tries(const Tries&) = delete;
  Tries& operator=(const Tries&) = delete;

  bool is_first() const { return count_ == 1; }

  // Begins the next try. Leaves the epoch between two tries.
  void Begin() {
    if (++count_ == 1) return versions_.BeginPoint(thread_);
    versions_.LeaveEpoch(thread_);
    if (count_ > kYieldAfter) std::this_thread::yield();
    versions_.EnterEpoch(thread_);
    versions_.BeginAgain(thread_);
  }
  // Whether this try may lock the leaf now. False: the write has waited, so it must begin again.
  bool MayLock(Lid leaf) {
    Turnstile& turnstile = turnstiles_.Of(leaf);
    if (turn_ == &turnstile) return true;
    GiveTurn();
    if (count_ <= kOptimistic) {
      if (turnstile.IsFree()) [[likely]]
        return true;
      const uint64_t last = turnstile.last_ticket();
      Wait([&] { return turnstile.HasServed(last); });
      return false;
    }
    const uint64_t ticket = turnstile.Draw();
    Wait([&] { return turnstile.HasServed(ticket - 1); });
    turn_ = &turnstile;
    count_ = 1;
    return false;
  }
  // Waits because another thread holds the leaf: a decision now would be in vain. Does not count as
  // a try.
  void AwaitLock() {
    --count_;
    bool waited = false;
    Wait([&] { return std::exchange(waited, true); });
  }
  void GiveTurn() {
    if (turn_ != nullptr) turn_->Serve();
    turn_ = nullptr;
  }

 private:
  static constexpr uint32_t kYieldAfter = 4;

  // Waits out of the epoch; the thread has drawn no version that is not finished.
  template <typename Until>
  void Wait(Until until) {
    versions_.LeaveEpoch(thread_);
    while (!until()) {
      versions_.Raise(thread_);
      std::this_thread::yield();
    }
    versions_.EnterEpoch(thread_);
  }

  Turnstiles& turnstiles_;
  Versions& versions_;
  ThreadState& thread_;
  Turnstile* turn_ = nullptr;  // where this write has the turn
  uint32_t count_ = 0;         // tries since the last turn
};

}  // namespace skep::btree

// tries.h: how a write goes on that meets others in its leaf.
//
// A write decides without locks and takes the leaf's lock if the leaf is as it was. Others that
// write there make it begin again, a large value beside a busy neighbour nearly always. So after
// kOptimistic tries it takes a turn: a ticket at the turnstile of the leaf's LID, served in order.
// Who begins a try and finds tickets that are not served waits for those, and for none that come
// later.
//
// Roles
//   who has the turn    goes on as before, until the write is done or the leaf has another LID
//   who finds a ticket  waits before it locks, holding no lock, out of its epoch, its floor rising
//
// Why a write is done after a bounded number of tries
//   (1) A try is in vain only if another write takes the lock between its look at the leaf and its
//       own: who finds the leaf locked waits. Who began before the ticket was drawn does at most
//       one write before it meets the ticket. So while a write has its turn, at most one write of
//       each other thread makes it begin again.
//   (2) Tickets before its own are served one after the other, each after so many tries. There are
//       at most as many as threads.
//   (3) A split gives the leaf another LID, and the write begins to count again. It was made by
//       this write, or is one of the writes of (1).
//   Atomic batches wait for tickets too, before their first lock. While they hold locks or have
//   stopped the writers they do not, as the thread that has the turn may wait for them, and they
//   draw none. So (1) does not count what they write in their other leaves or in a stop, and their
//   own wait for a lock has no bound but chance.
//
// Cost: a load of a line that is seldom written, for each try. LIDs share turnstiles: a write may
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
  // No ticket is drawn that is not served.
  bool IsFree() const { return last_ticket() == served_.load(std::memory_order_acquire); }
  uint64_t last_ticket() const { return drawn_.load(std::memory_order_acquire); }
  uint64_t Draw() { return drawn_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  // All up to this ticket are.
  bool HasServed(uint64_t ticket) const {
    return served_.load(std::memory_order_acquire) >= ticket;
  }
  // By who has the turn.
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
  // Tries without a turn.
  static constexpr uint32_t kOptimistic = 8;

  Tries(Turnstiles& turnstiles, Versions& versions, ThreadState& thread)
      : turnstiles_(turnstiles), versions_(versions), thread_(thread) {}
  ~Tries() { GiveTurn(); }
  Tries(const Tries&) = delete;
  Tries& operator=(const Tries&) = delete;

  bool is_first() const { return count_ == 1; }

  // Begins the next try. Between two the epoch is left.
  void Begin() {
    if (++count_ == 1) return versions_.BeginPoint(thread_);
    versions_.LeaveEpoch(thread_);
    if (count_ > kYieldAfter) std::this_thread::yield();
    versions_.EnterEpoch(thread_);
    versions_.BeginAgain(thread_);
  }
  // Whether this try may lock the leaf now. False: it has waited, so it must begin again.
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
  // Somebody holds the leaf: to decide now would be in vain. Not a try.
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

  // Out of the epoch, with nothing drawn that is not finished.
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
  Turnstile* turn_ = nullptr;  // where it has the turn
  uint32_t count_ = 0;         // of tries, since it has had a turn
};

}  // namespace skep::btree

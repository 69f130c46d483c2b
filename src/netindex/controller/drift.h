// drift.h: when a controller renews the tables of its switches, and by which accesses it does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace skep::netindex {

// Compares the share of hints that were right with the share of accesses for which the tables have
// hints. Tables are due when it is below 90 % of that in a window of answers. If the tables that
// come then are no better (fences that switches cannot tell apart, other clients' hints), the next
// window is twice as long, up to kWindowMax, so what is spent in vain falls to nothing. Thread
// safety: one owner.
class DriftWatch {
 public:
  static constexpr uint64_t kWindowMin = 1000, kWindowMax = uint64_t{1} << 20;

  // New tables, with hints for this share of the accesses. `answers` and `misses`: so far.
  void Begin(double covered, uint64_t answers, uint64_t misses) {
    covered_ = covered;
    MoveWindow(answers, misses);
  }

  // Answers to GETs so far, and those of them without a right hint. True: new tables are due.
  bool Note(uint64_t answers, uint64_t misses) {
    // A switch that was started again counts from 0.
    if (answers < answers_ || misses < misses_) MoveWindow(answers, misses);
    if (answers - answers_ < window_) return false;
    const auto found = static_cast<double>(answers - answers_);
    rate_ = 1 - std::min(1.0, static_cast<double>(misses - misses_) / found);
    MoveWindow(answers, misses);
    const bool is_due = rate_ < 0.9 * covered_;
    window_ = is_due ? std::min(2 * window_, kWindowMax) : kWindowMin;
    return is_due;
  }

  // Of the last window.
  double rate() const { return rate_; }

 private:
  void MoveWindow(uint64_t answers, uint64_t misses) {
    answers_ = answers;
    misses_ = misses;
  }

  double covered_ = 0;
  double rate_ = 1;
  uint64_t window_ = kWindowMin;
  uint64_t answers_ = 0, misses_ = 0;
};

// What a leaf's accesses weigh: those since it was looked at last, and half of what they weighed
// then. A server counts from the making of the leaf on. A leaf that was never looked at weighs 1.
class HitHistory {
 public:
  // `hits`: all so far.
  uint64_t Weigh(uint64_t leaf, uint64_t hits) {
    Seen& seen = next_[leaf];
    const auto last = last_.find(leaf);
    const Seen before = last == last_.end() ? Seen{} : last->second;
    seen.weight = (hits >= before.hits ? hits - before.hits : hits) + before.weight / 2;
    seen.hits = hits;
    return seen.weight + 1;
  }
  // All leaves were looked at; those that were not are forgotten.
  void EndRound() {
    last_.swap(next_);
    next_.clear();
  }

 private:
  struct Seen {
    uint64_t hits = 0, weight = 0;
  };
  std::unordered_map<uint64_t, Seen> last_, next_;
};

}  // namespace skep::netindex

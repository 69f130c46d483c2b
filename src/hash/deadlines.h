// deadlines.h: which keys of a table have a deadline, the earliest first.
//
// An entry has the key's hash and not the key: whoever takes one looks in that bucket for whatever
// is due. Thread safety: none; its partition's lock protects it.
//
//   earliest                    latest
//   | due_ entries |  the others    |
//                  next_
//
// A count goes on from where the one before it has stopped: time passes each entry once.
//
// Invariant. D1: due_ entries lie before next_.
//
// Cost: O(log n), and some 80 bytes a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory_resource>
#include <set>
#include <utility>

#include "base/memory_budget.h"

namespace skep::hash {

class Deadlines {
 public:
  struct Entry {
    uint64_t deadline_ms;
    uint64_t hash;
    auto operator<=>(const Entry&) const = default;
  };

  explicit Deadlines(MemoryBudget& budget) : memory_(budget), entries_(&memory_) {}

  // 0 is no deadline: nothing is done.
  void Add(uint64_t deadline_ms, uint64_t hash) {
    if (deadline_ms == 0) return;
    const Entry entry{.deadline_ms = deadline_ms, .hash = hash};
    const auto at = entries_.insert(entry);
    if (std::next(at) == next_) {
      next_ = at;
    } else if (next_ == entries_.end() || entry < *next_) {
      ++due_;
    }
  }
  void Remove(uint64_t deadline_ms, uint64_t hash) {
    if (deadline_ms == 0) return;
    const Entry entry{.deadline_ms = deadline_ms, .hash = hash};
    const auto at = entries_.lower_bound(entry);  // of equal ones the first
    if (at == next_) {
      ++next_;
    } else if (next_ == entries_.end() || entry <= *next_) {
      --due_;
    }
    entries_.erase(at);
  }
  void Clear() {
    entries_.clear();
    next_ = entries_.end();
    due_ = 0;
  }

  // The earliest; null if there is none.
  const Entry* First() const { return entries_.empty() ? nullptr : &*entries_.begin(); }
  // How many are at or before this millisecond. O(how many there are between this millisecond and
  // that of the call before).
  size_t CountDue(uint64_t now_ms) {
    Approach(now_ms, SIZE_MAX);
    return due_;
  }
  // Does so many steps of those that CountDue(now_ms) has to do. Whether some are left.
  bool Approach(uint64_t now_ms, size_t steps) {
    const auto has_due = [&] { return next_ != entries_.end() && next_->deadline_ms <= now_ms; };
    const auto has_passed_more = [&] { return due_ > 0 && std::prev(next_)->deadline_ms > now_ms; };
    for (; steps > 0 && has_due(); --steps, ++due_) ++next_;
    for (; steps > 0 && has_passed_more(); --steps, --due_) --next_;
    return has_due() || has_passed_more();
  }
  bool Has(uint64_t deadline_ms, uint64_t hash) const {
    return entries_.contains({.deadline_ms = deadline_ms, .hash = hash});
  }
  size_t size() const { return entries_.size(); }
  uint64_t bytes() const { return memory_.used(); }

 private:
  BudgetedMemory memory_;
  std::pmr::multiset<Entry> entries_;
  std::pmr::multiset<Entry>::const_iterator next_ = entries_.end();
  size_t due_ = 0;
};

}  // namespace skep::hash

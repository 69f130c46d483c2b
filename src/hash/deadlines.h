// deadlines.h: the keys of a table that have a deadline, the earliest first.
//
// An entry has the key's hash and not the key: its user looks in that hash's chain for keys that
// are due. Thread safety: none; the lock of the table's partition protects it.
//
//   earliest                    latest
//   | due_ entries |  the others    |
//                  next_
//
// A count goes on where the last one stopped: as time advances it passes each entry once.
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

  // Adds an entry. A deadline of 0 is none: nothing is added.
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
    const auto at = entries_.lower_bound(entry);  // the first of equal ones
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

  // Returns the earliest entry; null if there is none.
  const Entry* First() const { return entries_.empty() ? nullptr : &*entries_.begin(); }
  // Returns how many entries are at or before this millisecond. O(number of entries between this
  // millisecond and that of the last call).
  size_t CountDue(uint64_t now_ms) {
    Approach(now_ms, SIZE_MAX);
    return due_;
  }
  // Does at most `steps` steps of the work of CountDue(now_ms). Returns whether some are left.
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

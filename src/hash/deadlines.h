// deadlines.h: which keys of a table have a deadline, the earliest first.
//
// An entry has the key's hash and not the key: whoever takes one looks in that bucket for whatever
// is due. Thread safety: none; its partition's lock protects it.
//
// Cost: O(log n), and some 80 bytes a key.
#pragma once

#include <cstddef>
#include <cstdint>
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
    if (deadline_ms != 0) entries_.insert({.deadline_ms = deadline_ms, .hash = hash});
  }
  void Remove(uint64_t deadline_ms, uint64_t hash) {
    if (deadline_ms == 0) return;
    entries_.erase(entries_.find({.deadline_ms = deadline_ms, .hash = hash}));
  }
  void Clear() { entries_.clear(); }

  // The earliest; null if there is none.
  const Entry* First() const { return entries_.empty() ? nullptr : &*entries_.begin(); }
  // How many are at or before this millisecond. O(their number).
  size_t CountDue(uint64_t now_ms) const {
    size_t count = 0;
    for (auto at = entries_.begin(); at != entries_.end() && at->deadline_ms <= now_ms; ++at) {
      ++count;
    }
    return count;
  }
  bool Has(uint64_t deadline_ms, uint64_t hash) const {
    return entries_.contains({.deadline_ms = deadline_ms, .hash = hash});
  }
  size_t size() const { return entries_.size(); }
  uint64_t bytes() const { return memory_.used(); }

 private:
  BudgetedMemory memory_;
  std::pmr::multiset<Entry> entries_;
};

}  // namespace skep::hash

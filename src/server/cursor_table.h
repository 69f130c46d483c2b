// cursor_table.h: the states behind the numbers that SCAN and KSCAN give to clients.
//
// A client carries a scan on with a number; the state is here, bounded in count, bytes and time.
//
//   Put(s0)             7              7
//   Put(s1, parent 7)   7 <- 4         a scan keeps the state it would go on from and the one
//   Put(s2, parent 4)        4 <- 9    before it, so a client that lost a reply may ask again
//   Put(s3, parent 4)        4 <- 2    asked again: 9 never reached the client
//
// Numbers are random: a client that mistypes or guesses one gets an error, not another's scan. They
// have 63 bits, since some clients read a signed number.
//
// Invariants, whenever the lock is free.
//   C1  by_number_ and recent_ hold the same entries; bytes_ is the sum of their bytes.
//   C2  recent_ is ordered by last_used_ms, newest first; none is later than now_ms_.
//   C3  an entry's parent and child, if not 0, are in the table and name it in turn.
//   C4  no entry has both a parent and a child: a scan keeps at most two.
//   C5  at most entries_max entries, and at most bytes_max bytes or one entry.
//
// Thread safety: any thread may call anything. The states that leave the table are destroyed
// outside its lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace skep {

// T is what Find copies: make it small, or a std::shared_ptr to a state that does not change.
template <typename T>
class CursorTable {
 public:
  // `random` must outlive the table; it is used under the table's lock only.
  CursorTable(size_t entries_max, size_t bytes_max, uint64_t ttl_ms, Random& random)
      : entries_max_(entries_max), bytes_max_(bytes_max), random_(random), ttl_ms_(ttl_ms) {
    SKEP_CHECK(entries_max > 0);
  }

  // Keeps `state`, which counts as `bytes`, and returns its number: never 0, below 2^63. `parent`
  // is the number the scan went on from, 0 if it has just begun; what that scan kept beside the
  // parent is dropped. Makes room by dropping what was used least recently.
  uint64_t Put(T state, size_t bytes, uint64_t now_ms, uint64_t parent = 0) {
    Entries dropped;
    std::lock_guard lock(mutex_);
    Advance(now_ms);
    DropExpired(SIZE_MAX, dropped);
    const auto before = by_number_.find(parent);
    const bool has_parent = before != by_number_.end();
    if (has_parent) {
      Drop(before->second->parent, dropped);
      Drop(before->second->child, dropped);
      Touch(before->second);
    }
    MakeRoom(bytes, dropped);
    // Making room may have taken the parent itself.
    const bool linked = has_parent && by_number_.contains(parent);
    const uint64_t number = NewNumber();
    recent_.push_front({.number = number,
                        .parent = linked ? parent : 0,
                        .bytes = bytes,
                        .last_used_ms = now_ms_,
                        .state = std::move(state)});
    by_number_.emplace(number, recent_.begin());
    bytes_ += bytes;
    if (linked) by_number_.at(parent)->child = number;
    return number;
  }

  // A copy of the state; nullopt if there is none: never put, dropped, or not used for ttl_ms.
  // Counts as a use.
  std::optional<T> Find(uint64_t number, uint64_t now_ms) {
    Entries dropped;
    std::lock_guard lock(mutex_);
    Advance(now_ms);
    DropExpired(SIZE_MAX, dropped);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return std::nullopt;
    Touch(found->second);
    return found->second->state;
  }

  // Drops all the scan keeps that `number` belongs to. Nothing happens if there is none.
  void EraseScan(uint64_t number) {
    Entries dropped;
    std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    Drop(found->second->parent, dropped);
    Drop(found->second->child, dropped);
    Drop(number, dropped);
  }

  // Drops at most `entries_max` states that were not used for ttl_ms; returns how many. Find never
  // gives one of those, so this only gives memory back while nobody calls Put or Find.
  size_t Expire(uint64_t now_ms, size_t entries_max) {
    Entries dropped;
    std::lock_guard lock(mutex_);
    Advance(now_ms);
    DropExpired(entries_max, dropped);
    return dropped.size();
  }

  void set_ttl_ms(uint64_t ttl_ms) {
    std::lock_guard lock(mutex_);
    ttl_ms_ = ttl_ms;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return recent_.size();
  }
  size_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    uint64_t number = 0;
    uint64_t parent = 0;
    uint64_t child = 0;
    size_t bytes = 0;
    uint64_t last_used_ms = 0;
    T state;
  };
  using Entries = std::list<Entry>;

  // Callers read their clock before they get the lock, so their times may come out of order (C2).
  void Advance(uint64_t now_ms) { now_ms_ = std::max(now_ms_, now_ms); }

  void Touch(typename Entries::iterator entry) {
    entry->last_used_ms = now_ms_;
    recent_.splice(recent_.begin(), recent_, entry);
  }

  // Moves the entry, if there is one, to `dropped`, and cuts its links.
  void Drop(uint64_t number, Entries& dropped) {
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    const auto entry = found->second;
    if (entry->parent != 0) by_number_.at(entry->parent)->child = 0;
    if (entry->child != 0) by_number_.at(entry->child)->parent = 0;
    bytes_ -= entry->bytes;
    by_number_.erase(found);
    dropped.splice(dropped.end(), recent_, entry);
  }

  void DropExpired(size_t entries_max, Entries& dropped) {
    for (; entries_max > 0 && !recent_.empty(); --entries_max) {
      if (now_ms_ - recent_.back().last_used_ms < ttl_ms_) return;
      Drop(recent_.back().number, dropped);
    }
  }

  void MakeRoom(size_t bytes, Entries& dropped) {
    while (!recent_.empty() && (recent_.size() >= entries_max_ || bytes_ + bytes > bytes_max_)) {
      Drop(recent_.back().number, dropped);
    }
  }

  uint64_t NewNumber() {
    uint64_t number = 0;
    do {
      number = random_.Next() >> 1;
    } while (number == 0 || by_number_.contains(number));
    return number;
  }

  const size_t entries_max_;
  const size_t bytes_max_;
  Random& random_;

  mutable std::mutex mutex_;  // guards all below, and random_
  uint64_t ttl_ms_;
  uint64_t now_ms_ = 0;  // the latest time any caller gave
  size_t bytes_ = 0;
  Entries recent_;
  std::unordered_map<uint64_t, typename Entries::iterator> by_number_;
};

}  // namespace skep

// cursor_table.h: the state that the server keeps for scans that clients carry on from call to
// call.
//
// SCAN gives a client a number, and the state is here; a KSCAN carries its state itself
// (kscan_token.h), and only the pin of its version is here. Both are bounded in count, bytes and
// time, and each client has a fair share.
//
//   Put(s0)             7              7
//   Put(s1, parent 7)   7 <- 4         a scan keeps the state it would go on from and the one
//   Put(s2, parent 4)        4 <- 9    before it, so a client that lost a reply may ask again
//   Put(s3, parent 4)        4 <- 2    asked again: 9 never reached the client
//
// Numbers are random: a client that mistypes or guesses one gets an error, not another's scan. They
// have 63 bits, since some clients read a signed number.
//
// Fairness: an entry belongs to the client that put it, or has used it last. When there is no room
// for a new entry, the client that has the most bytes, the new entry included, loses the entry that
// it has not used for the longest time. If several have the most, it is the client that asks, if it
// is among them, else the one whose entry was not used for the longest time. So a client that
// begins scans for ever drops scans of its own. The entries of clients that have gone count as one
// client's: coming again and again gives no larger share.
//
// Invariants, whenever the lock is free.
//   C1  by_number_, recent_ and the uses of all owners_ hold the same entries; bytes_ is the sum of
//       their bytes, an owner's bytes that of its own.
//   C2  recent_ is ordered by last_used_ms, newest first; none is later than now_ms_. Uses are in
//       the same order.
//   C3  an entry's parent and child, if not 0, are in the table and name it in turn.
//   C4  no entry has both a parent and a child: a scan keeps at most two.
//   C5  at most entries_max entries, at most owner_entries_max of a client that is connected, and
//       at most bytes_max bytes or one entry.
//   C6  greed_ has the Greed of each owner, and there is no owner without entries.
//
// Thread safety: any thread may call anything. The states that leave the table are destroyed
// outside its lock.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/random.h"

namespace skep {

struct CursorLimits {
  size_t entries_max;
  size_t bytes_max;
  size_t owner_entries_max = SIZE_MAX;
};

// Find copies T: make it small, or a std::shared_ptr to a state that does not change.
template <typename T>
class CursorTable {
 public:
  // `random` must outlive the table; it is used under the table's lock only.
  CursorTable(const CursorLimits& limits, uint64_t ttl_ms, Random& random)
      : limits_(limits), random_(random), ttl_ms_(ttl_ms) {
    SKEP_CHECK(limits.entries_max > 0 && limits.owner_entries_max > 0);
  }

  // Keeps `state`, which counts as `bytes`, for the client `owner` (not 0), and returns its number:
  // never 0, below 2^63. `parent` is the number the scan went on from, 0 if it has just begun; any
  // other state of that scan but the parent's is dropped. Makes room as the head of this file says.
  uint64_t Put(T state, size_t bytes, uint64_t now_ms, uint64_t owner, uint64_t parent = 0) {
    Entries dropped;
    const MutexLock lock(mutex_);
    Advance(now_ms);
    DropExpired(SIZE_MAX, dropped);
    const auto before = by_number_.find(parent);
    const bool has_parent = before != by_number_.end();
    if (has_parent) {
      Drop(before->second->parent, dropped);
      Drop(before->second->child, dropped);
      Touch(before->second, owner);
    }
    MakeRoom(bytes, owner, dropped);
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
    Own(recent_.front(), owner);
    if (linked) by_number_.at(parent)->child = number;
    return number;
  }

  // A copy of the state; nullopt if there is none: never put, dropped, or not used for ttl_ms.
  // Counts as a use by `owner`.
  std::optional<T> Find(uint64_t number, uint64_t now_ms, uint64_t owner) {
    Entries dropped;
    const MutexLock lock(mutex_);
    Advance(now_ms);
    DropExpired(SIZE_MAX, dropped);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return std::nullopt;
    Touch(found->second, owner);
    // The entry found is the owner's latest, so it stays.
    LimitOwner(owner, limits_.owner_entries_max, dropped);
    return found->second->state;
  }

  // Drops all states of the scan that `number` belongs to. Nothing happens if there is none.
  void EraseScan(uint64_t number) {
    Entries dropped;
    const MutexLock lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    Drop(found->second->parent, dropped);
    Drop(found->second->child, dropped);
    Drop(number, dropped);
  }

  // The client has gone: another one may carry its scans on.
  void Leave(uint64_t owner) {
    const MutexLock lock(mutex_);
    const auto at = owners_.find(owner);
    if (at == owners_.end()) return;
    greed_.erase(GreedOf(*at));
    Owner leaving = std::move(at->second);
    owners_.erase(at);
    for (const Use& use : leaving.uses) by_number_.at(use.number)->owner = kGone;
    auto& gone = *owners_.try_emplace(kGone).first;
    greed_.erase(GreedOf(gone));
    gone.second.bytes += leaving.bytes;
    gone.second.uses.merge(leaving.uses,
                           [](const Use& a, const Use& b) { return a.order > b.order; });
    greed_.insert(GreedOf(gone));
  }

  // Drops at most `entries_max` states that were not used for ttl_ms; returns how many. Find never
  // returns such a state, so this only frees memory while nobody calls Put or Find.
  size_t Expire(uint64_t now_ms, size_t entries_max) {
    Entries dropped;
    const MutexLock lock(mutex_);
    Advance(now_ms);
    DropExpired(entries_max, dropped);
    return dropped.size();
  }

  void set_ttl_ms(uint64_t ttl_ms) {
    const MutexLock lock(mutex_);
    ttl_ms_ = ttl_ms;
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return recent_.size();
  }
  size_t bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  static constexpr uint64_t kGone = 0;  // owner of the entries of clients that have gone

  struct Use {
    uint64_t order;  // the value of uses_ when it happened
    uint64_t number;
  };
  struct Owner {
    std::list<Use> uses;  // the latest first
    size_t bytes = 0;
  };
  using Owners = std::unordered_map<uint64_t, Owner>;
  // The owner with the greatest Greed loses an entry when there is no room.
  struct Greed {
    size_t bytes;
    uint64_t unused;  // the longer ago the use of the owner's oldest entry, the more
    uint64_t owner;
    auto operator<=>(const Greed&) const = default;
  };
  struct Entry {
    uint64_t number = 0;
    uint64_t parent = 0;
    uint64_t child = 0;
    size_t bytes = 0;
    uint64_t last_used_ms = 0;
    uint64_t owner = kGone;
    typename std::list<Use>::iterator use = {};  // the entry's place in its owner's list
    T state;
  };
  using Entries = std::list<Entry>;

  // Callers read their clock before they get the lock, so their times may come out of order (C2).
  void Advance(uint64_t now_ms) SKEP_REQUIRES(mutex_) { now_ms_ = std::max(now_ms_, now_ms); }

  void Touch(typename Entries::iterator entry, uint64_t owner) SKEP_REQUIRES(mutex_) {
    entry->last_used_ms = now_ms_;
    recent_.splice(recent_.begin(), recent_, entry);
    Disown(*entry);
    Own(*entry, owner);
  }

  void Own(Entry& entry, uint64_t owner) SKEP_REQUIRES(mutex_) {
    auto& at = *owners_.try_emplace(owner).first;
    Owner& of = at.second;
    greed_.erase(GreedOf(at));
    of.bytes += entry.bytes;
    of.uses.push_front({.order = ++uses_, .number = entry.number});
    greed_.insert(GreedOf(at));
    entry.owner = owner;
    entry.use = of.uses.begin();
  }

  void Disown(Entry& entry) SKEP_REQUIRES(mutex_) {
    const auto at = owners_.find(entry.owner);
    Owner& of = at->second;
    greed_.erase(GreedOf(*at));
    of.bytes -= entry.bytes;
    of.uses.erase(entry.use);
    if (of.uses.empty()) {
      owners_.erase(at);
    } else {
      greed_.insert(GreedOf(*at));
    }
  }

  static Greed GreedOf(const typename Owners::value_type& owner) {
    const Owner& of = owner.second;
    const uint64_t oldest = of.uses.empty() ? 0 : of.uses.back().order;
    return {.bytes = of.bytes, .unused = UINT64_MAX - oldest, .owner = owner.first};
  }

  // Moves the entry, if it exists, to `dropped`, and cuts its links.
  void Drop(uint64_t number, Entries& dropped) SKEP_REQUIRES(mutex_) {
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    const auto entry = found->second;
    if (entry->parent != 0) by_number_.at(entry->parent)->child = 0;
    if (entry->child != 0) by_number_.at(entry->child)->parent = 0;
    bytes_ -= entry->bytes;
    Disown(*entry);
    by_number_.erase(found);
    dropped.splice(dropped.end(), recent_, entry);
  }

  void DropExpired(size_t entries_max, Entries& dropped) SKEP_REQUIRES(mutex_) {
    for (; entries_max > 0 && !recent_.empty(); --entries_max) {
      if (now_ms_ - recent_.back().last_used_ms < ttl_ms_) return;
      Drop(recent_.back().number, dropped);
    }
  }

  void MakeRoom(size_t bytes, uint64_t owner, Entries& dropped) SKEP_REQUIRES(mutex_) {
    LimitOwner(owner, limits_.owner_entries_max - 1, dropped);
    while (!recent_.empty() &&
           (recent_.size() >= limits_.entries_max || bytes_ + bytes > limits_.bytes_max)) {
      const auto own = owners_.find(owner);
      const Greed& greediest = *greed_.rbegin();
      const bool is_own = own != owners_.end() && own->second.bytes + bytes >= greediest.bytes;
      const Owner& loses = is_own ? own->second : owners_.at(greediest.owner);
      Drop(loses.uses.back().number, dropped);
    }
  }

  // Leaves the owner only its latest `entries_max` entries.
  void LimitOwner(uint64_t owner, size_t entries_max, Entries& dropped) SKEP_REQUIRES(mutex_) {
    for (auto own = owners_.find(owner);
         own != owners_.end() && own->second.uses.size() > entries_max; own = owners_.find(owner)) {
      Drop(own->second.uses.back().number, dropped);
    }
  }

  uint64_t NewNumber() SKEP_REQUIRES(mutex_) {
    uint64_t number = 0;
    do {
      number = random_.Next() >> 1;
    } while (number == 0 || by_number_.contains(number));
    return number;
  }

  const CursorLimits limits_;
  Random& random_;

  mutable Mutex mutex_;  // also guards random_
  uint64_t ttl_ms_ SKEP_GUARDED_BY(mutex_);
  uint64_t now_ms_ SKEP_GUARDED_BY(mutex_) = 0;  // the latest time any caller gave
  size_t bytes_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t uses_ SKEP_GUARDED_BY(mutex_) = 0;
  Entries recent_ SKEP_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, typename Entries::iterator> by_number_ SKEP_GUARDED_BY(mutex_);
  Owners owners_ SKEP_GUARDED_BY(mutex_);
  std::set<Greed> greed_ SKEP_GUARDED_BY(mutex_);  // C6
};

}  // namespace skep

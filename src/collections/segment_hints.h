// segment_hints.h: where the segments of a few large collections begin.
//
// A write of members has to know the keys of their segments, and of the nodes that count them.
// A scan of the tree finds each, but costs as much as the write. So the keys of collections that
// are written again and again are kept here, sorted by parts (part_hints.h): a search is a few
// comparisons, and a key that comes or goes moves only keys of its block.
//
// With each key goes a place in the tree, once it was read by a request that wants it
// (Outcome::hint): a later request for the item begins there instead of at the root. A stale one
// costs time, never correctness, and its request tells the right one.
//
// A hint may be wrong: segments are divided and joined by any thread. Whoever uses a hint checks
// that the item is there and has the place, and if it has not tells what it has found: a key that
// is gone, or one that was made.
//
// The keys of a collection are read once kWanted places of it were asked for, kLoadMax keys at a
// time and as many places apart. Collections whose ids are equal modulo kCollections share one
// list: one takes it over if it asks for that many places and the other for none meanwhile. So
// a collection that is written now and then never costs a scan of keys.
//
// Concurrency. A list is read by many threads, or changed by one (TryLock). Nobody waits: who does
// not get the lock does without hints, or leaves them as they are. So a list may lack a
// segment, and the hint for its places is then the segment before it, which says that it ends
// earlier. Whoever gets the lock sees what was written under it before: each hold begins with an
// acquire of the number that the holds before it have released. Readers of one list write places in
// the tree beside each other: each is one atomic number (PartHints::place), and any of its values
// will do.
//
// Memory: kBytesMax for each of kCollections collections. A list that has reached it is made anew
// of the keys that are not erased; a collection whose keys take more than half of it then has no
// hints. What the lists hold is charged to a budget; while that has no room for kLoadMax keys of
// kKeyBytes none are read. Forget frees the list of a collection that has ended, unless another
// thread has its lock in that moment: whoever deletes its items calls it after each piece of them.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "collections/layout.h"
#include "collections/part_hints.h"
#include "skep/batch.h"
#include "skep/scratch.h"

namespace skep::collections {

class Access;

// A lock for many readers or one writer, who do not wait for it. Thread-safe.
class TryLock {
 public:
  bool TryShared() {
    int32_t holders = holders_.load(std::memory_order_relaxed);
    while (holders >= 0) {
      if (holders_.compare_exchange_weak(holders, holders + 1, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void UnlockShared() { holders_.fetch_sub(1, std::memory_order_release); }
  bool TryExclusive() {
    int32_t none = 0;
    return holders_.compare_exchange_strong(none, kWriter, std::memory_order_acquire);
  }
  void UnlockExclusive() { holders_.store(0, std::memory_order_release); }

 private:
  static constexpr int32_t kWriter = -1;
  std::atomic<int32_t> holders_{0};  // readers, or kWriter
};

class SegmentHints {
  struct List {
    TryLock lock;
    uint64_t id = 0;                  // 0: none
    bool is_complete = false;         // all keys were read
    bool is_too_large = false;        // the keys take too much memory
    std::string read_until;           // the key up to which all were read
    std::atomic<uint64_t> wanted{0};  // places of `wanted_id` that were asked for
    uint64_t wanted_id = 0;
    std::vector<PartHints> parts;  // few, in no order
    Scratch bytes;                 // of their separators
    size_t charged_bytes = 0;

    size_t held_bytes() const;
    void Begin(uint64_t of_id);
    bool IsTime(uint64_t of_id, size_t places);
    PartHints* Of(Part part);
    void Add(std::string_view item);
    void Erase(std::string_view item);
  };

 public:
  static constexpr size_t kCollections = 8;
  static constexpr size_t kBytesMax = size_t{4} << 20;
  static constexpr uint32_t kLoadMax = 4096;
  static constexpr uint64_t kWanted = 1024;
  static constexpr size_t kKeyBytes = 64;

  // Charges what the lists hold to the budget, which must outlive the hints; null: to none.
  explicit SegmentHints(MemoryBudget* budget = nullptr) : budget_(budget) {}
  ~SegmentHints() { ForgetAll(); }
  SegmentHints(const SegmentHints&) = delete;
  SegmentHints& operator=(const SegmentHints&) = delete;

  // The hints of one collection, which stay as they are while the object lives. There are none if
  // the collection's keys were not all read yet, or the lock was not to be had.
  class Reading {
   public:
    Reading(SegmentHints& hints, uint64_t id);
    ~Reading() {
      if (is_locked_) held_.lock.UnlockShared();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    explicit operator bool() const { return list_ != nullptr; }
    // Turns to a part.
    void BeginPart(Part part) { part_ = list_->Of(part); }
    // The separator of the item that seems to have the place; nothing if the part has no items.
    // It lives as long as the object, and its address is that of no other one. Cost: that of
    // PartHints::Find.
    std::optional<std::string_view> Find(std::string_view place);
    // Where the item that was found last was in the tree; 0: not known.
    Hint hint() const {
      return {std::atomic_ref(part_->place(at_)).load(std::memory_order_relaxed)};
    }
    // It is there.
    void NoteHint(Hint hint) {
      std::atomic_ref(part_->place(at_)).store(hint.bits, std::memory_order_relaxed);
    }

   private:
    List& held_;
    const bool is_locked_;
    List* list_ = nullptr;
    PartHints* part_ = nullptr;  // null: it has no items
    PartHints::At at_;           // the item that was found last
  };

  // So many places of the collection, of which there are no hints, were asked for. Reads keys if it
  // is time for that. Returns whether there are hints now. `access` reads the newest state.
  bool Want(Access& access, uint64_t id, size_t places);
  // Items with these keys were made, and those with the others are gone. Nothing if there are no
  // hints of their collection.
  void Learn(uint64_t id, std::span<const std::string> made,
             std::span<const std::string> gone = {});
  // The collection has ended, or all have: their hints are not needed any more.
  void Forget(uint64_t id);
  void ForgetAll();
  // What the lists hold.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // A hint for the place was this key, whose item has these bytes; nothing: it is absent. Corrects
  // the hint if it was wrong, and returns whether it was: the key is gone, or the item ends before
  // the place.
  bool Correct(uint64_t id, Part part, std::string_view key, std::optional<std::string_view> bytes,
               std::string_view place);
  // Likewise, if the slot of a batch that was refused is at fault and was to write the item. False
  // also if the item cannot be read: a read that is refused does not tell that the key is gone.
  bool CorrectRefused(Access& access, const Batch& batch, uint32_t slot, std::string_view place);

 private:
  class Writing;

  List& Of(uint64_t id) { return lists_[id % kCollections]; }

  MemoryBudget* const budget_;
  std::atomic<size_t> bytes_{0};  // that are charged for all lists
  std::array<List, kCollections> lists_;
};

}  // namespace skep::collections

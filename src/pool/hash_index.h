// hash_index.h: the hash server's table of slots, which clients read in its memory one-sided.
//
//   memory that clients read                                 memory of the server alone
//   bucket_count  [n]
//   table         [ 0 | 1 | 2 | ... | n-1 | zero ...   ]     SlotKeys [ 0 | 1 | ... | n-1 |   ]
//                       |
//                       v   a chain: a bucket of the table, then overflow buckets
//   overflow      [ 0 | 1 | ... | zero ...             ]     SlotKeys [ 0 | 1 | ...           ]
//
// Linear hashing. Of n = 2^level + split buckets, those below `split` and those from 2^level on
// have the depth level + 1, the others the depth level. The next split is of bucket `split`, at the
// depth level, and makes bucket n. A key is in the chain of the bucket that BucketOf
// (bucket_reader.h) names.
//
// One thread owns the table. Readers in other processes read words of it at any time and in any
// order. What the table guarantees to them; bucket_reader.h has the argument from there:
//   G1  A key has one live word. An update stores into that word (H8). A word changes from one item
//       to another, or between zero and an item, by one store.
//   G2  A bucket and all that its chain links to is whole before a link or a depth leads to it
//       (H7). An overflow bucket that is linked has the depth of its chain.
//   G3  A split of chain b at the depth d first fills the chain of b' = b + 2^d. Then it raises the
//       depth to d + 1 in all buckets of chain b, the main bucket first. No operation comes
//       between, as one thread does all. Then it publishes the number of buckets.
//   G4  The words of the keys that moved stay in chain b for 2L. They are leftovers: no operation
//       updates them or uses their slots, and none finds them, as their keys are not of chain b.
//       Then they become zero.
//   G5  Only overflow buckets that are all zero are unlinked, from the end of their chain. They
//       stay zero and keep their link for 2L. Only then may they come into another chain.
//
// The 2L begin and end in calls of Maintain(). It gathers what has happened in batches, one every
// quarter of L, and a batch begins its 2L when it is closed.
//
// Bounds. An operation looks at one chain. An insertion does at most one split besides, which looks
// at one chain and fills one; Grow() does as many as it is told. Maintain() looks at
// kMaintainChains chains at most. Nothing allocates after Create(). A split that finds no bucket or
// too few overflow buckets is put off to the next insertion, and chains become longer meanwhile.
//
// Cost. A bucket is 64 B in the clients' view and 88 B of SlotKeys: 12 B a slot, a tag and 32 bits
// of the index word, which later splits need. (A whole index word instead would make it 112 B; 32
// bits are enough for 2^32 buckets. With the signature, 104 bits of a key's digest are compared:
// among 10^9 keys, two have them in common with a probability below 10^-13.)
// HashIndexTest.BytesAnItem counts, for a table that has grown by insertions, overflow buckets
// included:
//
//   items a bucket               3       4       5
//   bytes an item               54      44      40
//   items in overflow buckets    3 %     7 %    13 %    (one read more, but for cached slots)
//
// Invariants. Verify() checks them.
//   I1  Every bucket of a chain has the depth that linear hashing gives its main bucket.
//   I2  A word whose key's index word leads to its chain is the only one of the key there.
//   I3  Another word is a leftover, of a split that Maintain() has not cleared yet.
//   I4  The last bucket of a chain, unless it is the main one, is not all zero.
//   I5  Each overflow bucket ever used is in one chain or one list, all zero if in a list; the
//       counters say how many items, leftovers and overflow buckets there are.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/huge_pages.h"
#include "base/prefetch.h"
#include "pool/bucket.h"
#include "pool/bucket_reader.h"
#include "pool/key_digest.h"
#include "pool/slot.h"
#include "skep/status.h"

namespace skep::pool {

struct HashIndexOptions {
  // A new table has 2^first_depth buckets.
  uint32_t first_depth = 10;
  // An insertion splits a bucket while the table has more items a bucket than that: 5 of 7 slots.
  uint32_t items_per_bucket = 4;
  // L: how long the reads of an answer that counts may take, by the reader's clock.
  uint64_t read_limit_ns = 100'000'000;
};

// What clients read. It is zero-filled, may be sparse, and outlives the index.
struct HashIndexMemory {
  std::atomic<uint64_t>* bucket_count = nullptr;
  std::span<Bucket> table;
  std::span<Bucket> overflow;
};

// Is called before each store to the shared memory, for tests.
struct StoreHook {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

// Owner: one thread. It has some 35 methods: every store to the shared words is one step of one
// protocol (G1 to G5), and all of them are here.
class HashIndex {
 public:
  static constexpr uint32_t kDepthMax = 32;
  static constexpr uint32_t kMaintainChains = 64;

  // An empty table.
  //   kInvalidArgument  options that cannot be, or a table too small for the first buckets
  //   kIo               no address space for the server's own memory; the errno
  static Result<std::unique_ptr<HashIndex>> Create(const HashIndexMemory& memory,
                                                   const HashIndexOptions& options);
  ~HashIndex() = default;

  // Starts fetching what a call with this key looks at first, for callers that know keys ahead.
  void Prefetch(const KeyDigest& key) const {
    const View main = ChainOf(key);
    FetchLine(main.bucket);
    FetchLines(main.keys, main.keys + 1);
  }

  // The key's slot, or none.
  Slot Find(const KeyDigest& key) const;

  // Stores the key's slot, which has the key's signature, and returns the one before, or none.
  //   kOutOfMemory  the chain of a new key is full, and there is no overflow bucket. Nothing has
  //                 changed. `detail` is the number of overflow buckets in the memory.
  Result<Slot> Set(const KeyDigest& key, Slot slot);

  // Removes the key, and returns the slot it had, or none.
  Slot Remove(const KeyDigest& key);

  // Splits buckets as if the table had `items` items, but no more than `splits` of them. Whoever is
  // about to insert many keys calls it before: a split of an empty bucket moves nothing. True: the
  // table has the buckets for so many items, or cannot have more now.
  bool Grow(uint64_t items, uint32_t splits);

  // Clears the leftovers of splits, and frees overflow buckets, that are older than 2L. `now_ns` is
  // of a clock that never goes back, read after the operation before this call. To be called often:
  // at least a few times in L. True: there is more to do now.
  bool Maintain(uint64_t now_ns);

  // Calls visit(uint32_t index, uint64_t tag, Slot slot) for the items in the chains of the buckets
  // [first, end), end <= buckets(); `index` are the lowest 32 bits of the index word. Pieces with
  // operations between them may show an item twice that was split off meanwhile, if the pieces go
  // on to the buckets() at their end; they miss none that stays.
  template <typename Visit>
  void ForEach(uint64_t first, uint64_t end, Visit visit) const;

  // Keeps room for so many insertions, counted from now, whatever their keys are: splits leave it.
  // False, and nothing is kept more than before: there is not the room.
  bool Reserve(uint64_t insertions) {
    if (overflow_free() < insertions) return false;
    reserved_ = insertions;
    return true;
  }
  uint64_t items() const { return items_; }
  uint64_t buckets() const { return buckets_; }
  // Overflow buckets in chains, and those that wait for the end of their 2L.
  uint64_t overflow_buckets() const { return overflow_linked_; }
  uint64_t overflow_waiting() const { return overflow_used_ - overflow_linked_ - free_.count; }
  // Words that splits moved and that are not cleared yet.
  uint64_t leftovers() const { return leftovers_; }
  // Items a slot, of all buckets in chains.
  double Fill() const {
    return static_cast<double>(items_) /
           static_cast<double>((buckets_ + overflow_linked_) * kBucketSlots);
  }
  // What the buckets that were ever used take in both memories.
  uint64_t bytes() const { return (buckets_ + overflow_used_) * kBytesPerBucket; }

  // A literal that names the broken invariant, or null. Reads everything.
  const char* Verify() const;

  void set_store_hook(StoreHook hook) { hook_ = hook; }

 private:
  // What the server knows of the keys in a bucket.
  struct SlotKeys {
    // In a bucket that is in an OverflowList, the first tag is the number of the next one.
    std::array<uint64_t, kBucketSlots> tags;
    std::array<uint32_t, kBucketSlots> indexes;
  };
  static constexpr uint64_t kBytesPerBucket = sizeof(Bucket) + sizeof(SlotKeys);
  static_assert(kBytesPerBucket == 64 + 88);

  struct SlotKey {
    uint64_t tag;
    uint32_t index;
  };

  // A bucket from both sides; or none.
  struct View {
    Bucket* bucket = nullptr;
    SlotKeys* keys = nullptr;

    explicit operator bool() const { return bucket != nullptr; }
    // Relaxed: the owner reads its own stores.
    Slot slot(uint32_t i) const { return Slot(bucket->slots[i].load(std::memory_order_relaxed)); }
    Link link() const { return Link(bucket->link.load(std::memory_order_relaxed)); }
    bool IsEmpty() const;
  };

  // A slot of a bucket; or none.
  struct Place {
    View at;
    uint32_t i = 0;
    explicit operator bool() const { return static_cast<bool>(at); }
    Slot slot() const { return at.slot(i); }
    SlotKey key() const { return {.tag = at.keys->tags[i], .index = at.keys->indexes[i]}; }
    std::atomic<uint64_t>& word() const { return at.bucket->slots[i]; }
  };

  // Overflow buckets that are in no chain, the first one first.
  struct OverflowList {
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t count = 0;
  };

  // Events whose 2L began together.
  struct GraceBatch {
    uint64_t begin_ns = 0;
    uint64_t buckets = 0;  // after the splits
    OverflowList unlinked;
  };
  // A batch begins every quarter of L, and takes 2L: 8 of them, and those that end and begin.
  static constexpr uint32_t kBatchesInL = 4;
  static constexpr uint32_t kBatchesMax = 2 * kBatchesInL + 2;

  HashIndex(const HashIndexMemory& memory, const HashIndexOptions& options, PageRegion keys);

  static SlotKey KeyOf(const KeyDigest& key) {
    return {.tag = key.tag, .index = static_cast<uint32_t>(key.index)};
  }

  void Store(std::atomic<uint64_t>& word, uint64_t value) {
    if (hook_.call != nullptr) [[unlikely]]
      hook_.call(hook_.context);
    word.store(value, std::memory_order_release);  // G2: after all that it leads to
  }

  View TableBucket(uint64_t number) const { return {&table_[number], &table_keys_[number]}; }
  View OverflowBucket(uint64_t number) const {
    return {&overflow_[number], &overflow_keys_[number]};
  }
  View NextOf(View at) const {
    return at.link().has_next() ? OverflowBucket(at.link().next()) : View();
  }
  // False: a leftover.
  bool IsLive(uint64_t chain, uint32_t index) const { return BucketOf(index, buckets_) == chain; }
  View ChainOf(const KeyDigest& key) const { return TableBucket(BucketOf(key.index, buckets_)); }
  Place FindPlace(View chain, const KeyDigest& key) const;

  bool Insert(View chain, const SlotKey& key, Slot slot);
  bool Append(View last, const SlotKey& key, Slot slot);
  void Fill(Place place, const SlotKey& key, Slot slot);

  bool IsFullWith(uint64_t items) const { return items > buckets_ * options_.items_per_bucket; }
  // False: it is put off.
  bool Split();
  template <typename Visit>
  void ForEachMoved(uint64_t made, Visit visit) const;
  bool HasOverflowFor(uint64_t made) const;
  void MoveKeys(uint64_t made);
  void RaiseDepth(uint64_t made);
  void Publish(uint64_t buckets);

  uint64_t overflow_free() const { return overflow_.size() - overflow_used_ + free_.count; }
  std::optional<uint64_t> TakeOverflow();
  void Add(OverflowList& list, uint64_t number);
  void AddAll(OverflowList& list, const OverflowList& added);
  void UnlinkEmptyTail(View chain);

  void BeginBatch(uint64_t now_ns);
  bool HasEnded(const GraceBatch& batch, uint64_t now_ns) const;
  void ClearLeftovers(uint64_t made);

  struct Count;
  const char* VerifyChain(uint64_t number, Count& count) const;
  const char* VerifyWord(uint64_t chain, Place place) const;
  const char* VerifyList(const OverflowList& list) const;
  const char* VerifyLists() const;

  const HashIndexOptions options_;
  std::atomic<uint64_t>& bucket_count_;
  const std::span<Bucket> table_;
  const std::span<Bucket> overflow_;
  PageRegion keys_;  // of the table, then of the overflow buckets
  SlotKeys* const table_keys_;
  SlotKeys* const overflow_keys_;
  StoreHook hook_;

  uint64_t buckets_ = 0;
  uint64_t items_ = 0;
  uint64_t leftovers_ = 0;
  uint64_t overflow_used_ = 0;  // ever
  uint64_t overflow_linked_ = 0;
  uint64_t reserved_ = 0;  // overflow buckets that splits leave to insertions
  OverflowList free_;

  uint64_t cleared_ = 0;   // the splits that made the buckets below it have no leftovers
  OverflowList unlinked_;  // since the last batch began
  std::array<GraceBatch, kBatchesMax> batches_;  // a ring
  uint32_t first_batch_ = 0;
  uint32_t batch_count_ = 0;
};

template <typename Visit>
void HashIndex::ForEach(uint64_t first, uint64_t end, Visit visit) const {
  for (uint64_t number = first; number < end; ++number) {
    for (View at = TableBucket(number); at; at = NextOf(at)) {
      for (uint32_t i = 0; i < kBucketSlots; ++i) {
        const uint32_t index = at.keys->indexes[i];
        if (at.slot(i) && IsLive(number, index)) visit(index, at.keys->tags[i], at.slot(i));
      }
    }
  }
}

}  // namespace skep::pool

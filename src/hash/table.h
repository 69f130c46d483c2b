// table.h: the hash table of one partition (KV-Direct, section 3.3), which grows and shrinks
// online.
//
//   index (bucket_array.h)              slabs (slabs.h), in the arena
//   +----------+----------+---          +-------------+
//   | bucket 0 | bucket 1 | ..   chain  | bucket, 64 B| -> ..
//   +----------+----------+---   -----> +-------------+
//     |    |                            +--------+-----------+-------------+
//     |    +-- pointer slot ----------> | header | key bytes | value bytes |  records.h
//     |                                 +--------+-----------+-------------+
//     +-- inline pair, in the bucket itself (bucket.h)     | large
//                                                          v
//                                       +-----------------------------+
//                                       | key bytes | value bytes     |  an allocation of the arena
//                                       +-----------------------------+
//
// Where a pair lies. In the bucket if it has no deadline, takes at most inline_bytes_max, and the
//   bucket has room for it; else in a slab of 32 to 512 B; if it is longer than that, the slab says
//   where. A short pair in a slab costs one line more, as a chained bucket would, and less memory;
//   a split moves it into the bucket again. A key is in the chain of one bucket, at most once, and
//   is always compared in full.
// Growth is linear hashing: with n buckets, a key's is the low bits of its hash, one bit less where
//   that would be n or more. One bucket more, n, takes its items from bucket n - floor(n), floor(n)
//   being the largest power of two not above n. An insert adds two buckets at most, while there are
//   more than fill_slots slots wanted for each (what its pairs would take if all that may were
//   inline); inserts that come together may add their buckets together, which lie side by side
//   (Grow). A delete gives one up when there are fewer than 2/5 of that. So every operation's share
//   of growth is the items of one or two chains, a dozen or two; their records are fetched side by
//   side to hash their keys again. If the budget refuses, chains grow.
// Chains. A bucket that is full gets another one (spare_buckets.h). A delete moves items of the
//   last bucket of its chain into the gap, and a chained bucket that has become empty is unlinked.
// Failure. A write first takes all memory (Prepare) and then changes the table (Install), so that
//   nothing is ever half stored, and several pairs can be stored as one.
//
// Before a pair changes, the before-images of an open snapshot iterator are told
//   (before_images.h). A split or a merge changes no pair and no position (position.h), so they are
//   not told.
//
// Access. Everything but LineOf() needs the partition's lock, reads too (partition.h says why), and
// views of the table's memory are valid until the lock is released or the table is changed.
//
// Cost. A GET reads one line if the pair is inline, two if it has a record, and one more for each
// earlier bucket of the chain. A PUT reads and writes the same lines. A new pair takes the line of
// its bucket alone if it can lie inline there.
//
// Invariants. Verify() checks them.
//   T1  every bucket keeps those of bucket.h; a chained one is not empty.
//   T2  a key is in the chain its hash leads to, once; a pointer has its secondary hash.
//   T3  a pair that must not lie inline does not, and a record has the size of its slab.
//   T4  the counters and the slabs' account add up.
//   T5  the deadlines are those of the records.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/prefetch.h"
#include "engine/expiry_observer.h"
#include "hash/bucket.h"
#include "hash/bucket_array.h"
#include "hash/deadlines.h"
#include "hash/position.h"
#include "hash/record.h"
#include "hash/records.h"
#include "hash/slabs.h"
#include "hash/spare_buckets.h"
#include "skep/copy_bytes.h"

namespace skep::hash {

class BeforeImages;

inline constexpr uint32_t kWindow = 256;  // requests that are worked on side by side
using LinesToFetch = FetchList<2 * kWindow>;

struct TableOptions {
  uint32_t inline_bytes_max = 25;    // up to Bucket::kInlineBytesMax
  uint32_t fill_slots = 6;           // of the ten of a bucket of the index
  Prefaulter* prefaulter = nullptr;  // of the index (bucket_array.h); an engine gives its own
};

// It has 72 methods: every change of a pair touches its chain, the counters by which the table
// grows, the deadlines and the count of moves. Records, spare buckets, slabs and the index are
// classes of their own; table_growth.cc, table_lines.cc and table_verify.cc can be read alone.
class Table {
 public:
  // The place of a pair. Valid until the table is changed.
  struct Place {
    Bucket* bucket = nullptr;    // null: the key is absent
    Bucket* previous = nullptr;  // in the chain; null: it is the first bucket
    BucketItem item = {};
    explicit operator bool() const { return bucket != nullptr; }
  };

  // Where the search for a key goes on, as long as moves() does not change: at a record that is
  // most likely the key's, or at the next bucket of the chain; nowhere: the key is absent.
  class Lead {
   public:
    Lead() = default;
    Lead(SlabAddress at, bool is_record) : bits_(at | (is_record ? kRecord : 0)) {}
    SlabAddress at() const { return bits_ & kSlabAddressMax; }  // 0: nowhere
    bool is_record() const { return bits_ > kSlabAddressMax; }

   private:
    static constexpr uint32_t kRecord = kSlabAddressMax + 1;
    uint32_t bits_;
  };

  // Numbers of lines of memory, of 64 bytes each.
  struct Lines {
    uint32_t get;  // that a GET reads
    uint32_t put;  // that a PUT of a value of the same length reads and writes; 0: absent
  };

  // A pair whose memory is allocated, to be installed or dropped.
  struct Prepared {
    uint64_t hash;
    uint64_t deadline_ms;
    uint32_t key_bytes;
    uint32_t bytes;  // key and value
    bool is_inline;
    uint8_t size_class;  // of the record
    SlabAddress record;
    char pair[Bucket::kInlineBytesMax];  // the bytes of an inline pair
  };

  // All arguments must outlive the table.
  Table(Arena& arena, MemoryBudget& budget, const TableOptions& options);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Reserves address space; to be called first. Returns false if there is none.
  bool Reserve() { return index_.Reserve(); }

  // Returns the address of the key's first bucket now, to be fetched. Needs no lock.
  const void* LineOf(uint64_t hash) const { return &index_[BucketOf(hash)]; }
  // Returns the lead from a bucket that has no inline pair of the key. For any other bucket, it is
  // a guess of what to fetch.
  Lead LeadOf(const Bucket& bucket, const Key& key) const;
  // Adds the line that the lead's search reads next to the lines to fetch.
  void AddLine(const Lead& lead, LinesToFetch* lines) const {
    lines->AddIf(lead.at() != 0, slabs_.At(lead.at()));
  }
  Pair ReadRecord(SlabAddress record) const { return Record(slabs_.At(record)).Read(arena_); }
  const Bucket& ChainedBucket(SlabAddress at) const {
    return *reinterpret_cast<const Bucket*>(slabs_.At(at));
  }
  // Counts the pairs that come, go or move. A lead stays valid while the count does not change,
  // even if values are overwritten in place.
  uint64_t moves() const { return moves_; }
  static constexpr uint64_t kNoMoves = UINT64_MAX;  // moves() is never this

  // Starts fetching the beginning of the key's value if it is a large one; the record should be in
  // the cache by now.
  void PrefetchBody(const Key& key) const {
    if (records_.large() > 0) PrefetchLarge(key);
  }
  // Starts fetching the value if the search has led to the record of a large one.
  void PrefetchBody(const Lead& lead) const {
    if (records_.large() > 0 && lead.is_record()) records_.PrefetchBody(lead.at());
  }

  Place Find(const Key& key) { return FindFrom(&index_[BucketOf(key.hash)], nullptr, key); }
  // Find(), which goes on from a lead of the key's first bucket. The lead must hold, and be to a
  // chained bucket.
  Place FindOn(const Key& key, const Lead& lead) {
    return FindFrom(BucketAt(lead.at()), &index_[BucketOf(key.hash)], key);
  }
  // Returns the first bucket of the key's chain; inline pairs have no deadlines.
  const Bucket& FirstBucket(const Key& key) const { return index_[BucketOf(key.hash)]; }
  Pair Read(const Place& place) const;
  // Stores a pair without a deadline whose key is absent. Returns false, and changes nothing, if
  // there is no memory, or if the table is so far behind with its growth that it must grow first.
  // The leads of other keys stay valid, though moves() counts it. The caller must call Grow()
  // later.
  bool AddAbsent(const Key& key, std::string_view value);
  // Returns whether a pair that has a record should lie in the bucket that points to it: it may,
  // and there is room.
  bool FitsInstead(const Bucket& bucket, const Pair& pair) const {
    return IsInline(pair) && HasRoomInstead(bucket, pair);
  }
  // Returns what the key's operations cost now. Walks the chain by itself, for tests and figures.
  Lines LinesOf(const Key& key) const;

  // Returns the bytes of the value that Read() gave for this key, to be changed in place.
  std::span<char> Writable(const Key& key, std::string_view value) {
    BeforeChange(key.hash);
    return {const_cast<char*>(value.data()), value.size()};
  }

  // Stores or replaces a pair. The value may be a view of the old one. Returns false if there is no
  // memory; nothing is changed then.
  bool Store(const Key& key, std::string_view value, uint64_t deadline_ms, Arena::Limit limit) {
    return StoreAt(Find(key), key, value, deadline_ms, limit);
  }
  // Stores the pair of a key that is at this place, or absent.
  bool StoreAt(const Place& place, const Key& key, std::string_view value, uint64_t deadline_ms,
               Arena::Limit limit);
  // Changes the deadline and keeps the value. Does nothing if the key is absent.
  bool SetDeadline(const Key& key, uint64_t deadline_ms, Arena::Limit limit);
  // Returns false if the key is absent.
  bool Erase(const Key& key);
  // Erases the pairs in the chain of `hash` whose deadline is at or before `due_ms`, and tells the
  // observer, if there is one. Returns how many.
  size_t EraseDue(uint64_t hash, uint64_t due_ms, ExpiryObserver* observer = nullptr);
  // Both erase everything. Clear() is faster, but no pair may be prepared.
  void Clear();
  void EraseAll();

  // Copies the pair into memory of its own. Returns false if there is no memory.
  bool Prepare(const Key& key, std::string_view value, uint64_t deadline_ms, Arena::Limit limit,
               Prepared* prepared);
  // Stores a prepared pair, or replaces the key's pair by it. Cannot fail. `key` is the one that
  // was prepared.
  void Install(const Key& key, const Prepared& prepared);
  void Drop(const Prepared& prepared);

  // Calls visit(pair) for each pair of the chain that begins at this bucket of the index.
  template <typename Visit>
  void ForEachIn(uint64_t index, Visit visit) const;
  uint64_t bucket_count() const { return index_.count(); }

  // The chain that has the keys of a position, and the positions that it has: [begin, end).
  struct Chain {
    uint64_t index;
    Position begin, end;
  };
  Chain ChainAt(Position position) const;
  // Starts fetching the first buckets of the next `count` chains.
  void PrefetchChains(Position from, int count) const;

  // The before-images that are told before pairs change (before_images.h), or null.
  BeforeImages* before_images() const { return before_images_; }
  void set_before_images(BeforeImages* before_images) { before_images_ = before_images; }

  const TableOptions& options() const { return options_; }
  uint64_t items() const { return items_; }
  const Deadlines& deadlines() const { return deadlines_; }
  Deadlines& deadlines() { return deadlines_; }
  // Returns how much memory the table holds beside the arena's.
  uint64_t own_bytes() const { return index_.held_bytes() + deadlines_.bytes(); }
  uint64_t chained_buckets() const { return chained_; }

  // Adds buckets while the pairs want more slots than the buckets should serve, two at most for
  // each pair that was added since the last call.
  void Grow() {
    for (uint64_t left = 2 * std::exchange(added_, 0);
         left > 0 && wanted_slots_ > options_.fill_slots * index_.count(); --left) {
      if (!Split()) return;
    }
  }

  // Gives back memory that is kept for later operations. Bounded.
  void Trim();
  // Returns null, or a literal that names the broken invariant.
  const char* Verify() const;

 private:
  struct Tally;  // table_verify.cc

  uint64_t BucketOf(uint64_t hash) const { return index_.BucketOf(IndexOf(hash)); }
  Bucket* Next(const Bucket& bucket) const {
    return bucket.chain() == 0 ? nullptr : BucketAt(bucket.chain());
  }
  Bucket* BucketAt(SlabAddress at) const { return reinterpret_cast<Bucket*>(slabs_.At(at)); }
  Place FindFrom(Bucket* bucket, Bucket* previous, const Key& key);
  Pair ReadItem(const Bucket& bucket, BucketItem item) const;
  bool IsInline(const Pair& pair) const {
    return pair.deadline_ms == 0 &&
           pair.key.size() + pair.value.size() <= options_.inline_bytes_max;
  }

  // Whether the bucket has room for the pair inline, instead of the pointer to its record.
  static bool HasRoomInstead(const Bucket& bucket, const Pair& pair) {
    return bucket.room() + 1 >= Bucket::SlotsFor(pair.key.size() + pair.value.size());
  }
  // Returns how many slots a bucket that is large enough would have for the pair.
  uint64_t SlotsWanted(const Pair& pair) const {
    return IsInline(pair) ? Bucket::SlotsFor(pair.key.size() + pair.value.size()) : 1;
  }

  // To be called before the pair of a key changes; the hash of any key of the same chain will do.
  void BeforeChange(uint64_t hash) {
    if (before_images_ != nullptr) [[unlikely]]
      SaveBeforeImage(hash);
  }
  void SaveBeforeImage(uint64_t hash);
  void SaveBeforeImages();
  void PrefetchLarge(const Key& key) const;
  bool StoreInPlace(const Place& place, const Pair& pair, uint64_t hash);
  void InstallAt(const Place& place, const Key& key, const Prepared& prepared);
  void AddShort(Bucket* head, std::string_view key, std::string_view value, uint64_t hash);
  Bucket* MakeRoom(Bucket* head, uint32_t slots);
  Bucket* Extend(Bucket* last);
  void Remove(const Place& place, uint64_t hash);
  void CloseGap(const Place& place);
  void Unlink(Bucket* previous, Bucket* bucket);

  void FreePrepared(const Prepared& prepared);
  // Growth, table_growth.cc.
  void Shrink() {
    if (index_.count() > 1 && wanted_slots_ * 5 < options_.fill_slots * index_.count() * 2) Merge();
  }
  bool Split();
  void FetchRecords(const Bucket& bucket) const;
  void FetchForSplits(uint64_t next) const;
  void Divide(uint64_t bit, Bucket* low, Bucket* high);
  bool Merge();
  bool HoldTaken(uint32_t buckets);
  void TakeChain(uint64_t index);
  uint64_t HashOfItem(const Bucket& bucket, BucketItem item) const;
  void PutBack(const Bucket& from, BucketItem item, Bucket* head, uint64_t hash);
  void DrawIn(Bucket* bucket);

  const char* VerifyChain(uint64_t index, Tally* tally) const;
  const char* VerifyItem(const Bucket& bucket, BucketItem item, Tally* tally) const;

  BucketArray index_;  // first: every operation reads it
  BeforeImages* before_images_ = nullptr;
  Arena& arena_;
  const TableOptions options_;
  Arena::Cache cache_;
  Slabs slabs_;
  Records records_;
  SpareBuckets spares_;  // at least prepared_: each may need a bucket for its chain
  Deadlines deadlines_;
  uint64_t moves_ = 0;
  uint64_t items_ = 0;
  uint64_t wanted_slots_ = 0;  // wanted by all pairs
  uint64_t added_ = 0;         // number of pairs added since the last Grow()
  uint64_t chained_ = 0;       // number of buckets in chains
  uint32_t prepared_ = 0;      // number of pairs prepared, and not installed or dropped yet
  std::vector<Bucket> taken_;  // used by TakeChain
};

inline Pair Table::ReadItem(const Bucket& bucket, BucketItem item) const {
  if (!bucket.IsPair(item)) return ReadRecord(bucket.PointerAt(item.slot).address);
  const Bucket::Pair pair = bucket.PairOf(item);
  return {.key = pair.key, .value = pair.value};
}

inline Pair Table::Read(const Place& place) const { return ReadItem(*place.bucket, place.item); }

// Finds the key in the chain from this bucket on, which comes behind `previous`.
inline Table::Place Table::FindFrom(Bucket* bucket, Bucket* previous, const Key& key) {
  const uint32_t secondary = SecondaryOf(key.hash);
  for (; bucket != nullptr; bucket = Next(*bucket)) {
    if (const BucketItem item = bucket->Find(key); item.slots != 0) return {bucket, previous, item};
    for (uint32_t left = bucket->Match(secondary); left != 0; left &= left - 1) {
      const auto slot = static_cast<uint8_t>(std::countr_zero(left));
      if (IsSame(key, ReadRecord(bucket->PointerAt(slot).address).key)) {
        return {bucket, previous, {.slot = slot, .slots = 1}};
      }
    }
    previous = bucket;
  }
  return {};
}

// Has no branches: whether the lead is a record cannot be predicted.
inline Table::Lead Table::LeadOf(const Bucket& bucket, const Key& key) const {
  const uint32_t like = bucket.Match(SecondaryOf(key.hash));
  const SlabAddress chain = bucket.chain();
  const SlabAddress record = bucket.PointerAt(std::countr_zero(like | 1u << 9)).address;
  return {like != 0 ? record : chain, like != 0};
}

template <typename Visit>
void Table::ForEachIn(uint64_t index, Visit visit) const {
  for (const Bucket* bucket = &index_[index]; bucket != nullptr; bucket = Next(*bucket)) {
    bucket->ForEach([&](BucketItem item) { visit(ReadItem(*bucket, item)); });
  }
}

inline Table::Chain Table::ChainAt(Position position) const {
  const uint64_t index = index_.BucketOf(IndexAt(position));
  const uint64_t mask = std::bit_ceil(index_.count()) - 1;
  // A bucket whose other half does not exist yet has the keys of both.
  const bool is_split = (index | (mask + 1) / 2) < index_.count();
  const auto bits = static_cast<uint32_t>(std::bit_width(mask)) - (is_split ? 0 : 1);
  const Position begin = PositionOf(index);
  return {.index = index, .begin = begin, .end = begin + (kPositionEnd >> bits)};
}

}  // namespace skep::hash

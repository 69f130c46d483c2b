// table.h: the pairs of one leaf: a cuckoo hash table of pairs of fixed size (HeteroKV, section
// III-D).
//
//   buckets, in one to four chunks                                bitmap, apart: 1/32 of that
//   +------ one cache line ------+----------------------------+   +---------------------+
//   | key key .. | value value ..|                            |.. | a bit for each hash |
//   +----------------------------+----------------------------+   +---------------------+
//
// A small table is one chunk that is doubled as it grows; a large one grows by a chunk: what it has
// stays where it is, and what another one gives back it can take, so memory stays in huge pages.
//
// A key is in one of two buckets, its first and its second choice; the first if there was room. A
// pair that finds both full moves others to their other choice (breadth first, so the fewest).
//
// Empty slots. There is no room in a line for a mark. A slot is empty if it has the bucket's
// filler: a key that has neither choice there. Key 0 is the filler of all buckets but its own two
// choices, which have a key that has neither of them. So a search need not know what is empty.
//
// The bitmap has a bit for each key that was added (the paper's "indicate if a key is possible to
// exist", as a Bloom filter of one hash): a search that has not found its key in the first choice
// looks there before it fetches the second. Bits are not taken back with a key, but all are set
// anew when many keys have gone.
//
// Invariants. Verify() checks them.
//   T1  every key lies in one of its choices, and once
//   T2  the number of keys is items()
//   T3  the bit of every key is set
//
// Cost: a search touches one line, or two and a byte of the bitmap.
//
// Thread safety: its leaf's lock, but for Prefetch.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prefetch.h"
#include "hashleaf/bucket.h"
#include "hashleaf/key.h"
#include "hashleaf/memory.h"

namespace skep::hashleaf {

// What a test knows of a table beyond what others do (table_test.cc).
template <typename K>
struct TablePeer;

template <typename K>
class Table {
 public:
  static constexpr uint32_t kBytesMin = 4096;
  static constexpr uint32_t kChunksMax = 4;

  // Both must outlive it. Without memory until Resize.
  Table(Memory& memory, const Format& format)
      : format_(&format),
        chunks_{Block(memory), Block(memory), Block(memory), Block(memory)},
        bitmap_(memory) {}

  // The sizes of tables: kBytesMin times a power of two up to a chunk; then chunks.
  static uint32_t NextBytes(const Format& format, uint32_t bytes) {
    return bytes < format.chunk_bytes ? bytes * 2 : bytes + format.chunk_bytes;
  }
  // The smallest for so many items and a third as many more, up to `bytes_max`.
  static uint32_t BytesFor(const Format& format, uint32_t items, uint32_t bytes_max);
  // Takes a table of this size instead of what it has. There must be room for its items. False: no
  // memory, nothing is changed.
  bool Resize(uint32_t bytes, Arena::Limit limit);
  // Drops all pairs, and memory above kBytesMin.
  void Clear();

  uint32_t items() const { return items_; }
  // Of its buckets.
  uint32_t bytes() const { return buckets() * Format::kBucketBytes; }
  // More items than that are not added.
  uint32_t items_max() const { return items_max_; }
  // Of a table of so many bytes.
  static uint32_t ItemsMax(const Format& format, uint32_t bytes);

  // The value, or null. `hash` is the key's.
  std::byte* Find(K key, uint64_t hash) const;
  // The same of the first choice alone; null: it may be in the second.
  std::byte* FindFirst(K key, uint64_t hash) const;
  // Starts fetching what Find looks at when the first choice has not the key.
  void PrefetchSecond(uint64_t hash) const {
    FetchLine(bits_ + BitOf(hash) / 8);
    FetchLine(BucketAt(ChoicesOf(hash).second));
  }
  // Of a key that is not there. False: no room.
  bool Add(K key, uint64_t hash, const void* value);
  // False: it is not there.
  bool Erase(K key, uint64_t hash);

  // Moves the pairs above `key` to another one, which is empty and has room for them.
  void MoveAbove(K key, Table& to);
  // Adds all pairs of another one, whose keys it has not; it has room for them. Empties that.
  void MoveAll(Table& from);
  // All pairs get other places: when they have found none although there are few.
  void Rehash();

  // Calls visit(key, value's bytes) for every pair, in no order. It may change nothing.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t b = 0; b < buckets(); ++b) ForEachOf(b, visit);
  }
  // Of the n-th bucket.
  template <typename Visit>
  void ForEachOf(uint32_t b, Visit visit) const;
  uint32_t buckets() const { return buckets_.load(std::memory_order_relaxed); }
  // Calls visit(key, place) for every pair of the interval, in no order.
  template <typename Visit>
  void ForEachWithin(const Interval<K>& interval, Visit visit) const;
  // The value of a pair, by its place. Valid as long as nothing is changed.
  const std::byte* ValueOf(uint32_t place) const {
    return BucketAt(place / format_->slots) + format_->values_at +
           place % format_->slots * format_->value_bytes;
  }

  // Starts fetching the first choice. Any thread, without the lock: where the table has been
  // replaced meanwhile, that costs a fetch of some other line.
  void Prefetch(uint64_t hash) const;

  // Whether the key may be there. No: it is not.
  bool MayHave(uint64_t hash) const;

  // Moves of pairs to their other choice since the beginning.
  uint64_t kicks() const { return kicks_; }

  const char* Verify() const;

 private:
  friend struct TablePeer<K>;

  struct Choices {
    uint32_t first, second;
  };
  static Choices ChoicesOf(uint64_t hash, uint32_t salt, uint32_t buckets);
  Choices ChoicesOf(uint64_t hash) const { return ChoicesOf(hash, salt(), buckets()); }
  uint32_t salt() const { return salt_.load(std::memory_order_relaxed); }

  std::byte* BucketAt(uint32_t b) const {
    const uint32_t chunk = b >> format_->chunk_shift;
    const uint32_t in_chunk = b - (chunk << format_->chunk_shift);
    return at_[chunk].load(std::memory_order_relaxed) + size_t{in_chunk} * Format::kBucketBytes;
  }
  K KeyAt(const std::byte* bucket, uint32_t slot) const {
    K key;
    std::memcpy(&key, bucket + slot * sizeof(K), sizeof(K));
    return key;
  }
  std::byte* ValueAt(std::byte* bucket, uint32_t slot) const {
    return bucket + format_->values_at + slot * format_->value_bytes;
  }
  K FillerOf(uint32_t b) const { return b == home_.first || b == home_.second ? stranger_ : K{0}; }
  uint32_t EmptyIn(uint32_t b) const { return SlotsWith(BucketAt(b), FillerOf(b), format_->slots); }
  void Put(uint32_t b, uint32_t slot, K key, const void* value);
  void Clear(uint32_t b, uint32_t slot);
  bool Reserve(uint32_t bytes, Arena::Limit limit, std::array<Block, kChunksMax>* fresh);
  void Install(uint32_t bytes, std::array<Block, kChunksMax>& fresh, Block bitmap);
  void SetSalt(uint32_t salt);
  void Empty();
  bool AddTo(uint32_t b, K key, const void* value);
  bool MoveOneOut(Choices choices, uint32_t* b);
  void AddSurely(K key, uint64_t hash, const void* value);
  uint32_t BitOf(uint64_t hash) const;
  void SetBit(uint64_t hash);
  void RebuildBitmap();

  // What every search needs, 48 bytes: leaf.h has them in one line with its own. Prefetch reads
  // them without the lock, so relaxed: any mixture of what was and is there will do.
  const Format* format_;
  std::array<std::atomic<std::byte*>, kChunksMax> at_{};  // of each chunk
  std::atomic<uint32_t> salt_{0};
  std::atomic<uint32_t> buckets_{0};
  uint32_t items_ = 0;
  uint32_t items_max_ = 0;
  // Others.
  std::byte* bits_ = nullptr;
  Choices home_ = {0, 0};  // of key 0
  K stranger_ = 0;         // has neither of them
  uint32_t erased_ = 0;    // since the bitmap was set
  uint64_t kicks_ = 0;
  std::array<Block, kChunksMax> chunks_;
  Block bitmap_;
};

template <typename K>
inline Table<K>::Choices Table<K>::ChoicesOf(uint64_t hash, uint32_t salt, uint32_t buckets) {
  constexpr uint64_t kFirst = 0xd6e8feb86659fd93;
  constexpr uint64_t kSecond = 0xa0761d6478bd642f;
  const uint64_t h = hash ^ salt;
  const auto first = static_cast<uint32_t>((h * kFirst >> 32) * buckets >> 32);
  const auto second = static_cast<uint32_t>((h * kSecond >> 32) * buckets >> 32);
  if (first != second) [[likely]]
    return {first, second};
  return {first, first + 1 == buckets ? 0 : first + 1};
}

template <typename K>
inline void Table<K>::Prefetch(uint64_t hash) const {
  FetchLine(BucketAt(ChoicesOf(hash).first));
}

template <typename K>
inline uint32_t Table<K>::BitOf(uint64_t hash) const {
  constexpr uint64_t kBit = 0xe7037ed1a0b428db;
  const uint32_t bits = bytes() / 32 * 8;
  return static_cast<uint32_t>(((hash ^ salt()) * kBit >> 32) * bits >> 32);
}

template <typename K>
inline bool Table<K>::MayHave(uint64_t hash) const {
  const uint32_t bit = BitOf(hash);
  return (bits_[bit / 8] >> bit % 8 & std::byte{1}) != std::byte{0};
}

template <typename K>
inline std::byte* Table<K>::FindFirst(K key, uint64_t hash) const {
  std::byte* const bucket = BucketAt(ChoicesOf(hash).first);
  const uint32_t found = SlotsWith(bucket, key, format_->slots);
  return found == 0 ? nullptr : ValueAt(bucket, static_cast<uint32_t>(std::countr_zero(found)));
}

template <typename K>
inline std::byte* Table<K>::Find(K key, uint64_t hash) const {
  const Choices choices = ChoicesOf(hash);
  std::byte* bucket = BucketAt(choices.first);
  uint32_t found = SlotsWith(bucket, key, format_->slots);
  if (found == 0) {
    if (!MayHave(hash)) return nullptr;
    bucket = BucketAt(choices.second);
    found = SlotsWith(bucket, key, format_->slots);
    if (found == 0) return nullptr;
  }
  return ValueAt(bucket, static_cast<uint32_t>(std::countr_zero(found)));
}

template <typename K>
template <typename Visit>
inline void Table<K>::ForEachOf(uint32_t b, Visit visit) const {
  std::byte* const bucket = BucketAt(b);
  const K filler = FillerOf(b);
  for (uint32_t slot = 0; slot < format_->slots; ++slot) {
    const K key = KeyAt(bucket, slot);
    if (key != filler) visit(key, static_cast<const std::byte*>(ValueAt(bucket, slot)));
  }
}

template <typename K>
template <typename Visit>
inline void Table<K>::ForEachWithin(const Interval<K>& interval, Visit visit) const {
  for (uint32_t b = 0; b < buckets(); ++b) {
    const std::byte* const bucket = BucketAt(b);
    uint32_t found = SlotsWithin(bucket, interval.first, interval.last, format_->slots);
    if (found == 0) continue;
    const K filler = FillerOf(b);
    for (; found != 0; found &= found - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(found));
      const K key = KeyAt(bucket, slot);
      if (key != filler) visit(key, b * format_->slots + slot);
    }
  }
}

extern template class Table<uint32_t>;
extern template class Table<uint64_t>;
extern template class Table<Key128>;

}  // namespace skep::hashleaf

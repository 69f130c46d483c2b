// table.h: the pairs of one leaf, in a cuckoo hash table of pairs of fixed size (HeteroKV, section
// III-D).
//
//   buckets, in one to four chunks                                bitmap, apart: 1/32 of that
//   +------ one cache line ------+----------------------------+   +---------------------+
//   | key key .. | value value ..|                            |.. | a bit for each hash |
//   +----------------------------+----------------------------+   +---------------------+
//
// A small table is one chunk that is doubled as it grows; a large one grows by a chunk: its pairs
// stay where they are, and one table can take the chunk that another one gives back, so memory
// stays on huge pages.
//
// A key is in one of two buckets, its first and its second choice; in the first if there was room.
// A pair that finds both full moves other pairs to their other choice (breadth first, so the
// fewest).
//
// Empty slots. A line has no room for a mark. A slot is empty if it has the bucket's filler: a key
// that has neither of its choices there. Key 0 is the filler of all buckets but its own two
// choices, whose filler is a key that has neither of them. So a search need not know which slots
// are empty.
//
// The bitmap has a bit for each key that was added (the paper's "indicate if a key is possible to
// exist", as a Bloom filter of one hash): a search that has not found its key in the first choice
// reads it before it fetches the second. Bits are not cleared with a key, but all are set anew when
// many keys have been erased.
//
// Invariants. Verify() checks them.
//   T1  every key lies in one of its choices, and once
//   T2  the number of keys is items()
//   T3  the bit of every key is set
//
// Cost: a search touches one line, or two and a byte of the bitmap.
//
// Thread safety: the leaf's lock protects it, except Prefetch.
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

// Gives tests access to a table's internals (table_test.cc).
template <typename K>
struct TablePeer;

// It has 46 methods: search, growth and the bitmap all depend on where a key's two choices are, so
// on the salt, the number of buckets and the chunks, which change together.
template <typename K>
class Table {
 public:
  static constexpr uint32_t kBytesMin = 4096;
  static constexpr uint32_t kChunksMax = 4;

  // Both arguments must outlive the table. It has no memory until Resize.
  Table(Memory& memory, const Format& format)
      : format_(&format),
        chunks_{Block(memory), Block(memory), Block(memory), Block(memory)},
        bitmap_(memory) {}

  // Returns the next size of a table: sizes are kBytesMin times a power of two up to a chunk; then
  // chunks.
  static uint32_t NextBytes(const Format& format, uint32_t bytes) {
    return bytes < format.chunk_bytes ? bytes * 2 : bytes + format.chunk_bytes;
  }
  // Returns the smallest size for so many items and a third as many more, up to `bytes_max`.
  static uint32_t BytesFor(const Format& format, uint32_t items, uint32_t bytes_max);
  // Moves the pairs to a table of this size, which must have room for them. Returns false, and
  // changes nothing, if there is no memory.
  bool Resize(uint32_t bytes, Arena::Limit limit);
  // Drops all pairs, and memory above kBytesMin.
  void Clear();

  uint32_t items() const { return items_; }
  // Returns the bytes of the table's buckets.
  uint32_t bytes() const { return buckets() * Format::kBucketBytes; }
  // Returns how many items the table may have.
  uint32_t items_max() const { return items_max_; }
  // Returns how many items a table of so many bytes may have.
  static uint32_t ItemsMax(const Format& format, uint32_t bytes);

  // Returns the value, or null. `hash` is the key's.
  std::byte* Find(K key, uint64_t hash) const;
  // Looks in the first choice alone; null: the key may be in the second.
  std::byte* FindFirst(K key, uint64_t hash) const;
  // Starts fetching what Find reads when the first choice lacks the key.
  void PrefetchSecond(uint64_t hash) const {
    FetchLine(bits_ + BitOf(hash) / 8);
    FetchLine(BucketAt(ChoicesOf(hash).second));
  }
  // Adds a key that is not in the table. Returns false if there is no room.
  bool Add(K key, uint64_t hash, const void* value);
  // Returns false if the key is not in the table.
  bool Erase(K key, uint64_t hash);

  // Moves the pairs above `key` to another table, which is empty and has room for them.
  void MoveAbove(K key, Table& to);
  // Moves all pairs of another table here, which has room for them and none of their keys.
  void MoveAll(Table& from);
  // Gives all pairs other places: for a table that is far from full and yet has no place for a
  // pair.
  void Rehash();

  // Calls visit(key, value's bytes) for every pair, in no order. It must not change the table.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t b = 0; b < buckets(); ++b) ForEachOf(b, visit);
  }
  // Visits the pairs of the b-th bucket.
  template <typename Visit>
  void ForEachOf(uint32_t b, Visit visit) const;
  uint32_t buckets() const { return buckets_.load(std::memory_order_relaxed); }
  // Calls visit(key, place) for every pair of the interval, in no order.
  template <typename Visit>
  void ForEachWithin(const Interval<K>& interval, Visit visit) const;
  // Returns the value of the pair at a place. Valid until the table is changed.
  const std::byte* ValueOf(uint32_t place) const {
    return BucketAt(place / format_->slots) + format_->values_at +
           place % format_->slots * format_->value_bytes;
  }

  // Starts fetching the first choice. Any thread may call it, without the lock: if the table has
  // been replaced meanwhile, it fetches some other line.
  void Prefetch(uint64_t hash) const;

  // Returns whether the key may be in the table; false: it is not.
  bool MayHave(uint64_t hash) const;

  // Returns how many pairs were moved to their other choice since the beginning.
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

  // The fields that every search reads, 48 bytes, which share a line with fields of the leaf
  // (leaf.h). Prefetch reads them without the lock, so relaxed: any mixture of old and new values
  // will do.
  const Format* format_;
  std::array<std::atomic<std::byte*>, kChunksMax> at_{};  // of each chunk
  std::atomic<uint32_t> salt_{0};
  std::atomic<uint32_t> buckets_{0};
  uint32_t items_ = 0;
  uint32_t items_max_ = 0;
  // The fields that not every search reads.
  std::byte* bits_ = nullptr;
  Choices home_ = {0, 0};  // the two choices of key 0
  K stranger_ = 0;         // a key with neither of these choices: their filler
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

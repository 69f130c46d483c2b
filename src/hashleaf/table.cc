#include "hashleaf/table.h"

#include <algorithm>

#include "base/check.h"

namespace skep::hashleaf {
namespace {

// Pairs that are taken out of a table and put in again.
template <typename K>
struct Pairs {
  std::vector<K> keys;
  std::vector<std::byte> values;
};

template <typename K>
Pairs<K> PairsOf(const Table<K>& table, uint32_t value_bytes) {
  Pairs<K> pairs;
  pairs.keys.reserve(table.items());
  pairs.values.reserve(size_t{table.items()} * value_bytes);
  table.ForEach([&](K key, const std::byte* value) {
    pairs.keys.push_back(key);
    pairs.values.insert(pairs.values.end(), value, value + value_bytes);
  });
  return pairs;
}

}  // namespace

template <typename K>
uint32_t Table<K>::ItemsMax(const Format& format, uint32_t bytes) {
  // Of 100 slots, how many two choices of buckets of so many slots fill without long searches.
  constexpr uint32_t kFull[] = {0, 0, 72, 82, 85, 86, 87, 88, 88};
  const uint32_t buckets = bytes / Format::kBucketBytes;
  return buckets * format.slots * kFull[format.slots] / 100;
}

template <typename K>
uint32_t Table<K>::BytesFor(const Format& format, uint32_t items, uint32_t bytes_max) {
  uint32_t bytes = kBytesMin;
  while (bytes < bytes_max && ItemsMax(format, bytes) < items + items / 3) {
    bytes = NextBytes(format, bytes);
  }
  return bytes;
}

// Allocates the chunks that a table of this size needs and this one lacks. Returns false if there
// is no memory.
template <typename K>
bool Table<K>::Reserve(uint32_t bytes, Arena::Limit limit, std::array<Block, kChunksMax>* fresh) {
  const uint32_t chunk_bytes = std::min(bytes, format_->chunk_bytes);
  for (uint32_t i = 0; i < bytes / chunk_bytes; ++i) {
    if (chunks_[i].bytes() == chunk_bytes) continue;
    if (!(*fresh)[i].Allocate(chunk_bytes, limit)) return false;
  }
  return true;
}

// Installs the chunks and the bitmap, without pairs.
template <typename K>
void Table<K>::Install(uint32_t bytes, std::array<Block, kChunksMax>& fresh, Block bitmap) {
  const uint32_t chunk_bytes = std::min(bytes, format_->chunk_bytes);
  for (uint32_t i = 0; i < kChunksMax; ++i) {
    if (fresh[i].bytes() != 0) chunks_[i] = std::move(fresh[i]);
    if (i >= bytes / chunk_bytes) chunks_[i].Drop();
    at_[i].store(chunks_[i].data(), std::memory_order_relaxed);
  }
  bitmap_ = std::move(bitmap);
  bits_ = bitmap_.data();
  buckets_.store(bytes / Format::kBucketBytes, std::memory_order_relaxed);
  items_max_ = ItemsMax(*format_, bytes);
  SetSalt(0);
  Empty();
}

template <typename K>
bool Table<K>::Resize(uint32_t bytes, Arena::Limit limit) {
  Memory& memory = bitmap_.memory();
  std::array<Block, kChunksMax> fresh = {Block(memory), Block(memory), Block(memory),
                                         Block(memory)};
  Block bitmap(memory);
  if (!Reserve(bytes, limit, &fresh) || !bitmap.Allocate(bytes / 32, limit)) return false;
  const Pairs<K> pairs = PairsOf(*this, format_->value_bytes);
  SKEP_CHECK(pairs.keys.size() <= ItemsMax(*format_, bytes));
  Install(bytes, fresh, std::move(bitmap));
  for (size_t i = 0; i < pairs.keys.size(); ++i) {
    AddSurely(pairs.keys[i], HashOf(pairs.keys[i], format_->secret),
              pairs.values.data() + i * format_->value_bytes);
  }
  return true;
}

template <typename K>
void Table<K>::Clear() {
  Memory& memory = bitmap_.memory();
  std::array<Block, kChunksMax> fresh = {Block(memory), Block(memory), Block(memory),
                                         Block(memory)};
  Block bitmap(memory);
  if (bytes() > kBytesMin && Reserve(kBytesMin, Arena::Limit::kExceed, &fresh) &&
      bitmap.Allocate(kBytesMin / 32, Arena::Limit::kExceed)) {
    return Install(kBytesMin, fresh, std::move(bitmap));
  }
  Empty();
}

template <typename K>
void Table<K>::SetSalt(uint32_t salt) {
  salt_.store(salt, std::memory_order_relaxed);
  home_ = ChoicesOf(HashOf(K{0}, format_->secret));
  for (stranger_ = 1;; ++stranger_) {
    const Choices other = ChoicesOf(HashOf(stranger_, format_->secret));
    const auto is_home = [&](uint32_t b) { return b == home_.first || b == home_.second; };
    if (!is_home(other.first) && !is_home(other.second)) return;
  }
}

// Empties all slots, and the bitmap.
template <typename K>
void Table<K>::Empty() {
  items_ = 0;
  erased_ = 0;
  for (const Block& chunk : chunks_) {
    if (chunk.bytes() != 0) std::memset(chunk.data(), 0, chunk.bytes());
  }
  std::memset(bits_, 0, bitmap_.bytes());
  for (const uint32_t b : {home_.first, home_.second}) {
    for (uint32_t slot = 0; slot < format_->slots; ++slot) Clear(b, slot);
  }
}

template <typename K>
void Table<K>::Put(uint32_t b, uint32_t slot, K key, const void* value) {
  std::byte* const bucket = BucketAt(b);
  std::memcpy(bucket + slot * sizeof(K), &key, sizeof(K));
  CopyValue(ValueAt(bucket, slot), value, format_->value_bytes);
}

template <typename K>
void Table<K>::Clear(uint32_t b, uint32_t slot) {
  const K filler = FillerOf(b);
  std::memcpy(BucketAt(b) + slot * sizeof(K), &filler, sizeof(K));
}

template <typename K>
void Table<K>::SetBit(uint64_t hash) {
  const uint32_t bit = BitOf(hash);
  bits_[bit / 8] |= std::byte{1} << bit % 8;
}

template <typename K>
void Table<K>::RebuildBitmap() {
  std::memset(bits_, 0, bitmap_.bytes());
  ForEach([&](K key, const std::byte*) { SetBit(HashOf(key, format_->secret)); });
  erased_ = 0;
}

// Returns false if the bucket is full.
template <typename K>
bool Table<K>::AddTo(uint32_t b, K key, const void* value) {
  const uint32_t empty = EmptyIn(b);
  if (empty == 0) return false;
  Put(b, static_cast<uint32_t>(std::countr_zero(empty)), key, value);
  return true;
}

template <typename K>
bool Table<K>::Add(K key, uint64_t hash, const void* value) {
  if (items_ >= items_max_) return false;
  const Choices choices = ChoicesOf(hash);
  if (!AddTo(choices.first, key, value) && !AddTo(choices.second, key, value)) {
    uint32_t b;
    if (!MoveOneOut(choices, &b)) return false;
    AddTo(b, key, value);
  }
  SetBit(hash);
  ++items_;
  return true;
}

// Makes a slot empty in one of two full buckets, *b. The search is breadth first: it finds a
// shortest path, so no bucket is on the path twice.
template <typename K>
bool Table<K>::MoveOneOut(Choices choices, uint32_t* b) {
  struct Step {
    uint32_t bucket;
    uint16_t from;  // the step before this one
    uint16_t slot;  // of that step's bucket: the pair that may move here
  };
  constexpr uint32_t kStepsMax = 500;
  constexpr uint16_t kNone = UINT16_MAX;
  std::array<Step, kStepsMax> steps;
  steps[0] = {.bucket = choices.first, .from = kNone, .slot = 0};
  steps[1] = {.bucket = choices.second, .from = kNone, .slot = 0};
  uint32_t count = 2;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t slot = 0; slot < format_->slots; ++slot) {
      uint32_t bucket = steps[i].bucket;
      const Choices both = ChoicesOf(HashOf(KeyAt(BucketAt(bucket), slot), format_->secret));
      const uint32_t other = both.first == bucket ? both.second : both.first;
      const uint32_t empty = EmptyIn(other);
      if (empty == 0) {
        if (count == kStepsMax) continue;
        steps[count++] = {
            .bucket = other, .from = static_cast<uint16_t>(i), .slot = static_cast<uint16_t>(slot)};
        continue;
      }
      // Goes back along the path: each pair moves into the slot that has just become empty.
      uint32_t to = other;
      uint32_t to_slot = static_cast<uint32_t>(std::countr_zero(empty));
      uint32_t from_slot = slot;
      for (uint16_t at = static_cast<uint16_t>(i);; at = steps[at].from) {
        bucket = steps[at].bucket;
        std::byte* const line = BucketAt(bucket);
        Put(to, to_slot, KeyAt(line, from_slot), ValueAt(line, from_slot));
        Clear(bucket, from_slot);
        ++kicks_;
        if (steps[at].from == kNone) break;
        to = bucket;
        to_slot = from_slot;
        from_slot = steps[at].slot;
      }
      *b = bucket;
      return true;
    }
  }
  return false;
}

template <typename K>
void Table<K>::AddSurely(K key, uint64_t hash, const void* value) {
  while (!Add(key, hash, value)) Rehash();
}

template <typename K>
void Table<K>::Rehash() {
  constexpr int kTriesMax = 1000;
  const Pairs<K> pairs = PairsOf(*this, format_->value_bytes);
  for (int tries = 0;; ++tries) {
    SKEP_CHECK(tries < kTriesMax);
    SetSalt(salt() + 0x9e3779b9);
    Empty();
    size_t i = 0;
    while (i < pairs.keys.size() && Add(pairs.keys[i], HashOf(pairs.keys[i], format_->secret),
                                        pairs.values.data() + i * format_->value_bytes)) {
      ++i;
    }
    if (i == pairs.keys.size()) return;
  }
}

template <typename K>
bool Table<K>::Erase(K key, uint64_t hash) {
  const Choices choices = ChoicesOf(hash);
  for (const uint32_t b : {choices.first, choices.second}) {
    const uint32_t found = SlotsWith(BucketAt(b), key, format_->slots);
    if (found == 0) continue;
    Clear(b, static_cast<uint32_t>(std::countr_zero(found)));
    --items_;
    if (++erased_ > items_max_ / 4) RebuildBitmap();
    return true;
  }
  return false;
}

template <typename K>
void Table<K>::MoveAbove(K key, Table& to) {
  for (uint32_t b = 0; b < buckets(); ++b) {
    std::byte* const bucket = BucketAt(b);
    const K filler = FillerOf(b);
    for (uint32_t slot = 0; slot < format_->slots; ++slot) {
      const K moved = KeyAt(bucket, slot);
      if (moved <= key || moved == filler) continue;
      to.AddSurely(moved, HashOf(moved, format_->secret), ValueAt(bucket, slot));
      Clear(b, slot);
      --items_;
    }
  }
  RebuildBitmap();
}

template <typename K>
void Table<K>::MoveAll(Table& from) {
  from.ForEach(
      [&](K key, const std::byte* value) { AddSurely(key, HashOf(key, format_->secret), value); });
  from.Clear();
}

template <typename K>
const char* Table<K>::Verify() const {
  uint32_t items = 0;
  const char* broken = nullptr;
  for (uint32_t b = 0; b < buckets(); ++b) {
    ForEachOf(b, [&](K key, const std::byte*) {
      ++items;
      const uint64_t hash = HashOf(key, format_->secret);
      const Choices choices = ChoicesOf(hash);
      const uint32_t found =
          static_cast<uint32_t>(
              std::popcount(SlotsWith(BucketAt(choices.first), key, format_->slots))) +
          static_cast<uint32_t>(
              std::popcount(SlotsWith(BucketAt(choices.second), key, format_->slots)));
      if (found != 1 || (b != choices.first && b != choices.second)) {
        broken = "T1: a key lies in one of its choices, once";
      }
      if (!MayHave(hash)) broken = "T3: the bit of every key is set";
    });
  }
  if (items != items_) broken = "T2: items() is the number of keys";
  return broken;
}

template class Table<uint32_t>;
template class Table<uint64_t>;
template class Table<Key128>;

}  // namespace skep::hashleaf

// How a table grows and shrinks, by a bucket at a time (linear hashing).
#include <new>

#include "hash/table.h"

namespace skep::hash {

bool Table::Split() {
  const uint64_t count = index_.count();
  const uint64_t bit = std::bit_floor(count);
  const uint64_t from = count - bit;
  if (index_[from].chain() == 0) {
    if (!index_.Add()) return false;
    SplitBucket(bit, &index_[from], &index_[count]);
  } else if (!SplitChain(bit, from)) {
    return false;
  }
  DrawIn(&index_[from]);
  DrawIn(&index_[count]);
  // The line of the bucket that is split next was fetched by the split before this one.
  index_.Prefetch(from + 2);
  FetchRecords(index_[from + 1]);
  return true;
}

void Table::FetchRecords(const Bucket& bucket) const {
  for (uint32_t left = bucket.pointers(); left != 0; left &= left - 1) {
    FetchLine(slabs_.At(bucket.PointerAt(static_cast<uint32_t>(std::countr_zero(left))).address));
  }
}

// Moves the items whose hash has this bit from a bucket that has no chain to an empty one.
void Table::SplitBucket(uint64_t bit, Bucket* low, Bucket* high) {
  ++moves_;
  const Bucket old = *low;
  *low = Bucket{};
  old.ForEach([&](BucketItem item) {
    Bucket* const to = (HashOfItem(old, item) & bit) != 0 ? high : low;
    to->Add(old, item);
  });
}

// Adds a bucket, and moves those items of a chain to it whose hash has this bit.
bool Table::SplitChain(uint64_t bit, uint64_t from) {
  uint32_t chained = 0;
  for (const Bucket* at = &index_[from]; (at = Next(*at)) != nullptr;) ++chained;
  if (!HoldTaken(chained + 1)) return false;
  // Each half of a split may need as many chained buckets as the whole.
  if (!spares_.Hold(prepared_ + chained, Arena::Limit::kObey) || !index_.Add()) return false;
  TakeChain(from);
  for (const Bucket& bucket : taken_) {
    bucket.ForEach([&](BucketItem item) {
      const uint64_t hash = HashOfItem(bucket, item);
      PutBack(bucket, item, &index_[(hash & bit) != 0 ? from + bit : from], hash);
    });
  }
  spares_.Trim(prepared_ + 1);
  return true;
}

bool Table::Merge() {
  const uint64_t last = index_.count() - 1;
  const uint64_t into = last - std::bit_floor(last);
  uint32_t buckets = 1;
  for (const Bucket* at = &index_[last]; (at = Next(*at)) != nullptr;) ++buckets;
  if (!HoldTaken(buckets) || !spares_.Hold(prepared_ + 1, Arena::Limit::kObey)) return false;
  TakeChain(last);
  index_.RemoveLast();
  for (const Bucket& bucket : taken_) {
    bucket.ForEach(
        [&](BucketItem item) { PutBack(bucket, item, &index_[into], HashOfItem(bucket, item)); });
  }
  spares_.Trim(prepared_ + 1);
  return true;
}

// Makes room in taken_, so that nothing can fail once a chain is taken out. Returns false if there
// is no memory.
bool Table::HoldTaken(uint32_t buckets) {
  try {
    taken_.reserve(buckets);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Moves the buckets of a chain to taken_, and starts fetching their records. Returns how many were
// chained.
uint32_t Table::TakeChain(uint64_t index) {
  ++moves_;
  taken_.clear();
  taken_.push_back(index_[index]);
  index_[index] = Bucket{};
  while (const SlabAddress at = taken_.back().chain()) {
    taken_.push_back(*BucketAt(at));
    spares_.Add(at);
    --chained_;
  }
  for (const Bucket& bucket : taken_) FetchRecords(bucket);
  return static_cast<uint32_t>(taken_.size() - 1);
}

uint64_t Table::HashOfItem(const Bucket& bucket, BucketItem item) const {
  return HashOf(ReadItem(bucket, item).key);
}

void Table::PutBack(const Bucket& from, BucketItem item, Bucket* head, uint64_t hash) {
  if (!from.IsPair(item)) {
    MakeRoom(head, 1)->Add(from, item);
  } else {
    const Bucket::Pair pair = from.PairOf(item);
    AddShort(head, pair.key, pair.value, hash);
  }
}

// Moves pairs from slabs into this bucket, where they lay for want of room in it.
void Table::DrawIn(Bucket* bucket) {
  if (bucket->chain() != 0 || bucket->pointers() == 0) return;
  // The last one first: removing an item moves those behind it.
  for (uint32_t left = bucket->pointers(); left != 0;) {
    const auto slot = static_cast<uint32_t>(std::bit_width(left) - 1);
    left &= ~(1u << slot);
    const Bucket::Pointer pointer = bucket->PointerAt(slot);
    const Pair pair = ReadRecord(pointer.address);
    if (!IsInline(pair) || SlotsWanted(pair) > bucket->room() + 1) continue;
    bucket->Remove({.slot = static_cast<uint8_t>(slot), .slots = 1});
    bucket->AddPair(pair.key, pair.value);
    records_.Free(pointer);
  }
}

}  // namespace skep::hash

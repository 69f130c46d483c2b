// How a table grows and shrinks, by a bucket at a time (linear hashing).
#include <new>

#include "hash/table.h"

namespace skep::hash {

// Adds a bucket, and moves those items to it from its other half whose hash has the bit that tells
// the two apart.
bool Table::Split() {
  const uint64_t count = index_.count();
  const uint64_t bit = std::bit_floor(count);
  const uint64_t from = count - bit;
  uint32_t chained = 0;
  for (const Bucket* at = &index_[from]; (at = Next(*at)) != nullptr;) ++chained;
  if (!HoldTaken(chained + 1)) return false;
  if (!spares_.Hold(prepared_ + chained, Arena::Limit::kObey) || !index_.Add()) return false;
  TakeChain(from);
  Divide(bit, &index_[from], &index_[count]);
  spares_.Trim(prepared_ + 1);
  DrawIn(&index_[from]);
  DrawIn(&index_[count]);
  FetchForSplits(from + 1);
  return true;
}

// Starts fetching what the next splits read, of which this bucket comes first. Each split asks for
// the lines that the split before it has found the addresses of: a bucket, then what it points to,
// then what its chained bucket points to.
void Table::FetchForSplits(uint64_t next) const {
  index_.Prefetch(next + 2);
  if (next + 1 >= index_.count()) return;
  const Bucket& second = index_[next + 1];
  FetchRecords(second);
  if (const Bucket* const chained = Next(second)) FetchLine(chained);
  if (const Bucket* const chained = Next(index_[next])) FetchRecords(*chained);
}

void Table::FetchRecords(const Bucket& bucket) const {
  for (uint32_t left = bucket.pointers(); left != 0; left &= left - 1) {
    FetchLine(slabs_.At(bucket.PointerAt(static_cast<uint32_t>(std::countr_zero(left))).address));
  }
}

// Divides the items of a chain that was taken out between two empty buckets, in the order of the
// chain; `high` gets those whose hash has the bit. Neither needs more chained buckets than the
// chain had: an item goes into the first bucket that has room, at the latest into the place of its
// old bucket, where only items of that bucket can have come before it.
void Table::Divide(uint64_t bit, Bucket* low, Bucket* high) {
  for (const Bucket& bucket : taken_) {
    const uint32_t pairs = bucket.pairs();
    for (uint32_t left = pairs | bucket.pointers(); left != 0; left &= left - 1) {
      const BucketItem item = bucket.ItemAt(static_cast<uint32_t>(std::countr_zero(left)));
      const bool is_pair = (pairs >> item.slot & 1) != 0;
      const Pair pair = is_pair ? Pair{.key = bucket.PairOf(item).key}
                                : ReadRecord(bucket.PointerAt(item.slot).address);
      const uint64_t hash = HashOf(pair.key);
      Bucket* const to = (hash & bit) != 0 ? high : low;
      if (to->room() >= item.slots) {
        to->Add(bucket, item);
      } else if (is_pair) {
        AddShort(to, pair.key, bucket.PairOf(item).value, hash);
      } else {
        MakeRoom(to, 1)->Add(bucket, item);
      }
    }
  }
}

bool Table::Merge() {
  const uint64_t last = index_.count() - 1;
  const uint64_t into = last - std::bit_floor(last);
  uint32_t buckets = 1;
  for (const Bucket* at = &index_[last]; (at = Next(*at)) != nullptr;) ++buckets;
  if (!HoldTaken(buckets) || !spares_.Hold(prepared_ + 1, Arena::Limit::kObey)) return false;
  TakeChain(last);
  for (const Bucket& bucket : taken_) FetchRecords(bucket);
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

// Moves the buckets of a chain to taken_.
void Table::TakeChain(uint64_t index) {
  ++moves_;
  taken_.clear();
  taken_.push_back(index_[index]);
  index_[index] = Bucket{};
  while (const SlabAddress at = taken_.back().chain()) {
    taken_.push_back(*BucketAt(at));
    spares_.Add(at);
    --chained_;
  }
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

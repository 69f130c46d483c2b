#include "pool/hash_index.h"

#include <algorithm>

#include "base/check.h"

namespace skep::pool {
namespace {

// The depth of a bucket before the split that makes the bucket `made`.
uint32_t DepthOfSplit(uint64_t made) { return static_cast<uint32_t>(std::bit_width(made) - 1); }
// The bucket that is split.
uint64_t SplitBy(uint64_t made) { return LowBits(made, DepthOfSplit(made)); }

}  // namespace

Result<std::unique_ptr<HashIndex>> HashIndex::Create(const HashIndexMemory& memory,
                                                     const HashIndexOptions& options) {
  if (options.items_per_bucket == 0 || options.first_depth > kDepthMax ||
      memory.table.size() < uint64_t{1} << options.first_depth) {
    return Fail(Code::kInvalidArgument, "a hash index needs room for its first buckets");
  }
  const size_t buckets = memory.table.size() + memory.overflow.size();
  auto keys = PageRegion::Reserve(buckets * sizeof(SlotKeys), Pages::kHuge);
  if (!keys) return Fail(keys.error());
  return std::unique_ptr<HashIndex>(new HashIndex(memory, options, std::move(*keys)));
}

HashIndex::HashIndex(const HashIndexMemory& memory, const HashIndexOptions& options,
                     PageRegion keys)
    : options_(options),
      bucket_count_(*memory.bucket_count),
      table_(memory.table),
      overflow_(memory.overflow),
      keys_(std::move(keys)),
      table_keys_(reinterpret_cast<SlotKeys*>(keys_.begin())),
      overflow_keys_(table_keys_ + table_.size()) {
  const uint64_t buckets = uint64_t{1} << options_.first_depth;
  for (uint64_t i = 0; i < buckets; ++i) {
    Store(table_[i].link, Link(options_.first_depth, 0).bits());
  }
  cleared_ = buckets;
  Publish(buckets);
}

bool HashIndex::View::IsEmpty() const {
  for (uint32_t i = 0; i < kBucketSlots; ++i) {
    if (slot(i)) return false;
  }
  return true;
}

HashIndex::Place HashIndex::FindPlace(View chain, const KeyDigest& key) const {
  const auto index = static_cast<uint32_t>(key.index);
  for (View at = chain; at; at = NextOf(at)) {
    for (uint32_t i = 0; i < kBucketSlots; ++i) {
      if (at.slot(i).signature() == key.signature() && at.keys->tags[i] == key.tag &&
          at.keys->indexes[i] == index) {
        return {at, i};
      }
    }
  }
  return {};
}

Slot HashIndex::Find(const KeyDigest& key) const {
  const Place place = FindPlace(ChainOf(key), key);
  return place ? place.slot() : Slot();
}

Result<Slot> HashIndex::Set(const KeyDigest& key, Slot slot) {
  SKEP_DCHECK(slot.signature() == key.signature());
  const View chain = ChainOf(key);
  if (const Place place = FindPlace(chain, key)) {
    const Slot before = place.slot();
    Store(place.word(), slot.bits());  // G1
    return before;
  }
  if (!Insert(chain, KeyOf(key), slot)) {
    return Fail(Code::kOutOfMemory, "the hash index has no free overflow bucket", overflow_.size());
  }
  ++items_;
  if (IsFullWith(items_)) Split();
  return Slot();
}

Slot HashIndex::Remove(const KeyDigest& key) {
  const View chain = ChainOf(key);
  const Place place = FindPlace(chain, key);
  if (!place) return Slot();
  const Slot before = place.slot();
  Store(place.word(), 0);
  --items_;
  UnlinkEmptyTail(chain);
  return before;
}

// A leftover's slot is not free, as its word is not zero (G4).
bool HashIndex::Insert(View chain, const SlotKey& key, Slot slot) {
  View last;
  for (View at = chain; at; at = NextOf(at)) {
    for (uint32_t i = 0; i < kBucketSlots; ++i) {
      if (at.slot(i)) continue;
      Fill({at, i}, key, slot);
      return true;
    }
    last = at;
  }
  return Append(last, key, slot);
}

bool HashIndex::Append(View last, const SlotKey& key, Slot slot) {
  const std::optional<uint64_t> number = TakeOverflow();
  if (!number) return false;
  const View added = OverflowBucket(*number);
  const uint32_t depth = last.link().depth();
  Store(added.bucket->link, Link(depth, 0).bits());
  Fill({added, 0}, key, slot);
  Store(last.bucket->link, Link(depth, *number + 1).bits());  // G2: added is whole
  ++overflow_linked_;
  return true;
}

void HashIndex::Fill(Place place, const SlotKey& key, Slot slot) {
  place.at.keys->tags[place.i] = key.tag;
  place.at.keys->indexes[place.i] = key.index;
  Store(place.word(), slot.bits());
}

bool HashIndex::Split() {
  const uint64_t made = buckets_;
  if (made == table_.size() || DepthOfSplit(made) == kDepthMax) return false;
  if (!HasOverflowFor(made)) return false;
  // G3. Whoever reads the new depth finds the new chain whole.
  MoveKeys(made);
  RaiseDepth(made);
  Publish(made + 1);
  return true;
}

bool HashIndex::Grow(uint64_t items, uint32_t splits) {
  for (; IsFullWith(items) && splits > 0; --splits) {
    if (!Split()) return true;
  }
  return !IsFullWith(items);
}

// Words of the chain whose keys the split that makes this bucket moves, or has moved. Those that an
// earlier split left differ from `made` in a lower bit.
template <typename Visit>
void HashIndex::ForEachMoved(uint64_t made, Visit visit) const {
  const uint32_t depth = DepthOfSplit(made) + 1;
  for (View at = TableBucket(SplitBy(made)); at; at = NextOf(at)) {
    for (uint32_t i = 0; i < kBucketSlots; ++i) {
      if (at.slot(i) && LowBits(at.keys->indexes[i], depth) == made) visit(Place{at, i});
    }
  }
}

bool HashIndex::HasOverflowFor(uint64_t made) const {
  uint64_t keys = 0;
  ForEachMoved(made, [&keys](Place) { ++keys; });
  const uint64_t wanted = keys == 0 ? 0 : (keys - 1) / kBucketSlots;
  return wanted + reserved_ <= overflow_free();
}

void HashIndex::MoveKeys(uint64_t made) {
  const View to = TableBucket(made);
  Store(to.bucket->link, Link(DepthOfSplit(made) + 1, 0).bits());
  ForEachMoved(made, [&](Place place) {
    SKEP_CHECK(Insert(to, place.key(), place.slot()));  // HasOverflowFor
    ++leftovers_;
  });
}

void HashIndex::RaiseDepth(uint64_t made) {
  const uint32_t depth = DepthOfSplit(made) + 1;
  for (View at = TableBucket(SplitBy(made)); at; at = NextOf(at)) {
    const Link link = at.link();
    const uint64_t next_plus_one = link.has_next() ? link.next() + 1 : 0;
    Store(at.bucket->link, Link(depth, next_plus_one).bits());
  }
}

void HashIndex::Publish(uint64_t buckets) {
  buckets_ = buckets;
  Store(bucket_count_, buckets);
}

std::optional<uint64_t> HashIndex::TakeOverflow() {
  if (free_.count == 0) {
    if (overflow_used_ == overflow_.size()) return std::nullopt;
    return overflow_used_++;
  }
  const uint64_t number = free_.first;
  free_.first = overflow_keys_[number].tags[0];
  --free_.count;
  return number;
}

void HashIndex::Add(OverflowList& list, uint64_t number) {
  AddAll(list, {.first = number, .last = number, .count = 1});
}

void HashIndex::AddAll(OverflowList& list, const OverflowList& added) {
  if (added.count == 0) return;
  if (list.count == 0) {
    list = added;
    return;
  }
  overflow_keys_[list.last].tags[0] = added.first;
  list.last = added.last;
  list.count += added.count;
}

// Unlinks the buckets at the end of the chain that are all zero (G5).
void HashIndex::UnlinkEmptyTail(View chain) {
  View last = chain;
  for (View at = chain; at; at = NextOf(at)) {
    if (!at.IsEmpty()) last = at;
  }
  Link link = last.link();
  if (!link.has_next()) return;
  Store(last.bucket->link, Link(link.depth(), 0).bits());
  while (link.has_next()) {
    const uint64_t number = link.next();
    Add(unlinked_, number);
    --overflow_linked_;
    link = OverflowBucket(number).link();
  }
}

bool HashIndex::Maintain(uint64_t now_ns) {
  BeginBatch(now_ns);
  uint32_t chains = 0;
  while (batch_count_ != 0 && HasEnded(batches_[first_batch_], now_ns)) {
    const GraceBatch& batch = batches_[first_batch_];
    // Splits of empty buckets have left nothing.
    if (leftovers_ == 0) cleared_ = batch.buckets;
    while (cleared_ < batch.buckets) {
      if (chains++ == kMaintainChains) return true;
      ClearLeftovers(cleared_++);
    }
    AddAll(free_, batch.unlinked);
    first_batch_ = (first_batch_ + 1) % kBatchesMax;
    --batch_count_;
  }
  return false;
}

// Of all events since the last batch began. They happened before `now_ns`.
void HashIndex::BeginBatch(uint64_t now_ns) {
  if (batch_count_ == kBatchesMax) return;
  uint64_t buckets_before = cleared_;
  if (batch_count_ != 0) {
    const GraceBatch& newest = batches_[(first_batch_ + batch_count_ - 1) % kBatchesMax];
    if (now_ns - newest.begin_ns < options_.read_limit_ns / kBatchesInL) return;
    buckets_before = newest.buckets;
  }
  if (buckets_before == buckets_ && unlinked_.count == 0) return;
  batches_[(first_batch_ + batch_count_) % kBatchesMax] = {
      .begin_ns = now_ns, .buckets = buckets_, .unlinked = unlinked_};
  ++batch_count_;
  unlinked_ = {};
}

bool HashIndex::HasEnded(const GraceBatch& batch, uint64_t now_ns) const {
  return now_ns - batch.begin_ns >= 2 * options_.read_limit_ns;
}

void HashIndex::ClearLeftovers(uint64_t made) {
  ForEachMoved(made, [this](Place place) {
    Store(place.word(), 0);
    --leftovers_;
  });
  UnlinkEmptyTail(TableBucket(SplitBy(made)));
}

}  // namespace skep::pool

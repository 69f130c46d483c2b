// The invariants of hash_index.h.

#include "pool/hash_index.h"

namespace skep::pool {

struct HashIndex::Count {
  uint64_t items = 0;
  uint64_t leftovers = 0;
  uint64_t overflow = 0;
};

const char* HashIndex::Verify() const {
  Count count;
  for (uint64_t number = 0; number < buckets_; ++number) {
    if (const char* broken = VerifyChain(number, count)) return broken;
  }
  if (bucket_count_.load(std::memory_order_relaxed) != buckets_) return "I1: the published count";
  if (count.items != items_) return "I5: the number of items";
  if (count.leftovers != leftovers_) return "I5: the number of leftovers";
  if (count.overflow != overflow_linked_) return "I5: the number of overflow buckets in chains";
  return VerifyLists();
}

const char* HashIndex::VerifyChain(uint64_t number, Count& count) const {
  const auto level = static_cast<uint32_t>(std::bit_width(buckets_) - 1);
  const uint64_t level_buckets = uint64_t{1} << level;
  const bool is_split = number < buckets_ - level_buckets || number >= level_buckets;
  const View chain = TableBucket(number);
  for (View at = chain; at; at = NextOf(at)) {
    if (at.link().depth() != level + (is_split ? 1 : 0)) return "I1: the depth of a bucket";
    if (at.bucket != chain.bucket && ++count.overflow > overflow_used_) return "I5: chains meet";
    for (uint32_t i = 0; i < kBucketSlots; ++i) {
      if (!at.slot(i)) continue;
      if (const char* broken = VerifyWord(number, {at, i})) return broken;
      ++(IsLive(number, at.keys->indexes[i]) ? count.items : count.leftovers);
    }
    const bool is_last = !at.link().has_next();
    if (is_last && at.bucket != chain.bucket && at.IsEmpty()) return "I4: an empty last bucket";
  }
  return nullptr;
}

const char* HashIndex::VerifyWord(uint64_t chain, Place place) const {
  const uint8_t signature = place.slot().signature();
  const SlotKey key = place.key();
  if (!IsLive(chain, key.index)) {
    // The bit by which the key and the bucket differ first is the split's.
    const uint64_t bits = key.index ^ chain;
    const uint64_t made = chain + (bits & (~bits + 1));
    return made < cleared_ || made >= buckets_ ? "I3: a leftover of no split" : nullptr;
  }
  if (signature == 0) return "I2: a word without a signature";
  const KeyDigest digest = {.index = uint64_t{signature} << 56 | key.index, .tag = key.tag};
  const Place first = FindPlace(TableBucket(chain), digest);
  const bool is_first = first.at.bucket == place.at.bucket && first.i == place.i;
  return is_first ? nullptr : "I2: a key has two words";
}

const char* HashIndex::VerifyLists() const {
  if (const char* broken = VerifyList(free_)) return broken;
  if (const char* broken = VerifyList(unlinked_)) return broken;
  uint64_t count = overflow_linked_ + free_.count + unlinked_.count;
  for (uint32_t i = 0; i < batch_count_; ++i) {
    const OverflowList& list = batches_[(first_batch_ + i) % kBatchesMax].unlinked;
    if (const char* broken = VerifyList(list)) return broken;
    count += list.count;
  }
  return count == overflow_used_ ? nullptr : "I5: an overflow bucket in no chain and no list";
}

const char* HashIndex::VerifyList(const OverflowList& list) const {
  uint64_t number = list.first;
  for (uint64_t i = 0; i < list.count; ++i) {
    if (!OverflowBucket(number).IsEmpty()) return "I5: a listed overflow bucket is not empty";
    if (i + 1 == list.count) return number == list.last ? nullptr : "I5: the end of a list";
    number = overflow_keys_[number].tags[0];
  }
  return nullptr;
}

}  // namespace skep::pool

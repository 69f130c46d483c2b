#include <unordered_set>

#include "hash/table.h"

namespace skep::hash {

// The sums of a walk over all chains.
struct Table::Tally {
  uint64_t items = 0;
  uint64_t slots = 0;
  uint64_t large = 0;
  uint64_t chained = 0;
  uint64_t slab_bytes = 0;
  uint64_t deadlines = 0;
};

const char* Table::Verify() const {
  Tally tally;
  for (uint64_t i = 0; i < index_.count(); ++i) {
    if (const char* broken = VerifyChain(i, &tally)) return broken;
  }
  if (tally.items != items_ || tally.slots != wanted_slots_ || tally.large != records_.large() ||
      tally.chained != chained_) {
    return "T4: the counters are what a walk finds";
  }
  tally.slab_bytes += (chained_ + spares_.count()) * sizeof(Bucket);
  if (tally.slab_bytes != slabs_.used_bytes()) return "T4: every slab is somebody's";
  if (prepared_ != 0) return "T4: a prepared pair was forgotten";
  if (tally.deadlines != deadlines_.size()) return "T5: deadlines are those of the records";
  return slabs_.Verify();
}

const char* Table::VerifyChain(uint64_t index, Tally* tally) const {
  std::unordered_set<std::string_view> keys;
  for (const Bucket* bucket = &index_[index]; bucket != nullptr; bucket = Next(*bucket)) {
    if (const char* broken = bucket->Verify()) return broken;
    if (bucket != &index_[index]) {
      ++tally->chained;
      if (bucket->used() == 0) return "T1: a chained bucket is not empty";
    }
    const char* broken = nullptr;
    bucket->ForEach([&](BucketItem item) {
      const std::string_view key = ReadItem(*bucket, item).key;
      if (!keys.insert(key).second) broken = "T2: a key is in its chain once";
      if (BucketOf(HashOf(key)) != index) broken = "T2: a key is where its hash leads";
      if (const char* b = VerifyItem(*bucket, item, tally)) broken = b;
    });
    if (broken != nullptr) return broken;
  }
  return nullptr;
}

const char* Table::VerifyItem(const Bucket& bucket, BucketItem item, Tally* tally) const {
  const Pair pair = ReadItem(bucket, item);
  ++tally->items;
  tally->slots += SlotsWanted(pair);
  if (bucket.IsPair(item)) {
    return IsInline(pair) ? nullptr : "T3: what must not lie inline does not";
  }
  const Bucket::Pointer pointer = bucket.PointerAt(item.slot);
  const uint64_t hash = HashOf(pair.key);
  if (pointer.secondary != SecondaryOf(hash)) return "T2: a pointer has its secondary hash";
  const Record::Form form = records_.At(pointer.address).form();
  if (form != Record::FormOf(pair)) return "T3: a record has the form of its pair";
  if (Records::ClassOf(pair, form) != pointer.size_class) {
    return "T3: a record has the size of its slab";
  }
  tally->slab_bytes += Slabs::BytesOf(pointer.size_class);
  tally->large += form == Record::Form::kLarge ? 1 : 0;
  tally->deadlines += pair.deadline_ms != 0 ? 1 : 0;
  if (pair.deadline_ms != 0 && !deadlines_.Has(pair.deadline_ms, hash)) {
    return "T5: a record's deadline is known";
  }
  return nullptr;
}

}  // namespace skep::hash

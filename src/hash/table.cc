#include "hash/table.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "hash/before_images.h"

namespace skep::hash {

Table::Table(Arena& arena, MemoryBudget& budget, const TableOptions& options)
    : index_(budget, options.prefaulter),
      arena_(arena),
      options_(options),
      slabs_(arena, cache_),
      records_(arena, cache_, slabs_),
      spares_(slabs_),
      deadlines_(budget) {}

Table::~Table() {
  if (index_.count() > 0) Clear();
  arena_.Flush(cache_);
}

// Compares no key: that would wait for the memory that is to be fetched.
void Table::PrefetchLarge(const Key& key) const {
  const Bucket& bucket = FirstBucket(key);
  for (uint32_t left = bucket.Match(SecondaryOf(key.hash)); left != 0; left &= left - 1) {
    records_.PrefetchBody(bucket.PointerAt(static_cast<uint32_t>(std::countr_zero(left))).address);
  }
}

bool Table::StoreAt(const Place& place, const Key& key, std::string_view value,
                    uint64_t deadline_ms, Arena::Limit limit) {
  BeforeChange(key.hash);
  const Pair pair = {.key = key.bytes, .value = value, .deadline_ms = deadline_ms};
  if (place && StoreInPlace(place, pair, key.hash)) return true;
  Prepared prepared;
  if (!Prepare(key, value, deadline_ms, limit, &prepared)) return false;
  InstallAt(place, key, prepared);
  return true;
}

bool Table::AddAbsent(const Key& key, std::string_view value) {
  if (wanted_slots_ > 2 * options_.fill_slots * index_.count()) return false;
  const Pair pair = {.key = key.bytes, .value = value};
  const bool is_inline = IsInline(pair);
  const uint32_t slots = is_inline ? Bucket::SlotsFor(pair.key.size() + value.size()) : 1;
  Bucket* bucket = &index_[BucketOf(key.hash)];
  Bucket* gap = nullptr;
  uint32_t room = bucket->room();
  while (room < slots) {
    if (room > 0 && gap == nullptr) gap = bucket;
    Bucket* const next = Next(*bucket);
    if (next == nullptr) break;
    bucket = next;
    room = bucket->room();
  }
  const bool has_room = room >= slots;
  const bool extends = !has_room && gap == nullptr;
  if (extends && !spares_.Hold(prepared_ + 1, Arena::Limit::kObey)) return false;
  if (is_inline && (has_room || extends)) {
    BeforeChange(key.hash);
    (extends ? Extend(bucket) : bucket)->AddPair(key.bytes, value);
  } else {
    const Record::Form form = Record::FormOf(pair);
    const SlabAddress at = records_.Add(pair, form, Arena::Limit::kObey);
    if (at == 0) return false;
    BeforeChange(key.hash);
    Bucket* const pointing = extends ? Extend(bucket) : has_room ? bucket : gap;
    pointing->AddPointer({.size_class = static_cast<uint8_t>(Records::ClassOf(pair, form)),
                          .secondary = SecondaryOf(key.hash),
                          .address = at});
  }
  wanted_slots_ += slots;
  ++moves_;
  ++items_;
  ++added_;
  return true;
}

// Overwrites a pair that already lies where it has to, with the right size. Returns false if it
// does not.
bool Table::StoreInPlace(const Place& place, const Pair& pair, uint64_t hash) {
  Bucket& bucket = *place.bucket;
  const size_t bytes = pair.key.size() + pair.value.size();
  const bool is_inline = IsInline(pair);
  const bool was_inline = bucket.IsPair(place.item);
  if (was_inline) {
    if (!is_inline || Bucket::SlotsFor(bytes) != place.item.slots) return false;
    bucket.SetPair(place.item, pair.key, pair.value);
    return true;
  }
  if (is_inline && HasRoomInstead(bucket, pair)) return false;
  const Bucket::Pointer pointer = bucket.PointerAt(place.item.slot);
  const Record::Form form = Record::FormOf(pair);
  if (!records_.Fits(pointer, pair, form)) return false;
  const Pair old = ReadRecord(pointer.address);
  // What may throw comes first.
  deadlines_.Add(pair.deadline_ms, hash);
  deadlines_.Remove(old.deadline_ms, hash);
  wanted_slots_ += SlotsWanted(pair) - SlotsWanted(old);
  records_.Overwrite(pointer.address, pair, form);
  return true;
}

bool Table::SetDeadline(const Key& key, uint64_t deadline_ms, Arena::Limit limit) {
  const Place place = Find(key);
  if (!place) return true;
  BeforeChange(key.hash);
  const Pair pair = Read(place);
  if (!place.bucket->IsPair(place.item) && deadline_ms != 0) {
    const Bucket::Pointer pointer = place.bucket->PointerAt(place.item.slot);
    if (records_.At(pointer.address).form() != Record::Form::kShort) {
      SKEP_DCHECK(SlotsWanted(pair) == 1);
      deadlines_.Add(deadline_ms, key.hash);
      deadlines_.Remove(pair.deadline_ms, key.hash);
      records_.SetDeadline(pointer.address, deadline_ms);
      return true;
    }
  }
  return Store(key, pair.value, deadline_ms, limit);
}

bool Table::Erase(const Key& key) {
  const Place place = Find(key);
  if (!place) return false;
  BeforeChange(key.hash);
  Remove(place, key.hash);
  Shrink();
  return true;
}

size_t Table::EraseDue(uint64_t hash, uint64_t due_ms, ExpiryObserver* observer) {
  const auto find = [&]() -> Place {
    Bucket* previous = nullptr;
    for (Bucket* bucket = &index_[BucketOf(hash)]; bucket != nullptr; bucket = Next(*bucket)) {
      for (uint32_t left = bucket->pointers(); left != 0; left &= left - 1) {
        const auto slot = static_cast<uint8_t>(std::countr_zero(left));
        const uint64_t deadline_ms = records_.At(bucket->PointerAt(slot).address).deadline_ms();
        if (deadline_ms != 0 && deadline_ms <= due_ms) {
          return {bucket, previous, {.slot = slot, .slots = 1}};
        }
      }
      previous = bucket;
    }
    return {};
  };
  size_t erased = 0;
  for (Place place = find(); place; place = find()) {
    const uint64_t its_hash = HashOfItem(*place.bucket, place.item);
    BeforeChange(its_hash);
    TellExpired(observer, Read(place).key);
    Remove(place, its_hash);
    ++erased;
  }
  if (erased > 0) Shrink();
  return erased;
}

void Table::Clear() {
  ++moves_;
  SaveBeforeImages();
  if (records_.large() > 0) {
    for (uint64_t i = 0; i < index_.count(); ++i) {
      for (const Bucket* bucket = &index_[i]; bucket != nullptr; bucket = Next(*bucket)) {
        bucket->ForEach([&](BucketItem item) {
          if (!bucket->IsPair(item)) records_.Free(bucket->PointerAt(item.slot));
        });
      }
    }
  }
  slabs_.DropAll();
  index_.Clear();
  deadlines_.Clear();
  spares_.Forget();
  items_ = wanted_slots_ = added_ = chained_ = 0;
  prepared_ = 0;
}

void Table::EraseAll() {
  ++moves_;
  SaveBeforeImages();
  for (;;) {
    Bucket& last = index_[index_.count() - 1];
    while (last.used() > 0) {
      const BucketItem item = last.ItemAt(0);
      Remove({&last, nullptr, item}, HashOfItem(last, item));
    }
    if (index_.count() == 1) return;
    index_.RemoveLast();
  }
}

void Table::PrefetchChains(Position from, int count) const {
  for (; count > 0 && from < kPositionEnd; --count) {
    const Chain chain = ChainAt(from);
    index_.Prefetch(chain.index);
    from = chain.end;
  }
}

void Table::SaveBeforeImage(uint64_t hash) { before_images_->Save(*this, PositionOf(hash)); }

void Table::SaveBeforeImages() {
  if (before_images_ != nullptr) before_images_->SaveAll(*this);
}

bool Table::Prepare(const Key& key, std::string_view value, uint64_t deadline_ms,
                    Arena::Limit limit, Prepared* prepared) {
  if (!spares_.Hold(prepared_ + 1, limit)) return false;
  const Pair pair = {.key = key.bytes, .value = value, .deadline_ms = deadline_ms};
  prepared->deadline_ms = deadline_ms;
  prepared->key_bytes = static_cast<uint32_t>(key.bytes.size());
  prepared->bytes = static_cast<uint32_t>(key.bytes.size() + value.size());
  prepared->is_inline = IsInline(pair);
  if (prepared->is_inline) {
    std::ranges::copy(key.bytes, prepared->pair);
    std::ranges::copy(value, prepared->pair + key.bytes.size());
  } else {
    const Record::Form form = Record::FormOf(pair);
    prepared->size_class = static_cast<uint8_t>(Records::ClassOf(pair, form));
    prepared->record = records_.Add(pair, form, limit);
    if (prepared->record == 0) return false;
  }
  prepared->hash = key.hash;
  try {
    deadlines_.Add(deadline_ms, key.hash);
  } catch (const std::bad_alloc&) {
    FreePrepared(*prepared);
    return false;
  }
  ++prepared_;
  return true;
}

void Table::Install(const Key& key, const Prepared& prepared) {
  InstallAt(Find(key), key, prepared);
}

// Installs a pair instead of the one at this place.
void Table::InstallAt(const Place& place, const Key& key, const Prepared& prepared) {
  ++moves_;
  BeforeChange(key.hash);
  if (place) Remove(place, key.hash);
  Bucket* const head = &index_[BucketOf(key.hash)];
  if (prepared.is_inline) {
    const std::string_view pair(prepared.pair, prepared.bytes);
    AddShort(head, pair.substr(0, prepared.key_bytes), pair.substr(prepared.key_bytes), key.hash);
    wanted_slots_ += Bucket::SlotsFor(prepared.bytes);
  } else {
    MakeRoom(head, 1)->AddPointer({.size_class = prepared.size_class,
                                   .secondary = SecondaryOf(key.hash),
                                   .address = prepared.record});
    ++wanted_slots_;
  }
  ++items_;
  ++added_;
  --prepared_;
  Grow();
  if (prepared_ == 0) spares_.Trim(1);
}

// Puts a pair that may lie inline into the chain: inline if a bucket has room, else in a slab if
// one has room for a pointer and there is memory, else in another bucket.
void Table::AddShort(Bucket* head, std::string_view key, std::string_view value, uint64_t hash) {
  const uint32_t slots = Bucket::SlotsFor(key.size() + value.size());
  Bucket* gap = nullptr;
  Bucket* last = nullptr;
  for (Bucket* bucket = head; bucket != nullptr; bucket = Next(*bucket)) {
    const uint32_t room = bucket->room();
    if (room >= slots) return bucket->AddPair(key, value);
    if (room > 0 && gap == nullptr) gap = bucket;
    last = bucket;
  }
  if (gap != nullptr) {
    const Pair pair = {.key = key, .value = value};
    const Record::Form form = Record::Form::kShort;
    if (const SlabAddress at = records_.Add(pair, form, Arena::Limit::kObey)) {
      return gap->AddPointer({.size_class = static_cast<uint8_t>(Records::ClassOf(pair, form)),
                              .secondary = SecondaryOf(hash),
                              .address = at});
    }
  }
  Extend(last)->AddPair(key, value);
}

void Table::Drop(const Prepared& prepared) {
  deadlines_.Remove(prepared.deadline_ms, prepared.hash);
  FreePrepared(prepared);
  --prepared_;
}

void Table::FreePrepared(const Prepared& prepared) {
  if (prepared.is_inline) return;
  records_.Free(prepared.size_class, prepared.record);
}

// Returns the first bucket of the chain with `slots` free slots; appends a spare one if none has.
Bucket* Table::MakeRoom(Bucket* head, uint32_t slots) {
  Bucket* bucket = head;
  while (bucket->room() < slots) {
    Bucket* const next = Next(*bucket);
    bucket = next != nullptr ? next : Extend(bucket);
  }
  return bucket;
}

Bucket* Table::Extend(Bucket* last) {
  const SlabAddress at = spares_.Take();
  last->set_chain(at);
  ++chained_;
  return BucketAt(at);
}

void Table::Remove(const Place& place, uint64_t hash) {
  ++moves_;
  Bucket& bucket = *place.bucket;
  wanted_slots_ -= SlotsWanted(Read(place));
  if (!bucket.IsPair(place.item)) {
    const Bucket::Pointer pointer = bucket.PointerAt(place.item.slot);
    deadlines_.Remove(records_.At(pointer.address).deadline_ms(), hash);
    records_.Free(pointer);
  }
  --items_;
  bucket.Remove(place.item);
  CloseGap(place);
}

// Fills the gap in a bucket with items of the last one of its chain, and unlinks that one if it is
// then empty.
void Table::CloseGap(const Place& place) {
  Bucket* const bucket = place.bucket;
  Bucket* previous = place.previous;
  Bucket* last = bucket;
  while (Bucket* const next = Next(*last)) {
    previous = last;
    last = next;
  }
  if (last != bucket) {
    for (uint32_t slot = 0; slot < last->used();) {
      const BucketItem item = last->ItemAt(slot);
      if (item.slots > bucket->room()) {
        slot += item.slots;
        continue;
      }
      bucket->Add(*last, item);
      last->Remove(item);
    }
  }
  if (last->used() == 0 && previous != nullptr) Unlink(previous, last);
}

void Table::Unlink(Bucket* previous, Bucket* bucket) {
  const SlabAddress at = previous->chain();
  previous->set_chain(bucket->chain());
  --chained_;
  slabs_.Free(Slabs::ClassOf(sizeof(Bucket)), at);
}

void Table::Trim() {
  spares_.Trim(prepared_);
  slabs_.Flush();
  arena_.Flush(cache_);
}

}  // namespace skep::hash

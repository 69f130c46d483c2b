#include "base/slot_spans.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace skep {
namespace {

void FillFree(SpanInfo& info, size_t slots) {
  for (size_t i = 0; i < info.free.size(); ++i) {
    const size_t bits = std::min<size_t>(64, slots - std::min(slots, i * 64));
    info.free[i] = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
  }
}

// Takes the lowest free slot of a span. Requires free_slots > 0.
size_t TakeLowest(SpanInfo& info) {
  size_t word = 0;
  while (info.free[word] == 0) ++word;
  const auto bit = static_cast<size_t>(std::countr_zero(info.free[word]));
  info.free[word] &= info.free[word] - 1;
  --info.free_slots;
  return word * 64 + bit;
}

}  // namespace

SlotSpans::SlotSpans(SpanPool& pool) : pool_(pool) {
  for (auto& groups : heads_) groups.fill(SpanId::kNone);
}

size_t SlotSpans::GroupOf(const SpanInfo& info) {
  if (info.free_slots == 0) return kUnlisted;
  const size_t slots = size_classes::Slots(info.size_class);
  return (slots - info.free_slots) * kGroups / slots;
}

size_t SlotSpans::Take(size_t size_class, std::span<ArenaAddress> to) {
  const size_t slot_bytes = size_classes::SlotBytes(size_class);
  auto& heads = heads_[size_class];
  size_t taken = 0;
  for (size_t group = kGroups; group-- > 0;) {
    while (taken < to.size() && heads[group] != SpanId::kNone) {
      const SpanId id{heads[group]};
      SpanInfo& info = pool_.info(id);
      while (taken < to.size() && info.free_slots > 0) {
        to[taken++] = ArenaAddress{id.address().bits + TakeLowest(info) * slot_bytes};
      }
      MoveTo(id, info, group, GroupOf(info));
    }
  }
  used_bytes_ += taken * slot_bytes;
  return taken;
}

void SlotSpans::Add(SpanId id, size_t size_class) {
  const size_t slots = size_classes::Slots(size_class);
  SpanInfo& info = pool_.info(id);
  info.kind = SpanInfo::Kind::kSlots;
  info.size_class = static_cast<uint8_t>(size_class);
  info.free_slots = static_cast<uint16_t>(slots);
  FillFree(info, slots);
  MoveTo(id, info, kUnlisted, 0);
}

std::optional<SpanId> SlotSpans::Give(ArenaAddress at, size_t size_class) {
  const SpanId id = SpanId::Of(at);
  SpanInfo& info = pool_.info(id);
  const size_t slot_bytes = size_classes::SlotBytes(size_class);
  const size_t offset = at.offset() % Arena::kSpanBytes;
  const size_t slot = offset / slot_bytes;
  SKEP_CHECK(info.kind == SpanInfo::Kind::kSlots && info.size_class == size_class);
  SKEP_CHECK(offset % slot_bytes == 0 && slot < size_classes::Slots(size_class));
  uint64_t& word = info.free[slot / 64];
  const uint64_t bit = uint64_t{1} << slot % 64;
  SKEP_CHECK((word & bit) == 0);  // a set bit: the slot was freed twice

  const size_t group = GroupOf(info);
  word |= bit;
  ++info.free_slots;
  used_bytes_ -= slot_bytes;
  const bool is_free = info.free_slots == size_classes::Slots(size_class);
  MoveTo(id, info, group, is_free ? kUnlisted : GroupOf(info));
  return is_free ? std::optional(id) : std::nullopt;
}

void SlotSpans::MoveTo(SpanId id, SpanInfo& info, size_t from, size_t to) {
  if (from == to) return;
  auto& heads = heads_[info.size_class];
  if (from != kUnlisted) Unlink(info, heads[from]);
  if (to != kUnlisted) Link(id, info, heads[to]);
}

void SlotSpans::Link(SpanId id, SpanInfo& info, uint32_t& head) {
  info.previous = SpanId::kNone;
  info.next = head;
  if (head != SpanId::kNone) this->info(head).previous = id.bits;
  head = id.bits;
}

void SlotSpans::Unlink(SpanInfo& info, uint32_t& head) {
  if (info.next != SpanId::kNone) this->info(info.next).previous = info.previous;
  (info.previous == SpanId::kNone ? head : this->info(info.previous).next) = info.next;
}

const char* SlotSpans::Verify() const {
  uint64_t bytes = 0;
  uint64_t partial = 0;
  for (const SpanRegion* region : pool_.regions()) {
    for (uint32_t span = 0; span < region->touched_end(); ++span) {
      const SpanInfo& info = region->info(span);
      if (info.kind != SpanInfo::Kind::kSlots) continue;
      const size_t slots = size_classes::Slots(info.size_class);
      size_t free = 0;
      for (size_t i = 0; i < slots; ++i) free += info.free[i / 64] >> i % 64 & 1;
      size_t bits = 0;
      for (uint64_t word : info.free) bits += static_cast<size_t>(std::popcount(word));
      if (free != info.free_slots || bits != free) return "S1: free slots";
      if (free == slots) return "S2: a span with no used slot";
      if (free > 0) ++partial;
      bytes += (slots - free) * size_classes::SlotBytes(info.size_class);
    }
  }
  if (bytes != used_bytes_) return "S3: used bytes";
  return VerifyLists(partial);
}

const char* SlotSpans::VerifyLists(uint64_t listed_expected) const {
  uint64_t listed = 0;
  for (size_t size_class = 0; size_class < heads_.size(); ++size_class) {
    for (size_t group = 0; group < kGroups; ++group) {
      uint32_t previous = SpanId::kNone;
      for (uint32_t id = heads_[size_class][group]; id != SpanId::kNone; id = info(id).next) {
        const SpanInfo& span = info(id);
        if (span.previous != previous) return "S2: a list's links";
        if (span.kind != SpanInfo::Kind::kSlots || span.size_class != size_class ||
            GroupOf(span) != group) {
          return "S2: a span in the wrong list";
        }
        previous = id;
        ++listed;
      }
    }
  }
  return listed == listed_expected ? nullptr : "S2: a span with free slots in no list";
}

}  // namespace skep

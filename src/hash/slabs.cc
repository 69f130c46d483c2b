#include "hash/slabs.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/poison.h"

namespace skep::hash {

// Returns a bit at the first unit of each free, aligned block of the class.
uint64_t Slabs::BlocksIn(uint64_t word, uint32_t size_class) {
  constexpr std::array<uint64_t, kClasses> kAligned = {
      ~uint64_t{0}, 0x5555555555555555, 0x1111111111111111, 0x0101010101010101, 0x0001000100010001};
  for (uint32_t c = 0; c < size_class; ++c) word &= word >> (1u << c) & kAligned[c + 1];
  return word;
}

uint32_t Slabs::LargestIn(const Span& span) {
  if (span.free_units == 0) return kFullList;
  for (uint32_t c = kClasses - 1; c > 0; --c) {
    const auto has_block = [c](uint64_t word) { return BlocksIn(word, c) != 0; };
    if (std::ranges::any_of(span.free, has_block)) return c;
  }
  return 0;
}

void Slabs::PoisonBlock(SlabAddress at, uint32_t units) const {
  if (kPoisons) Poison(At(at), units * kSlabUnitBytes);
}

void Slabs::UnpoisonBlock(SlabAddress at, uint32_t units) const {
  if (kPoisons) Unpoison(At(at), units * kSlabUnitBytes);
}

bool Slabs::Refill(uint32_t size_class, Arena::Limit limit) {
  if (RefillFromSpans(size_class)) return true;
  if (AddSpan(limit)) return RefillFromSpans(size_class);
  // The other pools may hold free units that make a block of this class.
  Flush();
  return RefillFromSpans(size_class);
}

bool Slabs::RefillFromSpans(uint32_t size_class) {
  for (uint32_t list = size_class; list < kClasses; ++list) {
    if (lists_[list] == 0) continue;
    TakeFrom(lists_[list], size_class);
    return true;
  }
  return false;
}

// Takes up to a lot of blocks, the lowest of the span; the lowest is used first.
void Slabs::TakeFrom(SlabAddress first, uint32_t size_class) {
  Span& span = SpanAt(first);
  Pool& pool = pools_[size_class];
  const uint32_t units = 1u << size_class;
  const uint64_t block = (uint64_t{1} << units) - 1;
  for (uint32_t i = 0; i < kWords && pool.count < kLot; ++i) {
    for (uint64_t blocks = BlocksIn(span.free[i], size_class); blocks != 0 && pool.count < kLot;
         blocks &= blocks - 1) {
      const auto at = static_cast<uint32_t>(std::countr_zero(blocks));
      span.free[i] &= ~(block << at);
      span.free_units -= units;
      pool.entries[pool.count++] = first + i * 64 + at;
    }
  }
  std::reverse(pool.entries.begin(), pool.entries.begin() + pool.count);
  Unlink(first);
  Link(first, LargestIn(span));
}

bool Slabs::AddSpan(Arena::Limit limit) {
  const ArenaAddress at = arena_.Allocate(cache_, kSpanBytes, limit);
  if (!at) return false;
  if (at.region() != 0) {
    arena_.Free(cache_, at, kSpanBytes);
    return false;
  }
  const auto first = static_cast<SlabAddress>(at.offset() / kSlabUnitBytes);
  Span& span = SpanAt(first);
  span.free.fill(~uint64_t{0});
  span.free[0] &= ~((uint64_t{1} << kHeaderUnits) - 1);
  span.free_units = kUsableUnits;
  PoisonBlock(first + kHeaderUnits, kUsableUnits);
  Link(first, LargestIn(span));
  ++span_count_;
  return true;
}

void Slabs::Spill(uint32_t size_class, uint32_t count) {
  Pool& pool = pools_[size_class];
  for (uint32_t i = 0; i < count; ++i) GiveBlock(pool.entries[i], size_class);
  std::copy(pool.entries.begin() + count, pool.entries.begin() + pool.count, pool.entries.begin());
  pool.count -= count;
}

void Slabs::GiveBlock(SlabAddress at, uint32_t size_class) {
  const uint32_t unit = at % kSpanUnits;
  const SlabAddress first = at - unit;
  Span& span = SpanAt(first);
  const uint32_t units = 1u << size_class;
  uint64_t& word = span.free[unit / 64];
  const uint64_t block = ((uint64_t{1} << units) - 1) << unit % 64;
  SKEP_CHECK((word & block) == 0);  // a set bit: freed twice
  word |= block;
  span.free_units += units;
  if (span.free_units == kUsableUnits) {
    Unlink(first);
    UnpoisonBlock(first, kSpanUnits);
    arena_.Free(cache_, ArenaAddress::Of(0, uint64_t{first} * kSlabUnitBytes), kSpanBytes);
    --span_count_;
    return;
  }
  // Only a block that contains the freed one can be larger than the largest one was.
  uint32_t largest = span.list == kFullList ? size_class : std::max(span.list, size_class);
  while (largest + 1 < kClasses && BlocksIn(word, largest + 1) != 0) ++largest;
  if (largest == span.list) return;
  Unlink(first);
  Link(first, largest);
}

void Slabs::Flush() {
  for (uint32_t c = 0; c < kClasses; ++c) Spill(c, pools_[c].count);
}

void Slabs::DropAll() {
  for (uint32_t list = 0; list < kLists; ++list) {
    while (const SlabAddress first = lists_[list]) {
      Unlink(first);
      UnpoisonBlock(first, kSpanUnits);
      arena_.Free(cache_, ArenaAddress::Of(0, uint64_t{first} * kSlabUnitBytes), kSpanBytes);
    }
  }
  for (Pool& pool : pools_) pool.count = 0;
  used_units_ = 0;
  span_count_ = 0;
}

void Slabs::Link(SlabAddress first, uint32_t list) {
  Span& span = SpanAt(first);
  span.list = list;
  span.previous = 0;
  span.next = lists_[list];
  if (span.next != 0) SpanAt(span.next).previous = first;
  lists_[list] = first;
}

void Slabs::Unlink(SlabAddress first) {
  const Span& span = SpanAt(first);
  if (span.next != 0) SpanAt(span.next).previous = span.previous;
  if (span.previous != 0) {
    SpanAt(span.previous).next = span.next;
  } else {
    lists_[span.list] = span.next;
  }
}

uint64_t Slabs::free_bytes() const {
  uint64_t units = 0;
  for (uint32_t list = 0; list < kFullList; ++list) {
    for (SlabAddress first = lists_[list]; first != 0; first = SpanAt(first).next) {
      units += SpanAt(first).free_units;
    }
  }
  for (uint32_t c = 0; c < kClasses; ++c) units += uint64_t{pools_[c].count} << c;
  return units * kSlabUnitBytes;
}

const char* Slabs::Verify() const {
  uint64_t spans = 0;
  for (uint32_t list = 0; list < kLists; ++list) {
    SlabAddress previous = 0;
    for (SlabAddress first = lists_[list]; first != 0; first = SpanAt(first).next) {
      const Span& span = SpanAt(first);
      ++spans;
      uint32_t bits = 0;
      for (const uint64_t word : span.free) bits += static_cast<uint32_t>(std::popcount(word));
      if (bits != span.free_units) return "A2: a span counts its free units";
      if (span.list != list || LargestIn(span) != list || span.previous != previous) {
        return "A2: a span is in the list of its largest free block";
      }
      previous = first;
    }
  }
  if (spans != span_count_) return "A2: every span is in a list";
  for (uint32_t c = 0; c < kClasses; ++c) {
    for (uint32_t i = 0; i < pools_[c].count; ++i) {
      const SlabAddress at = pools_[c].entries[i];
      const uint32_t unit = at % kSpanUnits;
      const uint64_t block = ((uint64_t{1} << (1u << c)) - 1) << unit % 64;
      if (unit % (1u << c) != 0) return "A3: a pool has a slab that is not aligned";
      if ((SpanAt(at - unit).free[unit / 64] & block) != 0) return "A3: a pool has a free unit";
    }
  }
  const uint64_t headers = spans * kHeaderUnits * kSlabUnitBytes;
  if (used_bytes() + free_bytes() + headers != spans * kSpanBytes) {
    return "A1: used, free and header bytes are all there is";
  }
  return nullptr;
}

}  // namespace skep::hash

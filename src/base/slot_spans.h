// slot_spans.h: the spans of an arena that are cut into slots.
//
// Spans of a class that have both free and used slots are in one of four lists, by how full they
// are. Slots come from the fullest list that has a span: sparse spans are left alone until they are
// wholly free and go back to the pool.
//
// Invariants. Verify() checks them.
//   S1  a span's free_slots is the number of bits in `free`; bits past the last slot are zero.
//   S2  a span is in the list of its class and fullness, or in none if no slot of it is free; a
//       span whose slots are all free is not there.
//   S3  used_bytes() is the sum over the slots that are not free.
//
// Thread safety: none, the arena's lock protects it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/size_classes.h"
#include "base/span_pool.h"

namespace skep {

class SlotSpans {
 public:
  explicit SlotSpans(SpanPool& pool);

  // Fills `to` with slots of the class as far as its spans have free ones. Returns how many.
  size_t Take(size_t size_class, std::span<ArenaAddress> to);

  // Cuts a span into free slots of the class. A slot must be taken before anything else is done.
  void Add(SpanId id, size_t size_class);

  // Makes the slot free. Returns its span if all its slots are free now: the span is then the
  // caller's.
  std::optional<SpanId> Give(ArenaAddress at, size_t size_class);

  uint64_t used_bytes() const { return used_bytes_; }
  const char* Verify() const;

 private:
  static constexpr size_t kGroups = 4;
  static constexpr size_t kUnlisted = kGroups;

  static size_t GroupOf(const SpanInfo& info);
  void MoveTo(SpanId id, SpanInfo& info, size_t from, size_t to);
  void Link(SpanId id, SpanInfo& info, uint32_t& head);
  void Unlink(SpanInfo& info, uint32_t& head);
  SpanInfo& info(uint32_t id) const { return pool_.info(SpanId{id}); }
  const char* VerifyLists(uint64_t listed_expected) const;

  SpanPool& pool_;
  std::array<std::array<uint32_t, kGroups>, size_classes::kCount> heads_;
  uint64_t used_bytes_ = 0;
};

}  // namespace skep

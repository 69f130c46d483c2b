// point_read.h: reads a point in the leaf that has its key.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "btree/core.h"
#include "btree/pieces.h"
#include "btree/pinned_pieces.h"
#include "btree/reader.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// Fills in what every read of a point tells beside its value: the version at which the leaf has it,
// but for a function, whose version is that of its write; and the hint of the leaf. Returns the
// version that was seen.
inline Version TellVersion(const Request& request, const LeafPlace& place, Version seen,
                           BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  if (outcome.present && request.op != Op::kApply) outcome.version = seen;
  TellHint(request, place, &outcome);
  return seen;
}

// The state of a value that a request reads, with its bytes if ApplyPoint needs them and they are
// not pinned. Where a value in pieces is copied together for that, *whole keeps the copy from
// counting against the request itself, which would be postponed for ever.
inline PointState StateFor(const Core& core, const Request& request, const StoredValue& value,
                           BatchWriter& out, std::optional<BatchWriter::Whole>* whole) {
  PointState state = core.codec.StateOf(value);
  if (IsInPieces(value) && NeedsBytes(request) && !MayPinPrevious(request) && !out.IsFull())
      [[unlikely]] {
    state.value = core.codec.Whole(value, out.scratch());
    whole->emplace(out);
  }
  return state;
}

// Gives the request the bytes from `begin` to `end` of a value in pieces, pinned.
inline void TellPinned(const Core& core, const StoredValue& value, size_t begin, size_t end,
                       BatchWriter& out, uint32_t slot) {
  auto pin = std::make_shared<PinnedPieces>(core.arena, core.reclaimer.unpinned(),
                                            Pieces(core.arena, value), begin, end);
  out.CountWork(pin->count() * kPinWorkBytes);
  out.Pin(slot, std::move(pin));
}

// Fills in the value before of a request that MayPinPrevious(), if that is in pieces and the
// request returns it.
inline void TellPrevious(const Core& core, const StoredValue& value, BatchWriter& out,
                         uint32_t slot) {
  const Outcome& outcome = out.outcome(slot);
  const bool is_told = outcome.verdict == Verdict::kDone || outcome.verdict == Verdict::kExists ||
                       outcome.verdict == Verdict::kMismatch;
  if (outcome.present && is_told) TellPinned(core, value, 0, core.codec.SizeOf(value), out, slot);
}

// The bytes of a value of that size which a kGet asks for.
inline ByteRange::Bounds BoundsOf(const Request& request, size_t size) {
  return request.has(Request::kByteRange) ? request.bytes.Of(size) : ByteRange::Bounds{0, size};
}

// Fills in what a kGet that is done returns of a value that may be read by parts: copies of bytes.
inline void TellParts(const Request& request, const ValueParts& value, BatchWriter& out,
                      uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  if (outcome.verdict != Verdict::kDone) return;
  if (request.has(Request::kNoValue)) {
    outcome.integer = static_cast<int64_t>(value.size());
    return;
  }
  if (outcome.type != request.type) return;
  const auto [begin, end] = BoundsOf(request, value.size());
  const std::span<char> part(out.scratch().Allocate(end - begin), end - begin);
  value.Read(begin, part);
  outcome.value = {part.data(), part.size()};
}

// Fills in what a kGet that is done returns of a value in pieces, pinned if it is long and the
// request asks for that.
inline void TellPieces(const Core& core, const Request& request, const StoredValue& value,
                       BatchWriter& out, uint32_t slot) {
  const Outcome& outcome = out.outcome(slot);
  if (outcome.verdict != Verdict::kDone || !IsInPieces(value)) return;
  const auto [begin, end] = BoundsOf(request, core.codec.SizeOf(value));
  const bool pins = request.has(Request::kMayPin) && !request.has(Request::kNoValue) &&
                    outcome.type == request.type && end - begin > kContiguousMax;
  if (!pins) return TellParts(request, Pieces(core.arena, value), out, slot);
  TellPinned(core, value, begin, end, out, slot);
}

// Reads the request's key, runs its function, which only reads, or checks its condition, in the
// leaf of the key, at a version or in the newest state (Reader::kNewest). Fills in the outcome, and
// returns the version it has seen.
template <class Layout>
Version ReadPoint(const Core& core, const Request& request, const LeafPlace& place, Version at,
                  uint64_t now_ms, const EngineTraits& traits, BatchWriter& out, uint32_t slot) {
  const typename Layout::Leaf leaf(core.codec, place.node, place.word.used(), at);
  const typename Layout::Found found = leaf.Find(request.key, place.spot);
  std::optional<PointState> state;
  if (request.op == Op::kGet) {
    if (found.present) state = core.codec.StateOf(found.value);
    ApplyGet(request, state, now_ms, out, slot);
    if (found.present && found.value.outside) TellPieces(core, request, found.value, out, slot);
  } else {
    std::optional<BatchWriter::Whole> whole;
    if (found.present) state = StateFor(core, request, found.value, out, &whole);
    ApplyPoint(request, state, now_ms, traits, out, slot);
    if (found.present && IsInPieces(found.value) && MayPinPrevious(request)) [[unlikely]] {
      TellPrevious(core, found.value, out, slot);
    }
  }
  const Version seen =
      found.known ? found.version : place.node->version.load(std::memory_order_relaxed);
  return TellVersion(request, place, seen, out, slot);
}

// Like ReadPoint for a kGet without flags in the newest state, if that is cheap: if the sorted
// items of the leaf at a known spot have the key, with a plain value, and the log does not. Then
// the leaf covers the key, too. Returns whether it has filled in the outcome; `seen` is then the
// version.
template <class Layout>
[[gnu::always_inline]] inline bool ReadPlain(const Request& request, const LeafPlace& place,
                                             uint64_t now_ms, BatchWriter& out, uint32_t slot,
                                             Version* seen) {
  std::string_view value;
  if ((request.flags & ~Request::kMayPin) != 0 ||
      !Layout::FindPlain(place.node, place.word.used(), request.key, place.spot, &value)) {
    return false;
  }
  ApplyGet(request, PointState{.value = value}, now_ms, out, slot);
  *seen =
      TellVersion(request, place, place.node->version.load(std::memory_order_relaxed), out, slot);
  return true;
}

}  // namespace skep::btree

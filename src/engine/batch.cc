#include "skep/batch.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/element_functions.h"

namespace skep {

Digest DigestOf(std::string_view value) {
  const XXH128_hash_t hash = XXH3_128bits(value.data(), value.size());
  return {.low = hash.low64, .high = hash.high64};
}

ByteRange::Bounds ByteRange::Of(size_t value_bytes) const {
  const auto size = static_cast<int64_t>(value_bytes);
  const auto from_begin = [&](int64_t place) {
    return place < 0 ? std::max<int64_t>(place + size, 0) : place;
  };
  const int64_t begin = std::min(from_begin(first), size);
  const int64_t end = std::min(from_begin(last), size - 1) + 1;
  return {.begin = static_cast<size_t>(begin), .end = static_cast<size_t>(std::max(begin, end))};
}

Range PrefixRange(std::string_view prefix, Scratch& scratch) {
  // The upper bound is the prefix up to its last byte that is not 0xff, with that byte one higher.
  size_t keep = prefix.size();
  while (keep > 0 && prefix[keep - 1] == '\xff') --keep;
  if (keep == 0) return Range::From(prefix);
  const char grown = static_cast<char>(static_cast<unsigned char>(prefix[keep - 1]) + 1);
  return Range::Between(prefix, scratch.Concat(prefix.substr(0, keep - 1), {&grown, 1}));
}

std::string_view KeyAfter(std::string_view key, Scratch& scratch) {
  return scratch.Concat(key, {"\0", 1});
}

ItemRange ItemRange::Without(size_t count) const {
  if (count >= size()) return {};
  ItemRange others = *this;
  Iterator& from = others.begin_;
  from.left_ -= count;
  for (; count >= from.rest_.count; from.rest_ = *from.next_++) count -= from.rest_.count;
  from.rest_.at += count * from.rest_.stride();
  from.rest_.count -= static_cast<uint32_t>(count);
  return others;
}

uint32_t Batch::CompareAndSet(std::string_view key, std::string_view expected,
                              std::string_view value) {
  return Add(
      {.op = Op::kUpdate, .when = Request::kEquals, .key = key, .value = value, .other = expected});
}

uint32_t Batch::CompareDigestAndSet(std::string_view key, Digest expected, std::string_view value) {
  return Add({.op = Op::kUpdate,
              .when = Request::kDigestEquals,
              .key = key,
              .value = value,
              .digest = expected});
}

uint32_t Batch::Apply(std::string_view key, const Function* function, std::string_view operand) {
  return Add({.op = Op::kApply, .key = key, .value = operand, .function = function});
}

uint32_t Batch::UpdateElements(std::string_view key, const Function* update,
                               std::string_view operands, const UpdateOptions& options) {
  return Apply(key, update, UpdateOperand(options, operands, scratch_));
}

uint32_t Batch::Sample(uint64_t random) {
  Request request;
  request.op = Op::kSample;
  request.random = random;
  return Add(request);
}

uint32_t Batch::Walk(uint64_t cursor, const WalkOptions& options) {
  Request request{.op = Op::kWalk, .limit = options.limit, .other = {}};
  request.cursor = cursor;
  if (options.keys_only) request.flags |= Request::kKeysOnly;
  return Add(request);
}

uint32_t Batch::DeleteAll() { return AddPoint(Op::kDeleteAll, {}); }

uint32_t Batch::Expire(std::string_view key, uint64_t deadline_ms, uint8_t when) {
  return Add(
      {.op = Op::kExpire, .when = when, .key = key, .other = {}, .deadline_ms = deadline_ms});
}

uint32_t Batch::Move(std::string_view from, std::string_view to, uint8_t flags) {
  return Add({.op = Op::kMove, .flags = flags, .key = from, .other = to});
}

namespace {

Request RangeRequest(Op op, const Range& range, uint32_t limit) {
  Request request{.op = op, .limit = limit, .key = range.lo, .other = range.hi};
  if (range.unbounded) request.flags |= Request::kNoUpperBound;
  return request;
}

}  // namespace

uint32_t Batch::Scan(const Range& range, const ScanOptions& options) {
  Request request = RangeRequest(Op::kScan, range, options.limit);
  if (options.reverse) request.flags |= Request::kReverse;
  if (options.keys_only) request.flags |= Request::kKeysOnly;
  if (options.any_type) request.flags |= Request::kAnyType;
  if (options.seek_floor) request.flags |= Request::kSeekFloor;
  return Add(request);
}

uint32_t Batch::Count(const Range& range, uint32_t visits_max) {
  return Add(RangeRequest(Op::kCount, range, visits_max));
}

uint32_t Batch::DeleteRange(const Range& range, uint32_t limit) {
  return Add(RangeRequest(Op::kDeleteRange, range, limit));
}

uint32_t Batch::ExpireRange(const Range& range, uint64_t deadline_ms, uint32_t limit) {
  Request request = RangeRequest(Op::kExpireRange, range, limit);
  request.deadline_ms = deadline_ms;
  return Add(request);
}

uint32_t Batch::RequireEmpty(const Range& range) {
  return Add(RangeRequest(Op::kRequireEmpty, range, kNoLimit));
}

uint32_t Batch::RequireUnchanged(std::string_view key, uint64_t watch) {
  Request request{.op = Op::kRequireUnchanged, .key = key, .other = {}};
  request.watch = watch;
  return Add(request);
}

uint32_t Batch::RequireValue(std::string_view key, std::string_view value) {
  return Add({.op = Op::kRequireValue, .key = key, .other = value});
}

uint32_t Batch::RequireDigest(std::string_view key, Digest digest) {
  return Add({.op = Op::kRequireDigest, .key = key, .digest = digest});
}

namespace {

// Keeps the memory of usual batches, gives back that of a huge one.
template <typename T>
void ClearAndShrink(std::vector<T>& vector) {
  constexpr size_t kKeptMax = 32 * 1024;
  vector.clear();
  if (vector.capacity() > kKeptMax) std::vector<T>().swap(vector);
}

}  // namespace

void Batch::DropFrom(uint32_t slot) {
  requests_.resize(slot);
  while (!part_begins_.empty() && part_begins_.back() >= slot) part_begins_.pop_back();
}

void Batch::Clear() {
  ClearAndShrink(requests_);
  ClearAndShrink(part_begins_);
  ClearAndShrink(outcomes_);
  ClearAndShrink(item_spans_);
  ClearAndShrink(effects_);
  ClearAndShrink(pins_);
  pinned_bytes_ = 0;
  scratch_.Clear();
  answers_.Clear();
  snapshot_ = {};
  now_ms_ = 0;
  scan_bytes_max_ = SIZE_MAX;
  scan_visits_max_ = kNoLimit;
  answer_bytes_max_ = kAnswerBytesMax;
  returned_bytes_max_ = kAnswerBytesMax;
  work_bytes_max_ = SIZE_MAX;
  portion_bytes_max_ = SIZE_MAX;
  seen_bytes_ = 0;
  applied_ = true;
  notes_effects_ = false;
}

}  // namespace skep

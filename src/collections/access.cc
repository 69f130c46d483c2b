#include "collections/access.h"

#include <algorithm>
#include <utility>

namespace skep::collections {

Batch& Access::Execute(Batch& batch) {
  batch.set_now_ms(now_ms_);
  batch.set_snapshot(at_);
  ticket_ = std::max(ticket_, engine_.Execute(batch));
  return batch;
}

std::optional<std::string> Access::Get(std::string_view key, uint8_t type) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key});
  const Outcome& out = Execute(batch).outcome(0);
  if (out.verdict == Verdict::kRefused) status_ = out.status;
  if (out.verdict != Verdict::kDone || !out.present || out.type != type) return std::nullopt;
  deadline_ms_ = out.deadline_ms;
  return std::string(out.value);
}

uint8_t Access::TypeOf(std::string_view key) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  return Execute(batch).outcome(0).type;
}

std::optional<types::LargeRecord> Access::Record(std::string_view key, uint8_t kind) {
  const auto found = Get(key, types::kLargeForm + kind);
  return found ? types::ReadLargeRecord(*found) : std::nullopt;
}

// The largest key of a segment of the part that is not above `key`, or with `below` is below it.
std::optional<std::string> Access::SegmentKeyNear(uint64_t id, Part part, std::string_view key,
                                                  bool below) {
  const std::string first = SegmentKey(id, part, {});
  Batch batch;
  const uint32_t slot = below ? batch.Scan(Range::Between(first, key),
                                           {.limit = 1, .reverse = true, .keys_only = true})
                              : batch.Scan(Range::Between(key, KeyAfter(key, batch.scratch())),
                                           {.limit = 1, .keys_only = true, .seek_floor = true});
  Execute(batch);
  const ItemRange items = batch.items(slot);
  if (items.empty() || !items.front().key.starts_with(first)) return std::nullopt;
  return std::string(items.front().key);
}

std::optional<std::string> Access::FindSegment(uint64_t id, Part part, std::string_view place,
                                               std::string* bytes) {
  const std::string first = SegmentKey(id, part, {});
  // Without a hint, as when the collection was made a moment ago, the way begins at the first one.
  std::string key = SegmentKeyNear(id, part, SegmentKey(id, part, place), false).value_or(first);
  while (true) {
    auto found = Get(key, types::kSegment);
    if (!found) {
      if (key == first) return std::nullopt;
      key = SegmentKeyNear(id, part, key, true).value_or(first);
      continue;
    }
    const auto segment = ReadSegment(*found);
    if (!segment) return std::nullopt;
    if (!segment->fence || place < *segment->fence) {
      *bytes = std::move(*found);
      return key;
    }
    std::string next = SegmentKey(id, part, *segment->fence);
    if (next <= key) return std::nullopt;  // no segment has such a fence
    key = std::move(next);
  }
}

const Loaded* Segments::Keep(std::string key, std::string bytes) {
  const auto [at, is_new] = loaded_.try_emplace(std::string(SeparatorOf(key)));
  Loaded& loaded = at->second;
  if (!is_new && loaded.bytes != bytes) return nullptr;
  if (!is_new) return &loaded;
  loaded.key = std::move(key);
  loaded.bytes = std::move(bytes);
  const auto segment = ReadSegment(loaded.bytes);
  if (!segment) return nullptr;
  loaded.segment = *segment;
  return &loaded;
}

const Loaded* Segments::Find(const std::string& place) {
  const auto behind = loaded_.upper_bound(place);
  if (behind != loaded_.begin()) {
    const Loaded& before = std::prev(behind)->second;
    if (!before.segment.fence || place < *before.segment.fence) return &before;
  }
  std::string bytes;
  auto key = access_.FindSegment(id_, part_, place, &bytes);
  return key ? Keep(std::move(*key), std::move(bytes)) : nullptr;
}

const Loaded* Segments::FindNext(const Loaded& segment) {
  if (!segment.segment.fence) return nullptr;
  return Find(std::string(*segment.segment.fence));
}

}  // namespace skep::collections

#include "pool/frames.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"

namespace skep::pool {

std::optional<FramePlace> FrameRanges::PlaceOf(uint32_t frame) const {
  if (frame >= end()) return std::nullopt;
  const FrameRange& range = ranges_[IndexOf(frame)];
  return FramePlace{.server = range.server, .offset = uint64_t{frame - range.first} * kChunkBytes};
}

size_t FrameRanges::IndexOf(uint32_t frame) const {
  SKEP_CHECK(frame < end());
  const auto behind = std::ranges::upper_bound(ranges_, frame, {}, &FrameRange::first);
  return static_cast<size_t>(behind - ranges_.begin()) - 1;
}

void FrameRanges::EncodeTo(std::string& to) const {
  AppendVarint(to, ranges_.size());
  for (const FrameRange& range : ranges_) {
    AppendVarint(to, range.server);
    AppendVarint(to, range.first);
    AppendVarint(to, range.count);
  }
}

bool FrameRanges::Decode(std::string_view& from, FrameRanges* ranges) {
  *ranges = {};
  uint64_t count = 0;
  if (!TakeVarint(from, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    FrameRange range;
    if (!TakeNumber(from, &range.server) || !TakeNumber(from, &range.first) ||
        !TakeNumber(from, &range.count) || range.first != ranges->end() || range.count == 0 ||
        range.count > kFramesMax - range.first) {
      return false;
    }
    ranges->Add(range);
  }
  return true;
}

void AppendFrames(std::string& to, const ChunkFrames& frames) {
  const auto end = std::ranges::find(frames, kNoFrame);
  AppendVarint(to, static_cast<uint64_t>(end - frames.begin()));
  for (auto at = frames.begin(); at != end; ++at) AppendVarint(to, *at);
}

bool TakeFrames(std::string_view& from, ChunkFrames* frames) {
  *frames = kNoFrames;
  size_t count = 0;
  if (!TakeNumber(from, &count) || count > frames->size()) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!TakeNumber(from, &(*frames)[i]) || (*frames)[i] >= kFramesMax) return false;
  }
  return true;
}

}  // namespace skep::pool

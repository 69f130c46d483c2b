// frames.h: the memory of a pool in pieces of 2 MiB, and where each lies.
//
// A memory server's region is a number of frames. A chunk (chunks.h) lies in one frame, or in one
// of each of two servers: its replicas. All frames of a pool are numbered, server after server, in
// the order in which the servers came.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/slot.h"

namespace skep::pool {

inline constexpr uint32_t kFramesMax = kChunksMax;
inline constexpr uint32_t kNoFrame = UINT32_MAX;
inline constexpr size_t kReplicasMax = 2;

// The frames of one chunk; those that there are come first.
using ChunkFrames = std::array<uint32_t, kReplicasMax>;
inline constexpr ChunkFrames kNoFrames = {kNoFrame, kNoFrame};

// Frames that follow each other in the memory of one server, from its beginning on.
struct FrameRange {
  uint32_t server = 0;
  uint32_t first = 0;
  uint32_t count = 0;
  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};

// The place of a frame: a memory server and an offset in its region.
struct FramePlace {
  uint32_t server = 0;
  uint64_t offset = 0;
};

// All ranges, ascending and without gaps. What clients keep, too.
class FrameRanges {
 public:
  // The range begins at end().
  void Add(const FrameRange& range) { ranges_.push_back(range); }
  uint32_t end() const { return ranges_.empty() ? 0 : ranges_.back().first + ranges_.back().count; }
  std::optional<FramePlace> PlaceOf(uint32_t frame) const;
  // Its place in all(), of a frame that there is.
  size_t IndexOf(uint32_t frame) const;
  const std::vector<FrameRange>& all() const { return ranges_; }

  // count, then of each: server, first, count. Varints.
  void EncodeTo(std::string& to) const;
  // Takes ranges from the front. False: the bytes are none.
  static bool Decode(std::string_view& from, FrameRanges* ranges);

 private:
  std::vector<FrameRange> ranges_;
};

// The frames of a chunk in a message: count, then each; varints.
void AppendFrames(std::string& to, const ChunkFrames& frames);
// False: the bytes are none. That there are such frames is not looked at.
bool TakeFrames(std::string_view& from, ChunkFrames* frames);

}  // namespace skep::pool

// client_places.h: where a client thinks that chunks lie.
//
// What the hash server has told of a chunk is right as long as the chunk has the generation that
// was told with it: in that time it may lose a frame, with its server, or get another one, and a
// frame that it has lost has nothing else (chunks.h). A chunk without frames is free or lost; it
// may be leased at any moment, so that is never kept.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/fields.h"
#include "pool/frames.h"

namespace skep::pool {

class ClientPlaces {
 public:
  // So many chunks are asked for at once.
  static constexpr uint32_t kChunksAtOnce = 1024;

  // The place of the chunk's first frame; null: it is not known. Valid until something is learnt.
  const FramePlace* FindFirst(uint32_t chunk, uint8_t gen) const {
    return Find(chunk, gen) != nullptr ? &chunks_[chunk].first : nullptr;
  }
  // Null: it is not known. Valid until something is learnt.
  const ChunkFrames* Find(uint32_t chunk, uint8_t gen) const {
    if (chunk >= chunks_.size()) return nullptr;
    const Known& known = chunks_[chunk];
    return known.gen == gen && known.frames[0] != kNoFrame ? &known.frames : nullptr;
  }
  // Whether the chunk had no frames when it was asked for just now.
  bool IsWithout(uint32_t chunk, uint8_t gen) const {
    return chunk < chunks_.size() && chunks_[chunk].gen == gen &&
           chunks_[chunk].frames[0] == kNoFrame;
  }
  FramePlace PlaceOf(uint32_t frame) const { return *ranges_.PlaceOf(frame); }
  // Whether the server of this frame is known.
  bool Has(uint32_t frame) const { return frame < ranges_.end(); }
  bool has_replicas() const { return ranges_.all().size() > 1; }

  // Takes what was told of the chunks from `first` on: the ranges, then of each chunk its
  // generation and its frames. False: the bytes are none, and nothing of them is to be used.
  bool Learn(uint32_t first, std::string_view told) {
    FrameRanges ranges;
    if (!FrameRanges::Decode(told, &ranges) || ranges.end() < ranges_.end()) return false;
    ranges_ = std::move(ranges);
    chunks_.resize(ranges_.end());
    for (uint32_t chunk = first; !told.empty(); ++chunk) {
      Known known = {.frames = kNoFrames, .gen = static_cast<uint8_t>(told[0])};
      told.remove_prefix(1);
      if (chunk >= chunks_.size() || !TakeFrames(told, &known.frames)) return false;
      if (!std::ranges::all_of(
              known.frames, [this](uint32_t frame) { return frame == kNoFrame || Has(frame); })) {
        return false;
      }
      Keep(chunk, known);
    }
    return true;
  }
  // Takes what was told of one chunk; the frames are those of known servers.
  void Learn(uint32_t chunk, uint8_t gen, const ChunkFrames& frames) {
    if (chunk < chunks_.size()) Keep(chunk, {.frames = frames, .gen = gen});
  }
  // Forgets where the chunk lies.
  void Forget(uint32_t chunk) {
    if (chunk < chunks_.size()) chunks_[chunk] = {};
  }
  // Forgets all places: they may be old.
  void Forget() { std::ranges::fill(chunks_, Known()); }

 private:
  struct Known {
    ChunkFrames frames = kNoFrames;
    uint8_t gen = 0;
    FramePlace first = {};  // of the first frame; a frame never moves
  };

  void Keep(uint32_t chunk, Known known) {
    if (known.frames[0] != kNoFrame) known.first = PlaceOf(known.frames[0]);
    chunks_[chunk] = known;
  }

  FrameRanges ranges_;
  std::vector<Known> chunks_;
};

}  // namespace skep::pool

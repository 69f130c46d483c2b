#include "pool/chunks.h"

#include <algorithm>

namespace skep::pool {

std::optional<ChunkPlace> ChunkRanges::PlaceOf(uint32_t chunk) const {
  const auto behind = std::ranges::upper_bound(ranges_, chunk, {}, &ChunkRange::first);
  if (behind == ranges_.begin()) return std::nullopt;
  const ChunkRange& range = *(behind - 1);
  if (chunk - range.first >= range.count) return std::nullopt;
  return ChunkPlace{.server = range.server, .offset = uint64_t{chunk - range.first} * kChunkBytes};
}

bool Chunks::AddServer(const ChunkRange& range) {
  if (range.first != ranges_.end() || range.count == 0 || range.count > kChunksMax - range.first) {
    return false;
  }
  ranges_.Add(range);
  chunks_.resize(ranges_.end());
  free_count_ += range.count;
  return true;
}

bool Chunks::Lease(uint32_t chunk, uint32_t client) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kFree) return false;
  chunks_[chunk].state = State::kLeased;
  chunks_[chunk].client = client;
  --free_count_;
  next_ = chunk + 1;
  return true;
}

bool Chunks::Seal(uint32_t chunk, uint32_t client) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kLeased ||
      chunks_[chunk].client != client) {
    return false;
  }
  chunks_[chunk].state = State::kSealed;
  return true;
}

bool Chunks::Recycle(uint32_t chunk) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kSealed ||
      chunks_[chunk].items != 0) {
    return false;
  }
  const auto gen = static_cast<uint8_t>(chunks_[chunk].gen + 1);
  chunks_[chunk] = {.gen = gen};
  ++free_count_;
  return true;
}

void Chunks::SealAllOf(uint32_t client) {
  for (Chunk& chunk : chunks_) {
    if (chunk.state == State::kLeased && chunk.client == client) chunk.state = State::kSealed;
  }
}

bool Chunks::MayCommit(Slot slot, uint32_t client) const {
  if (slot.chunk() >= chunks_.size()) return false;
  const Chunk& chunk = chunks_[slot.chunk()];
  return slot.units() > 0 && slot.unit() + slot.units() <= kChunkUnits &&
         chunk.state == State::kLeased && chunk.client == client && chunk.gen == slot.gen();
}

}  // namespace skep::pool

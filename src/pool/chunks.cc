#include "pool/chunks.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {

std::optional<ChunkPlace> ChunkRanges::PlaceOf(uint32_t chunk) const {
  const auto behind = std::ranges::upper_bound(ranges_, chunk, {}, &ChunkRange::first);
  if (behind == ranges_.begin()) return std::nullopt;
  const ChunkRange& range = *(behind - 1);
  if (chunk - range.first >= range.count) return std::nullopt;
  return ChunkPlace{.server = range.server, .offset = uint64_t{chunk - range.first} * kChunkBytes};
}

void ChunkRanges::EncodeTo(std::string& to) const {
  AppendVarint(to, ranges_.size());
  for (const ChunkRange& range : ranges_) {
    AppendVarint(to, range.server);
    AppendVarint(to, range.first);
    AppendVarint(to, range.count);
  }
}

bool ChunkRanges::Decode(std::string_view& from, ChunkRanges* ranges) {
  *ranges = {};
  uint64_t count = 0;
  if (!TakeVarint(from, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    ChunkRange range;
    if (!TakeNumber(from, &range.server) || !TakeNumber(from, &range.first) ||
        !TakeNumber(from, &range.count) || range.first != ranges->end() || range.count == 0 ||
        range.count > kChunksMax - range.first) {
      return false;
    }
    ranges->Add(range);
  }
  return true;
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

bool Chunks::Seal(uint32_t chunk, uint32_t client, uint64_t index) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kLeased ||
      chunks_[chunk].client != client) {
    return false;
  }
  chunks_[chunk].state = State::kSealed;
  chunks_[chunk].sealed_index = index;
  NoteEmpty(chunk);
  return true;
}

void Chunks::NoteEmpty(uint32_t chunk) {
  if (chunks_[chunk].state == State::kSealed && chunks_[chunk].items == 0) empty_.insert(chunk);
}

void Chunks::AddItem(Slot slot) {
  Chunk& chunk = chunks_[slot.chunk()];
  ++chunk.items;
  chunk.live_units += slot.units();
  live_units_ += slot.units();
}

void Chunks::DropItem(Slot slot) {
  Chunk& chunk = chunks_[slot.chunk()];
  --chunk.items;
  chunk.live_units -= slot.units();
  live_units_ -= slot.units();
  NoteEmpty(slot.chunk());
}

bool Chunks::Recycle(uint32_t chunk) {
  if (empty_.erase(chunk) == 0) return false;
  const auto gen = static_cast<uint8_t>(chunks_[chunk].gen + 1);
  chunks_[chunk] = {.gen = gen};
  ++free_count_;
  return true;
}

void Chunks::SealAllOf(uint32_t client, uint64_t index) {
  for (uint32_t i = 0; i < chunks_.size(); ++i) Seal(i, client, index);
}

void Chunks::EncodeServers(std::string& to) const {
  ranges_.EncodeTo(to);
  AppendVarint(to, next_);
}

bool Chunks::DecodeServers(std::string_view& from) {
  if (!ChunkRanges::Decode(from, &ranges_) || !TakeNumber(from, &next_)) return false;
  chunks_.resize(ranges_.end());
  free_count_ = ranges_.end();
  return next_ <= ranges_.end();
}

void Chunks::EncodeChunks(uint32_t begin, uint32_t end, std::string& to) const {
  for (uint32_t i = begin; i < end; ++i) {
    const Chunk& chunk = chunks_[i];
    to.push_back(static_cast<char>(chunk.state));
    to.push_back(static_cast<char>(chunk.gen));
    AppendVarint(to, chunk.client);
    AppendVarint(to, chunk.items);
    AppendVarint(to, chunk.live_units);
    AppendVarint(to, chunk.sealed_index);
  }
}

bool Chunks::DecodeChunk(std::string_view& from, Chunk* chunk) {
  if (from.size() < 2 || static_cast<uint8_t>(from[0]) > static_cast<uint8_t>(State::kSealed)) {
    return false;
  }
  chunk->state = static_cast<State>(from[0]);
  chunk->gen = static_cast<uint8_t>(from[1]);
  from.remove_prefix(2);
  return TakeNumber(from, &chunk->client) && TakeNumber(from, &chunk->items) &&
         TakeNumber(from, &chunk->live_units) && TakeVarint(from, &chunk->sealed_index);
}

bool Chunks::DecodeChunks(std::string_view& from, uint32_t begin, uint32_t* end) {
  for (*end = begin; !from.empty(); ++*end) {
    if (*end >= chunks_.size() || !DecodeChunk(from, &chunks_[*end])) return false;
    if (chunks_[*end].state != State::kFree) --free_count_;
    live_units_ += chunks_[*end].live_units;
    NoteEmpty(*end);
  }
  return true;
}

bool Chunks::MayCommit(Slot slot, uint32_t client) const {
  if (slot.chunk() >= chunks_.size()) return false;
  const Chunk& chunk = chunks_[slot.chunk()];
  return slot.units() > 0 && slot.unit() + slot.units() <= kChunkUnits &&
         chunk.state == State::kLeased && chunk.client == client && chunk.gen == slot.gen();
}

}  // namespace skep::pool

#include "pool/chunks.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {

bool Chunks::AddServer(const FrameRange& range) {
  if (range.first != ranges_.end() || range.count == 0 || range.count > kFramesMax - range.first) {
    return false;
  }
  ranges_.Add(range);
  servers_.push_back({.range = range, .free = range.count});
  chunks_.resize(ranges_.end());
  used_.resize(ranges_.end());
  ++version_;
  CountFree();
  return true;
}

const Chunks::Server* Chunks::FindServer(uint32_t server) const {
  const auto at =
      std::ranges::find(servers_, server, [](const Server& one) { return one.range.server; });
  return at == servers_.end() ? nullptr : &*at;
}

Chunks::Server* Chunks::FindMutable(uint32_t server) {
  return const_cast<Server*>(FindServer(server));
}

void Chunks::Drain(uint32_t server) {
  Server* const at = FindMutable(server);
  if (at == nullptr || !at->is_open() || CountOpen() == 1) return;
  at->state = ServerState::kDraining;
  ++version_;
  CountFree();
}

void Chunks::RemoveServer(uint32_t server) {
  Server* const at = FindMutable(server);
  if (at == nullptr || !at->is_there()) return;
  const bool is_drained = at->state == ServerState::kDraining && at->free == at->range.count;
  at->state = is_drained ? ServerState::kDrained : ServerState::kGone;
  at->free = 0;
  ++version_;
  LoseFrames(at->range);
  if (CountOpen() == 0) {
    for (Server& other : servers_) {
      if (other.state == ServerState::kDraining) other.state = ServerState::kOpen;
    }
  }
  CountFree();
}

void Chunks::LoseFrames(const FrameRange& range) {
  const auto is_lost = [&](uint32_t frame) {
    return frame >= range.first && frame - range.first < range.count;
  };
  for (Chunk& chunk : chunks_) {
    const auto end = std::ranges::remove_if(chunk.frames, is_lost).begin();
    std::fill(end, chunk.frames.end(), kNoFrame);
  }
}

uint32_t Chunks::CountOpen() const {
  return static_cast<uint32_t>(std::ranges::count_if(servers_, &Server::is_open));
}

// Those of servers that get chunks.
void Chunks::CountFree() {
  capacity_ = 0;
  free_count_ = 0;
  for (const Server& server : servers_) {
    if (!server.is_open()) continue;
    capacity_ += server.range.count;
    free_count_ += server.free;
  }
}

bool Chunks::HasOnlyCopy(const Server& server) const {
  return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
    return chunk.items > 0 && chunk.frames[0] != kNoFrame && chunk.frames[1] == kNoFrame &&
           &ServerOf(chunk.frames[0]) == &server;
  });
}

uint64_t Chunks::CountLost() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      chunks_, [](const Chunk& chunk) { return chunk.is_lost() && chunk.items > 0; }));
}

template <typename Count>
uint32_t Chunks::FramesFor(uint32_t replicas, Count count) const {
  uint32_t servers = 0;
  uint32_t sum = 0;
  uint32_t largest = 0;
  for (const Server& server : servers_) {
    if (!server.is_open()) continue;
    ++servers;
    sum += count(server);
    largest = std::max<uint32_t>(largest, count(server));
  }
  static_assert(kReplicasMax == 2);
  return replicas == 1 || servers < 2 ? sum : 2 * std::min(sum / 2, sum - largest);
}

uint32_t Chunks::CapacityFor(uint32_t replicas) const {
  return FramesFor(replicas, [](const Server& server) { return server.range.count; });
}

uint32_t Chunks::FreeFor(uint32_t replicas) const {
  return FramesFor(replicas, [](const Server& server) { return server.free; });
}

uint64_t Chunks::LiveUnitsOfFrames() const {
  uint64_t units = 0;
  for (const Chunk& chunk : chunks_) {
    const auto end = std::ranges::find(chunk.frames, kNoFrame);
    units += chunk.live_units * static_cast<uint64_t>(end - chunk.frames.begin());
  }
  return units;
}

void Chunks::TakeFrame(uint32_t frame) {
  Server& server = servers_[ranges_.IndexOf(frame)];
  used_[frame] = true;
  --server.free;
  server.next = frame - server.range.first + 1;
  if (server.is_open()) --free_count_;
}

void Chunks::GiveFrame(uint32_t frame) {
  Server& server = servers_[ranges_.IndexOf(frame)];
  used_[frame] = false;
  ++server.free;
  if (server.is_open()) ++free_count_;
}

void Chunks::GiveFrames(Chunk& chunk) {
  for (const uint32_t frame : chunk.frames) {
    if (frame != kNoFrame) GiveFrame(frame);
  }
  chunk.frames = kNoFrames;
}

bool Chunks::AreFree(const ChunkFrames& frames) const {
  const auto is_free = [this](uint32_t frame) {
    return frame < used_.size() && !used_[frame] && ServerOf(frame).is_open();
  };
  return is_free(frames[0]) && frames[0] != frames[1] &&
         (frames[1] == kNoFrame || is_free(frames[1]));
}

bool Chunks::Lease(uint32_t chunk, uint32_t client, const ChunkFrames& frames) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kFree || !AreFree(frames)) {
    return false;
  }
  chunks_[chunk].state = State::kLeased;
  chunks_[chunk].client = client;
  chunks_[chunk].frames = frames;
  leased_.insert({client, chunk});
  for (const uint32_t frame : frames) {
    if (frame != kNoFrame) TakeFrame(frame);
  }
  next_ = chunk + 1;
  return true;
}

bool Chunks::Seal(uint32_t chunk, uint32_t client, uint64_t index) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kLeased ||
      chunks_[chunk].client != client) {
    return false;
  }
  EndLease(chunk);
  chunks_[chunk].state = State::kSealed;
  chunks_[chunk].sealed_index = index;
  NoteEmpty(chunk);
  return true;
}

void Chunks::EndLease(uint32_t chunk) { leased_.erase({chunks_[chunk].client, chunk}); }

void Chunks::NoteEmpty(uint32_t chunk) {
  if (chunks_[chunk].state == State::kSealed && chunks_[chunk].items == 0) empty_.insert(chunk);
}

bool Chunks::MayCommit(Slot slot, uint32_t client) const {
  if (slot.chunk() >= chunks_.size()) return false;
  const Chunk& chunk = chunks_[slot.chunk()];
  return slot.units() > 0 && slot.unit() + slot.units() <= kChunkUnits &&
         chunk.state == State::kLeased && chunk.client == client && chunk.gen == slot.gen() &&
         !chunk.is_lost();
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
  GiveFrames(chunks_[chunk]);
  chunks_[chunk] = {.gen = gen};
  return true;
}

uint32_t* Chunks::RoomFor(Chunk& chunk, uint32_t server) {
  uint32_t* room = nullptr;
  for (uint32_t& frame : chunk.frames) {
    if (frame == kNoFrame || ServerOf(frame).state == ServerState::kDraining) {
      if (room == nullptr) room = &frame;
    } else if (ServerOf(frame).range.server == server) {
      return nullptr;
    }
  }
  return room;
}

bool Chunks::Adopt(uint32_t chunk, uint8_t gen, uint32_t from, uint32_t client) {
  if (chunk >= chunks_.size() || from >= chunks_.size()) return false;
  Chunk& to = chunks_[chunk];
  Chunk& giver = chunks_[from];
  const bool can_give = giver.state == State::kLeased && giver.client == client &&
                        giver.items == 0 && !giver.is_lost() && giver.frames[1] == kNoFrame;
  if (!can_give || to.state != State::kSealed || to.gen != gen || to.is_lost()) return false;
  const Server& server = ServerOf(giver.frames[0]);
  uint32_t* const room = server.is_open() ? RoomFor(to, server.range.server) : nullptr;
  if (room == nullptr) return false;
  if (*room != kNoFrame) GiveFrame(*room);
  *room = giver.frames[0];
  EndLease(from);
  giver = {.gen = static_cast<uint8_t>(giver.gen + 1)};
  return true;
}

bool Chunks::Shed(uint32_t chunk) {
  if (chunk >= chunks_.size() || chunks_[chunk].state != State::kSealed) return false;
  ChunkFrames kept = kNoFrames;
  size_t count = 0;
  for (const uint32_t frame : chunks_[chunk].frames) {
    if (frame != kNoFrame && ServerOf(frame).is_open()) kept[count++] = frame;
  }
  if (count == 0) return false;
  for (const uint32_t frame : chunks_[chunk].frames) {
    if (frame != kNoFrame && std::ranges::find(kept, frame) == kept.end()) GiveFrame(frame);
  }
  chunks_[chunk].frames = kept;
  return true;
}

void Chunks::SealAllOf(uint32_t client, uint64_t index) {
  for (const uint32_t chunk : LeasedBy(client)) Seal(chunk, client, index);
}

std::vector<uint32_t> Chunks::LeasedBy(uint32_t client) const {
  std::vector<uint32_t> chunks;
  for (auto at = leased_.lower_bound({client, 0}); at != leased_.end() && at->first == client;
       ++at) {
    chunks.push_back(at->second);
  }
  return chunks;
}

void Chunks::EncodeServers(std::string& to) const {
  ranges_.EncodeTo(to);
  AppendVarint(to, next_);
  AppendVarint(to, version_);
  for (const Server& server : servers_) {
    to.push_back(static_cast<char>(server.state));
    AppendVarint(to, server.next);
  }
}

bool Chunks::DecodeServers(std::string_view& from) {
  if (!FrameRanges::Decode(from, &ranges_) || !TakeNumber(from, &next_) ||
      !TakeVarint(from, &version_)) {
    return false;
  }
  for (const FrameRange& range : ranges_.all()) {
    Server& server = servers_.emplace_back(Server{.range = range});
    if (from.empty() || static_cast<uint8_t>(from[0]) > static_cast<uint8_t>(ServerState::kGone)) {
      return false;
    }
    server.state = static_cast<ServerState>(from[0]);
    server.free = server.is_there() ? range.count : 0;
    from.remove_prefix(1);
    if (!TakeNumber(from, &server.next) || server.next > range.count) return false;
  }
  chunks_.resize(ranges_.end());
  used_.resize(ranges_.end());
  CountFree();
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
    AppendFrames(to, chunk.frames);
  }
}

bool Chunks::DecodeChunk(std::string_view& from, Chunk* chunk) {
  if (from.size() < 2 || static_cast<uint8_t>(from[0]) > static_cast<uint8_t>(State::kSealed)) {
    return false;
  }
  chunk->state = static_cast<State>(from[0]);
  chunk->gen = static_cast<uint8_t>(from[1]);
  from.remove_prefix(2);
  if (!TakeNumber(from, &chunk->client) || !TakeNumber(from, &chunk->items) ||
      !TakeNumber(from, &chunk->live_units) || !TakeVarint(from, &chunk->sealed_index) ||
      !TakeFrames(from, &chunk->frames)) {
    return false;
  }
  for (const uint32_t frame : chunk->frames) {
    if (frame == kNoFrame) continue;
    if (frame >= used_.size() || used_[frame] || ServerOf(frame).free == 0) return false;
    const uint32_t next = servers_[ranges_.IndexOf(frame)].next;
    TakeFrame(frame);
    servers_[ranges_.IndexOf(frame)].next = next;
  }
  return true;
}

bool Chunks::DecodeChunks(std::string_view& from, uint32_t begin, uint32_t* end) {
  for (*end = begin; !from.empty(); ++*end) {
    if (*end >= chunks_.size() || !DecodeChunk(from, &chunks_[*end])) return false;
    live_units_ += chunks_[*end].live_units;
    if (chunks_[*end].state == State::kLeased) leased_.insert({chunks_[*end].client, *end});
    NoteEmpty(*end);
  }
  return true;
}

void Chunks::EncodePlaces(uint32_t begin, uint32_t end, std::string& to) const {
  for (uint32_t i = begin; i < end; ++i) {
    to.push_back(static_cast<char>(chunks_[i].gen));
    AppendFrames(to, chunks_[i].frames);
  }
}

}  // namespace skep::pool

// chunks.h: the chunks of a pool: where each lies, who may write to it, and what is left in it.
//
//            lease                seal                     recycle
//   free ----------> leased -------------------> sealed ------------> free, at the next generation
//    ^                 |   (by the client, or             (no item left, and nobody can read or
//    +-----------------+    when the client ends)          write it any more: chunk_upkeep.h)
//          adopted
//
// Clients lease chunks, fill them from the front, and never free anything: an item is gone when no
// slot names it, and its space when its chunk is recycled. An item that was written and never
// committed takes its space until then, and needs nobody to look for it.
//
// Live units are counted as slots tell them: an item of 255 units or more counts as 255, so a chunk
// with long items has more than its count says, and never less.
//
// A chunk gets its frames (frames.h) with its lease, of as many servers as there are to be
// replicas, and gives them back when it is recycled. In between they change in two ways:
//   - a server is gone for ever: the chunk has one frame fewer. Without any, it is lost, and its
//     items with it; they leave when their keys are written or removed.
//   - a sealed chunk, which nobody changes any more, was copied to a frame of another server: it
//     gets that frame from the chunk that its copier had leased for it (Adopt), as a further one or
//     in place of one on a server that is drained.
// So a frame that has left a chunk of one generation is never used again while the chunk has that
// generation, unless as its own: it belonged to a server that is gone or drained, and those get no
// chunks any more. Whoever knows a chunk's frames of a generation from before finds there either
// what the chunk has, or nobody.
//
// Part of the state that both index servers keep: all changes are entries of their log.
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/frames.h"
#include "pool/slot.h"

namespace skep::pool {

class Chunks {
 public:
  enum class State : uint8_t { kFree, kLeased, kSealed };
  struct Chunk {
    State state = State::kFree;
    uint8_t gen = 0;
    uint32_t client = 0;        // kLeased, kSealed: who has, or had, the lease
    uint32_t items = 0;         // that slots name
    uint32_t live_units = 0;    // of those items, as their slots tell
    uint64_t sealed_index = 0;  // kSealed: of the entry that sealed it
    ChunkFrames frames = kNoFrames;
    bool is_lost() const { return state != State::kFree && frames[0] == kNoFrame; }
    friend bool operator==(const Chunk&, const Chunk&) = default;
  };
  // A memory server goes through these states in their order; only kDraining may be kOpen again.
  enum class ServerState : uint8_t {
    kOpen,
    kDraining,  // it gets no chunks, and those that it has are copied to others
    kDrained,   // it has none any more
    kGone,      // what it had is lost
  };
  struct Server {
    FrameRange range;
    ServerState state = ServerState::kOpen;
    uint32_t free = 0;  // frames; kDrained, kGone: 0
    uint32_t next = 0;  // where to look for a free one, in the range
    // It gets chunks.
    bool is_open() const { return state == ServerState::kOpen; }
    // Its frames are those of chunks, or may be.
    bool is_there() const { return state <= ServerState::kDraining; }
    friend bool operator==(const Server&, const Server&) = default;
  };

  // False, and nothing is changed: the range does not begin where the last one ended, or is empty.
  bool AddServer(const FrameRange& range);
  // These change nothing if there is no such server, or it is that far already. The only open
  // server is not drained.
  void Drain(uint32_t server);
  // It is drained if it was to be and no chunk has a frame of it; else what it has is lost. If no
  // open one is left, those that were to be drained are open again.
  void RemoveServer(uint32_t server);
  // False, and nothing is changed: the chunk, or one of the frames, is in no state for it.
  bool Lease(uint32_t chunk, uint32_t client, const ChunkFrames& frames);
  // `index` is that of the log's entry: what was sealed earlier has a lower one.
  bool Seal(uint32_t chunk, uint32_t client, uint64_t index);
  bool Recycle(uint32_t chunk);
  // `from`, which the client has leased with one frame, has the bytes of the sealed chunk of this
  // generation: its frame becomes the chunk's, and it is free.
  bool Adopt(uint32_t chunk, uint8_t gen, uint32_t from, uint32_t client);
  // The sealed chunk gives back its frames on servers that are drained, if it has another one.
  bool Shed(uint32_t chunk);
  // Seals all that the client has leased.
  void SealAllOf(uint32_t client, uint64_t index);
  // What the client has leased, in ascending order.
  std::vector<uint32_t> LeasedBy(uint32_t client) const;

  // Whether an item of the client may get this slot: it lies within a chunk of this generation that
  // the client leases. A chunk that is sealed gets no item any more, so once it is empty it stays
  // so.
  bool MayCommit(Slot slot, uint32_t client) const;
  void AddItem(Slot slot);
  void DropItem(Slot slot);
  // The chunks that are sealed and have no item.
  const std::set<uint32_t>& empty() const { return empty_; }

  // A chunk that may be leased, none of those for which `is_taken` is true: the next one behind
  // that which was leased last, so that a chunk rests for as long as there are others.
  template <typename IsTaken>
  std::optional<uint32_t> FindFree(IsTaken is_taken) const {
    for (uint32_t i = 0; i < chunks_.size(); ++i) {
      const uint32_t chunk = (next_ + i) % static_cast<uint32_t>(chunks_.size());
      if (chunks_[chunk].state == State::kFree && !is_taken(chunk)) return chunk;
    }
    return std::nullopt;
  }
  // A frame of the server that no chunk has, in the same way.
  template <typename IsTaken>
  std::optional<uint32_t> FindFreeFrame(const Server& server, IsTaken is_taken) const {
    if (server.free == 0) return std::nullopt;
    for (uint32_t i = 0; i < server.range.count; ++i) {
      const uint32_t frame = server.range.first + (server.next + i) % server.range.count;
      if (!used_[frame] && !is_taken(frame)) return frame;
    }
    return std::nullopt;
  }

  // How these chunks come to another server (state_transfer.h): first the memory servers and where
  // to look for a free chunk, then the chunks [begin, end), in their order, in pieces.
  void EncodeServers(std::string& to) const;
  void EncodeChunks(uint32_t begin, uint32_t end, std::string& to) const;
  // The same from the other side, into chunks that have no servers yet. False: the bytes are none.
  bool DecodeServers(std::string_view& from);
  // Takes the chunks from `begin` on, to the end of the bytes; `end` is one past the last one.
  bool DecodeChunks(std::string_view& from, uint32_t begin, uint32_t* end);

  // Appends what clients are told of the chunks [begin, end) (client_places.h): the generation and
  // the frames of each.
  void EncodePlaces(uint32_t begin, uint32_t end, std::string& to) const;

  const FrameRanges& ranges() const { return ranges_; }
  const std::vector<Server>& servers() const { return servers_; }
  // Null: there is none.
  const Server* FindServer(uint32_t server) const;
  const Server& ServerOf(uint32_t frame) const { return servers_[ranges_.IndexOf(frame)]; }
  const std::vector<Chunk>& all() const { return chunks_; }
  // Servers that get chunks.
  uint32_t CountOpen() const;
  // Frames of open servers: all, and those that may be had.
  uint32_t capacity() const { return capacity_; }
  uint32_t free_count() const { return free_count_; }
  // The same, but only so many as chunks with so many replicas can take: no two frames of a chunk
  // are of one server. Where there are fewer servers a chunk has fewer replicas.
  uint32_t CapacityFor(uint32_t replicas) const;
  uint32_t FreeFor(uint32_t replicas) const;
  // The live units of all chunks, each chunk counted once.
  uint64_t live_units() const { return live_units_; }
  // The live units of all chunks, each counted once for each of its frames. Cost: linear in chunks.
  uint64_t LiveUnitsOfFrames() const;
  // Whether the server has the only frame of a chunk with items. Cost: linear in chunks.
  bool HasOnlyCopy(const Server& server) const;
  // Those that are lost and have items. Cost: linear in chunks.
  uint64_t CountLost() const;
  // Rises with every change of the servers.
  uint64_t version() const { return version_; }

 private:
  // The chunk is leased no longer; it becomes sealed, or free.
  void EndLease(uint32_t chunk);
  // The chunk may be empty now.
  void NoteEmpty(uint32_t chunk);
  void TakeFrame(uint32_t frame);
  void GiveFrame(uint32_t frame);
  void GiveFrames(Chunk& chunk);
  bool AreFree(const ChunkFrames& frames) const;
  void LoseFrames(const FrameRange& range);
  // The entry of the chunk's frames that a frame of the server may take; null: there is none.
  uint32_t* RoomFor(Chunk& chunk, uint32_t server);
  Server* FindMutable(uint32_t server);
  void CountFree();
  template <typename Count>
  uint32_t FramesFor(uint32_t replicas, Count count) const;
  bool DecodeChunk(std::string_view& from, Chunk* chunk);

  FrameRanges ranges_;
  std::vector<Server> servers_;  // of the ranges
  std::vector<bool> used_;       // by frame
  std::vector<Chunk> chunks_;    // as many as frames
  std::set<uint32_t> empty_;
  std::set<std::pair<uint32_t, uint32_t>> leased_;  // the client, the chunk
  uint32_t capacity_ = 0;
  uint32_t free_count_ = 0;
  uint64_t live_units_ = 0;
  uint32_t next_ = 0;  // where to look for a free one
  uint64_t version_ = 0;
};

}  // namespace skep::pool

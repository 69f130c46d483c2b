// chunks.h: the chunks of a pool: where each lies, who may write to it, and what is left in it.
//
//            lease                seal                     recycle
//   free ----------> leased -------------------> sealed ------------> free, at the next generation
//                            (by the client, or             (no item left, and nobody can read or
//                             when the client ends)          write it any more: hash_role.h)
//
// Clients lease chunks, fill them from the front, and never free anything: an item is gone when no
// slot names it, and its space when its chunk is recycled. An item that was written and never
// committed takes its space until then, and needs nobody to look for it.
//
// Live units are counted as slots tell them: an item of 255 units or more counts as 255, so a chunk
// with long items has more than its count says, and never less.
//
// Part of the state that both index servers keep: all changes are entries of their log.
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pool/slot.h"

namespace skep::pool {

// Chunks that follow each other in the memory of one server, from its beginning on.
struct ChunkRange {
  uint32_t server = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};

// Where a chunk lies.
struct ChunkPlace {
  uint32_t server = 0;
  uint64_t offset = 0;
};

// All ranges, ascending and without gaps. What clients keep, too.
class ChunkRanges {
 public:
  // The range begins at end().
  void Add(const ChunkRange& range) { ranges_.push_back(range); }
  uint32_t end() const { return ranges_.empty() ? 0 : ranges_.back().first + ranges_.back().count; }
  std::optional<ChunkPlace> PlaceOf(uint32_t chunk) const;
  const std::vector<ChunkRange>& all() const { return ranges_; }

  // count, then of each: server, first, count. Varints.
  void EncodeTo(std::string& to) const;
  // Takes ranges from the front. False: the bytes are none.
  static bool Decode(std::string_view& from, ChunkRanges* ranges);

 private:
  std::vector<ChunkRange> ranges_;
};

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
    friend bool operator==(const Chunk&, const Chunk&) = default;
  };

  // False, and nothing is changed: the range does not begin where the last one ended, or is empty.
  bool AddServer(const ChunkRange& range);
  // False, and nothing is changed: the chunk is in no state for it.
  bool Lease(uint32_t chunk, uint32_t client);
  // `index` is that of the log's entry: what was sealed earlier has a lower one.
  bool Seal(uint32_t chunk, uint32_t client, uint64_t index);
  bool Recycle(uint32_t chunk);
  // Seals all that the client has leased.
  void SealAllOf(uint32_t client, uint64_t index);

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

  // How these chunks come to another server (state_transfer.h): first the memory servers and where
  // to look for a free chunk, then the chunks [begin, end), in their order, in pieces.
  void EncodeServers(std::string& to) const;
  void EncodeChunks(uint32_t begin, uint32_t end, std::string& to) const;
  // The same from the other side, into chunks that have no servers yet. False: the bytes are none.
  bool DecodeServers(std::string_view& from);
  // Takes the chunks from `begin` on, to the end of the bytes; `end` is one past the last one.
  bool DecodeChunks(std::string_view& from, uint32_t begin, uint32_t* end);

  const ChunkRanges& ranges() const { return ranges_; }
  const std::vector<Chunk>& all() const { return chunks_; }
  uint32_t free_count() const { return free_count_; }
  // Of all chunks.
  uint64_t live_units() const { return live_units_; }

 private:
  // The chunk may be empty now.
  void NoteEmpty(uint32_t chunk);
  static bool DecodeChunk(std::string_view& from, Chunk* chunk);

  ChunkRanges ranges_;
  std::vector<Chunk> chunks_;
  std::set<uint32_t> empty_;
  uint32_t free_count_ = 0;
  uint64_t live_units_ = 0;
  uint32_t next_ = 0;  // where to look for a free one
};

}  // namespace skep::pool

// chunk_upkeep.h: the hash server's care for chunks: recycles those that are empty.
//
// A chunk that is sealed and empty is recycled two read_ns_max after that was seen: who has read
// one of its slots before discards what comes later (H2, H3). If its client has not sealed it
// itself each memory server that has a frame of it fences the client first (H11), and the client
// writes nothing any more in that name.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "pool/index_context.h"
#include "pool/memory_calls.h"

namespace skep::pool {

class ChunkUpkeep {
 public:
  // `enter` puts an entry into the log. All outlive it.
  ChunkUpkeep(IndexContext& context, MemoryCalls& calls, std::function<void(const LogEntry&)> enter)
      : context_(context), calls_(calls), enter_(std::move(enter)) {}

  void LookForEmptyChunks();
  // Recycles the chunks whose time has come. Returns whether there were any.
  bool Recycle();
  // The entry was just applied.
  void HandleApplied(const LogEntry& entry);

 private:
  // A chunk on its way to be free.
  struct Recycling {
    uint64_t due_ns = 0;
    bool is_entered = false;           // in the log
    bool is_sealed_by_client = false;  // which then writes nothing to it any more
    // Nothing of the chunk's client can arrive at these servers any more.
    std::set<uint32_t> fenced;
    std::set<uint32_t> asked;  // the servers that are asked for that now
  };

  // Whether nothing can arrive in the chunk any more; else sees to that.
  bool IsFenced(uint32_t chunk, Recycling& recycling);
  void AskForFence(uint32_t chunk, uint32_t server);

  IndexContext& context_;
  MemoryCalls& calls_;
  const std::function<void(const LogEntry&)> enter_;
  std::map<uint32_t, Recycling> recycling_;  // by chunk
};

}  // namespace skep::pool

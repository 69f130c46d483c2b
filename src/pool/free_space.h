// free_space.h: the hash server's part in making room: who may lease the chunks that are left, and
// which chunks the cleaner (cleaner.h) should look at.
//
//   free chunks:   0 ........ reserve ........ wanted ........ all
//                  | cleaners | all lease,     | the cleaner
//                  | alone    | cleaner works  | rests
//
// Counted are chunks with all their replicas, as far as there are servers (frames.h).
// Reserve. The last few free chunks are leased to cleaners alone, so that a full pool can still be
//   cleaned. A cleaner that dies costs one of them until its chunk, which is sealed when it has
//   been silent, is empty or cleaned itself: it has few items, and so is one of the first victims.
//   If as many cleaners in a row have died as there are chunks in the reserve, each with items in
//   its chunk, then only deletes make room: they need no chunk.
// Room that is on its way. A chunk that is sealed and empty counts as free for what is wanted: it
//   is recycled in a while (chunk_upkeep.h).
// A full pool. A client that gets no chunk is told whether to wait: kCleaning while an empty chunk
//   is on its way, or a cleaner was heard of within kCleanerLeases leases and has not said that it
//   finds nothing more; else kPoolFull, at once. So a cleaner that has stopped, or that gains
//   nothing, holds up nobody for longer than that.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/cleaner_messages.h"
#include "pool/index_context.h"
#include "pool/messages.h"

namespace skep::pool {

class FreeSpace {
 public:
  // A cleaner that was heard of so many leases ago is taken to be at work.
  static constexpr uint64_t kCleanerLeases = 4;

  explicit FreeSpace(IndexContext& context) : context_(context), heard_ns_(context.now_ns()) {}

  // Whether one more chunk may be leased, while the leases of so many are entered and not applied.
  bool MayLease(LeaseFor purpose, size_t entered) const;
  // The answer to a lease of which nothing came.
  ReplyCode Refusal(LeaseFor purpose) const;

  // The cleaner asks for victims. Appends the fields of the answer. False: they are malformed.
  // Cost: a look at each chunk, a millisecond for a million of them.
  bool TellVictims(std::string_view fields, std::string* answer);
  // As a cleaner has told last; zeros: this server has heard of none.
  const UpkeepFigures& figures() const { return figures_; }

  // Of a pool of so many chunks: how many are the cleaner's, and how many are to be free.
  static uint32_t ReserveOf(uint32_t chunks);
  static uint32_t WantedOf(uint32_t chunks);

 private:
  uint32_t frames_per_chunk() const {
    return std::clamp(context_.state.chunks().CountOpen(), 1u, context_.replicas);
  }
  uint32_t chunk_count() const {
    return context_.state.chunks().CapacityFor(context_.replicas) / frames_per_chunk();
  }
  uint32_t free_count() const {
    return context_.state.chunks().FreeFor(context_.replicas) / frames_per_chunk();
  }
  // How many chunks more are to become free.
  uint32_t Missing() const;
  std::vector<Victim> Choose(const VictimsRequest& request) const;

  IndexContext& context_;
  uint64_t heard_ns_;  // of a cleaner; at first: when the role began, as one is about to begin
  bool found_nothing_ = false;
  uint64_t found_nothing_units_ = 0;  // so many were live then: if fewer are, there may be garbage
  UpkeepFigures figures_;
};

}  // namespace skep::pool

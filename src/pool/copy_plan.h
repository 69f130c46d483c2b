// copy_plan.h: which chunks are to lie somewhere else, or in one place more.
//
// A sealed chunk is to be copied as long as fewer of its frames are on open servers than there are
// to be replicas: one of its servers is gone or drained, or it was leased when there were fewer. A
// client, the copier (repairer.h), asks for such a chunk, and gets with it the lease of another
// chunk with one frame. What it has copied counts when the log says that the chunk adopts the frame
// (chunks.h), and a copier that ends leaves nothing but a leased chunk without items, which is
// recycled as any client's. A frame on a server that is drained, of a chunk that has enough others,
// is given back.
//
// Of the hash server, and no part of the state. Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "pool/chunks.h"
#include "pool/placement.h"

namespace skep::pool {

class CopyPlan {
 public:
  // Chunks that one call looks at.
  static constexpr uint32_t kChunksAtOnce = 64 * 1024;

  // Both outlive it. `replicas` are wanted, where there are as many open servers.
  CopyPlan(const Chunks& chunks, Placement& placement, size_t replicas)
      : chunks_(chunks), placement_(placement), replicas_(replicas) {}

  struct Copy {
    uint32_t chunk = 0;
    uint8_t gen = 0;
    uint32_t frame = kNoFrame;  // where to
  };
  // A chunk of which no copy is under way, and a frame that is not one of `taken`. Nothing: there
  // is none, or nowhere to copy it.
  std::optional<Copy> Next(const std::set<uint32_t>& taken);
  // The copy goes to the chunk `to`, whose lease is about to be applied.
  void Begin(uint32_t to, const Copy& copy) { copies_[to] = copy; }
  // The copy that goes to this chunk.
  const Copy& Of(uint32_t to) const { return copies_.at(to); }
  // The lease of the chunk has ended, with the adoption or without.
  void End(uint32_t to) { copies_.erase(to); }

  // Chunks with items that lie on fewer open servers than there are to be, and on some. Cost:
  // linear in chunks.
  uint64_t CountUnderReplicated() const;

  // A chunk with a frame that it can give back. Looks at some chunks.
  std::optional<uint32_t> FindShedding();

 private:
  size_t Wanted() const;
  size_t OpenFrames(const Chunks::Chunk& chunk) const;
  bool IsUnderWay(uint32_t chunk) const;
  std::optional<uint32_t> FrameFor(const Chunks::Chunk& chunk, const std::set<uint32_t>& taken);
  template <typename Is>
  std::optional<uint32_t> Look(uint32_t& next, Is is_wanted) const;

  const Chunks& chunks_;
  Placement& placement_;
  const size_t replicas_;
  std::map<uint32_t, Copy> copies_;  // under way, by the chunk that they go to
  uint32_t next_copy_ = 0;           // where to look
  uint32_t next_shedding_ = 0;
};

}  // namespace skep::pool

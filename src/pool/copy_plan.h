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
// The hash server alone has a plan: it is no part of the state. Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pool/chunks.h"
#include "pool/placement.h"

namespace skep::pool {

class CopyPlan {
 public:
  // Chunks that one call looks at.
  static constexpr uint32_t kChunksAtOnce = 16 * 1024;
  // When all were looked at in vain, one of so many calls looks at some.
  static constexpr uint32_t kRests = 16;
  // A copy leaves so many frames of a server to those who make room.
  static uint32_t KeptOf(const Chunks::Server& server) {
    return std::clamp(server.range.count / 32, 1u, 16u);
  }

  // Both outlive it. `replicas` are wanted, where there are as many open servers.
  CopyPlan(const Chunks& chunks, Placement& placement, size_t replicas)
      : chunks_(chunks), placement_(placement), replicas_(replicas) {}

  struct Copy {
    uint32_t chunk = 0;
    uint8_t gen = 0;
    uint32_t frame = kNoFrame;  // where to
    uint32_t client = 0;        // the copier
    bool is_entered = false;    // the lease is in the log, and not applied
  };
  // A chunk of which no copy is under way, and a frame that is not one of `taken`. Nothing: there
  // is none, or nowhere to copy it.
  std::optional<Copy> Next(const std::set<uint32_t>& taken);
  // Chunks were sealed: one of them may have to be copied.
  void HandleSealed() { vain_ = 0; }
  // The copy goes to the chunk `to`, whose lease is entered.
  void Begin(uint32_t to, const Copy& copy) { copies_[to] = copy; }
  // The lease of the chunk was applied, or refused.
  void HandleApplied(uint32_t to) {
    if (const auto at = copies_.find(to); at != copies_.end()) at->second.is_entered = false;
  }
  // The copy that goes to this chunk; nothing: the copier has not leased it any more.
  std::optional<Copy> Of(uint32_t to) const;
  // The chunks that the client has leased for copies, of which it cannot know: it asks for another.
  std::vector<uint32_t> TargetsOf(uint32_t client) const;

  // Chunks that have items, or may get some, and lie on fewer open servers than there are to be,
  // and on some. So if there are none, what is written from now on has all its replicas, too.
  // Cost: linear in chunks.
  uint64_t CountUnderReplicated() const;

  // A chunk with a frame that it can give back. Looks at some chunks.
  std::optional<uint32_t> FindShedding();

 private:
  size_t Wanted() const;
  size_t OpenFrames(const Chunks::Chunk& chunk) const;
  // Whether the copier can still have the chunk `to` adopted.
  bool IsLive(uint32_t to, const Copy& copy) const;
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
  // How many chunks were looked at in vain since the servers were of this version, and how often
  // nothing was looked at since.
  uint64_t vain_version_ = 0;
  uint64_t vain_ = 0;
  uint32_t rests_ = 0;
};

}  // namespace skep::pool

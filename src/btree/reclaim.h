// reclaim.h: when memory that left the tree is used again (Honeycomb, section 3.2).
//
// Whoever takes something out of the tree notes it in its slot (Slot::retired). Later it goes
// through two stages, a few pieces at a time, whoever executes a batch next or calls Maintain:
//
//   1 waiting   until no reader that is executing can need it (protocol S). Then, if no snapshot
//               lies in its interval, it is unlinked; else it is kept for the newest snapshot that
//               does, and looked at again when that goes.
//   2 dying     until no reader that is executing can stand on it (protocol E). Then it is marked
//               dead and freed. A whole node dies twice: no reader has its link from the tree after
//               the first time, so it leaves the page table; but one with a hint or a sibling link
//               could find it there until then, so its buffer is freed after a second time.
//
// Intervals. A buffer shows the state from its node version up to the version of the next newer one
//   in its chain, or, if it is the last one of its LID, up to the version the LID was retired at.
//   An outside block is seen from `born`, the version of its write, up to the version of the item
//   that replaced its own in the log, or of the change that no longer carried it over. A buffer
//   may name a block longer than that, but nobody follows the stub: a reader below `born` or from
//   that version on sees another item.
//
// Chains. All older buffers of a LID hang on its newest one by NodeHeader::older. Only the freer
//   changes `older` of a published buffer, under its mutex, and only to skip what nobody needs; a
//   reader that stands on what was skipped goes on from there, since it is freed later (stage 2).
//   The last `older` of a chain may name the node this one was split from; it is a link with a
//   generation, so it cannot dangle.
//
// Detached subtrees (range_delete.h) are walked here: each node is locked for good, marked retired
//   and noted. Until that is done, the nodes in them do not know that they are out of the tree, so
//   detached() tells readers not to trust hints and sibling links.
//
// Stalled readers show in Statistics: what they hold back, they hold in stage 1 or 2.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "base/arena.h"
#include "btree/node.h"
#include "btree/page_table.h"
#include "btree/snapshots.h"
#include "btree/stored.h"
#include "btree/sync_point.h"
#include "btree/versions.h"
#include "engine/release_gate.h"

namespace skep::btree {

// NodeHeader::older, decoded.
struct Older {
  uint64_t bits;
  static Older Of(ArenaAddress buffer) { return {buffer.bits}; }
  // LIDs of up to 40 bits: the low byte tells a link from a buffer, which starts at 256 B.
  static Older Of(Link link) {
    return {(link.bits & (uint64_t{0xffff} << 48)) | (link.lid() << 8) | 1};
  }
  bool is_link() const { return (bits & 0xff) == 1; }
  Link link() const { return Link::Of(bits << 16 >> 24, static_cast<uint16_t>(bits >> 48)); }
  ArenaAddress buffer() const { return is_link() ? ArenaAddress() : ArenaAddress{bits}; }
};

// What the freer has to know of a layout.
class NodeContents {
 public:
  virtual ~NodeContents() = default;
  virtual void Children(const NodeHeader* inner, std::vector<Link>* children) const = 0;
  // Every outside block the node names, those of items that nobody sees included.
  virtual void Blocks(const NodeHeader* node, uint32_t used,
                      std::vector<OutsideBlock>* blocks) const = 0;
  // A node of a detached subtree has been marked.
  virtual void HasLeft(const NodeHeader* node) const = 0;
};

struct ReclaimStatistics {
  uint64_t waiting = 0;   // pieces in stage 1
  uint64_t kept = 0;      // for snapshots
  uint64_t dying = 0;     // in stage 2
  uint64_t detached = 0;  // subtrees to walk, as far as known
  Version behind = 0;     // versions between the oldest waiting piece and the released one
  // Executing readers stand in the way of some piece.
  bool is_held_back() const { return waiting + dying + detached > 0; }
};

// Thread-safe.
class Reclaimer {
 public:
  Reclaimer(Arena& arena, PageTable& table, Versions& versions, Snapshots& snapshots,
            const ReleaseGate& gate, const NodeContents& contents, const SyncHook& hook,
            uint32_t front_bytes);

  // Takes over what `slot`, the caller's own, has retired, and moves up to `pieces_max` pieces on.
  // The slot must be out of its epoch. Returns whether there is more to do now. If another thread
  // is at it, waits for it, or does nothing and returns false.
  bool Run(Slot& slot, uint32_t pieces_max, bool wait = false);

  // Subtrees that are about to be detached: to be called before the change is visible. Each must be
  // retired as kSubtree afterwards.
  void AnnounceDetached(uint64_t subtrees) {
    detached_.fetch_add(subtrees, std::memory_order_seq_cst);
  }
  // Some nodes out of the tree do not know it. Ask before looking at a node's word.
  bool detached() const { return detached_.load(std::memory_order_seq_cst) != 0; }

  ReclaimStatistics Statistics() const;

 private:
  struct Dying {
    uint64_t epoch;
    Retired what;
  };

  bool Collect(Slot& slot, uint32_t pieces_max);
  void Take(const Retired& what);
  void Advance(const Retired& what);
  void AdvanceBuffer(const Retired& what);
  void AdvanceNode(const Retired& what);
  void AdvanceBlock(const Retired& what);
  void Prune(NodeHeader* head);
  bool WalkSome(uint32_t* pieces);
  bool WalkOne(const Retired& what);
  bool FreeSome(uint32_t* pieces, Slot& slot);
  void Free(const Retired& what, Slot& slot);
  Version PinIn(Version begin, Version end) const;
  NodeHeader* Node(ArenaAddress buffer) const { return NodeIn(arena_.At(buffer), front_bytes_); }
  void Die(const Retired& what) { dying_.push_back({.epoch = Slot::kIdle, .what = what}); }

  Arena& arena_;
  PageTable& table_;
  Versions& versions_;
  Snapshots& snapshots_;
  const ReleaseGate& gate_;
  const NodeContents& contents_;
  const SyncHook& hook_;
  const uint32_t front_bytes_;
  std::atomic<uint64_t> detached_{0};

  mutable std::mutex mutex_;  // guards all below
  std::deque<Retired> waiting_;
  std::vector<Retired> subtrees_;  // a stack
  std::deque<Dying> dying_;        // epoch is kIdle until the epoch is next advanced
  std::vector<Retired> again_;
  std::vector<Version> pinned_;  // ascending; of this Run
  Version horizon_ = 0;          // of this Run: no executing reader needs what ended up to here
  std::vector<Link> children_;
  std::vector<OutsideBlock> blocks_;
};

}  // namespace skep::btree

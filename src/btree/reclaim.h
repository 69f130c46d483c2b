// reclaim.h: when memory that left the tree is used again (Honeycomb, section 3.2).
//
// A thread that takes something out of the tree notes it in its state (ThreadState::retired). Later
// it goes through two stages, a little at a time, in threads that execute a batch or call Maintain:
//
//   1 waiting   until no reader that is executing can need the piece (protocol S): until it is
//               ripe. Then, if no snapshot lies in its interval, it is unlinked; else it is kept
//               for the newest snapshot that does, and judged again when that goes.
//   2 dying     until no reader that is executing can stand on the piece (protocol E). Then it is
//               marked dead and freed. A whole node dies twice: after the first time no reader has
//               its link from the tree, so it leaves the page table; but a reader with a hint or a
//               sibling link could find it there until then, so its buffer is freed after a second.
//
// Intervals. A buffer shows the state from its node version up to the version of the next newer one
//   in its chain or, if it is the newest of its LID, up to the version the LID was retired at. An
//   outside block is seen from `born`, the version of its write, up to the version of the log item
//   that replaced the block's, or of the change that no longer carried it over. A buffer may name a
//   block longer than that, but no reader follows the stub: a reader below `born` or from that
//   version on sees another item. A buffer or block is ripe when its interval ends at the horizon
//   or below: the lower one of the released version and all read floors.
//
// Chains. All older buffers of a LID hang on its newest one by NodeHeader::older. Only the freer
//   changes `older` of a published buffer, under its mutex, and only to skip buffers that nobody
//   needs; a reader that stands on a skipped buffer goes on from there, since it is freed later
//   (stage 2). The last `older` of a chain may name the node this one was split from; it is a link
//   with a generation, so it cannot dangle.
//
// Reclaiming by chain. The chains that wait are a set of LIDs, each once. A walk goes from the
//   newest buffer to the oldest, unlinks the buffers that are ripe and unneeded, and marks those
//   that snapshots keep (NodeWord::kKept). It ends at the first marked buffer: all below it are
//   marked. Only where snapshots have gone, and so marks, does it go on to the lowest of those.
//   There is one walk at a time. It may stop after any buffer and go on in a later run.
//
//   Identity. Memory is used again, so an address does not identify a buffer. A walk asks the chain
//   itself: a buffer that hangs on the newest buffer of a live link is an older buffer of that LID.
//   Two addresses are kept between runs, and both buffers stay in the chain so long: the one a walk
//   has come to, since only walks unlink, and a marked one, since no walk unlinks it before its
//   mark is gone, which is when the address is used for the last time. A buffer's word is the
//   freer's once it is ripe: its version is released, so the writer that replaced it has finished.
//   Only a merge (log_merger.h), whose version was released before, may mark it as replaced
//   meanwhile: so both only set and clear bits.
//
//   Cost. A walk visits the chain's u unripe buffers, the r that became ripe, and one marked one.
//   If it leaves unripe buffers, the chain is next walked when all of those are ripe: u <= r then,
//   plus the buffers that came meanwhile, each for the first time. So a buffer costs at most four
//   visits, however long readers hold it back and however often they let go for a moment, and the
//   chain has at most twice the buffers that readers hold back. Each run has a budget of visits of
//   its own, which is more than four times the buffers that come in with it (upkeep.h), so the
//   number of waiting buffers falls. A snapshot that goes costs its chains one walk down to the
//   buffers kept for it, past those kept for younger ones; snapshots that go before that walk has
//   begun share it.
//
// Budgets. A run walks at most `pieces_max` buffers of chains, judges as many blocks, walks as many
//   nodes of detached subtrees and frees as many pieces. Each kind has a queue and a budget of its
//   own, so that none waits for another. The blocks of one node are not divided: a run may judge or
//   free those of one node more.
//
// Detached subtrees (range_delete.h) are walked here: each node is locked for ever, marked retired
//   and waits from then on like any other that left. It takes its blocks along, unless a snapshot
//   is older than its end, so there is an entry for each node and not for each block; and the first
//   nodes are freed before the next ones are walked. Nodes that are not walked yet have no mark
//   that they are out of the tree, so detached() says that hints and sibling links are not to be
//   trusted.
//
// Pinned pieces (pinned_pieces.h) leave the tree like others. One that is pinned when it would be
// freed is left to whoever unpins it last, and comes back here then, to be freed by the next run.
//
// Statistics shows stalled readers: the pieces that they hold back are in stage 1 or 2. The lists
// of pieces that wait are charged to the memory budget.
#pragma once

#include <deque>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "btree/node.h"
#include "btree/page_table.h"
#include "btree/pinned_pieces.h"
#include "btree/snapshots.h"
#include "btree/stored.h"
#include "btree/sync_point.h"
#include "btree/versions.h"
#include "engine/leaf_board.h"
#include "engine/release_gate.h"

namespace skep::btree {

// The block as a piece that left the tree at a version.
inline Retired RetiredOf(const OutsideBlock& block, Version end) {
  return {.kind = block.is_piece() ? Retired::Kind::kPiece : Retired::Kind::kBlock,
          .bytes = block.bytes,
          .at = block.at,
          .end = end};
}

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

// Tells the freer about the contents of nodes, whose layout it does not know.
class NodeContents {
 public:
  virtual ~NodeContents() = default;
  virtual void Children(const NodeHeader* inner, std::vector<Link>* children) const = 0;
  // Appends every outside block that the node names, with those of items that nobody sees.
  virtual void Blocks(const NodeHeader* node, uint32_t used,
                      std::vector<OutsideBlock>* blocks) const = 0;
  // Called when a node of a detached subtree has been marked.
  virtual void HasLeft(const NodeHeader* node) const = 0;
};

struct ReclaimStatistics {
  uint64_t waiting = 0;   // chains, nodes and blocks in stage 1
  uint64_t kept = 0;      // buffers, nodes and blocks kept for snapshots
  uint64_t dying = 0;     // pieces in stage 2
  uint64_t detached = 0;  // subtrees still to be walked, as far as known
  uint64_t pinned = 0;    // pieces of values left to those who have pinned them (pinned_pieces.h)
  Version behind = 0;     // versions between the oldest that waits and the released one
  uint64_t visits = 0;    // visits of buffers and blocks since the tree was made: the work
  // Whether executing readers stand in the way of some piece.
  bool is_held_back() const { return waiting + dying + detached > 0; }
};

// Thread-safe.
// It has 40 methods: chains, blocks and subtrees are judged by one horizon and freed through one
// queue, under one mutex.
class Reclaimer {
 public:
  Reclaimer(Arena& arena, PageTable& table, Versions& versions, Snapshots& snapshots,
            const ReleaseGate& gate, const NodeContents& contents, const SyncHook& hook,
            MemoryBudget& budget, uint32_t front_bytes);

  // Takes over what `thread`, the caller's own, has retired, and works through the queues, at most
  // `pieces_max` pieces of each kind. The thread must be out of its epoch. Returns whether there is
  // more to do now. If another thread is running this, waits for it (`wait`), or does nothing and
  // returns false.
  bool Run(ThreadState& thread, uint32_t pieces_max, bool wait = false);

  // Announces subtrees that are about to be detached; called before the change is visible. Each
  // must be retired as kSubtree afterwards.
  void AnnounceDetached(uint64_t subtrees) {
    detached_.fetch_add(subtrees, std::memory_order_seq_cst);
    ShowDetached(LeafBoard::kDetach + subtrees);
  }
  // Shows the same in the board from now on. Called before anything is detached.
  void ShowDetachedIn(LeafBoard* board) { board_ = board; }
  // Whether nodes may be out of the tree without a mark. Ask before looking at a node's word.
  bool detached() const { return detached_.load(std::memory_order_seq_cst) != 0; }

  ReclaimStatistics Statistics() const;
  // Bytes of buffers and blocks that were freed here since the tree was made.
  uint64_t freed_bytes() const { return freed_bytes_.load(std::memory_order_relaxed); }
  // The bytes of the lists of pieces that wait.
  uint64_t held_bytes() const { return memory_.used(); }
  // Where those who pin pieces leave the ones that they are the last to need.
  UnpinnedPieces& unpinned() const { return unpinned_; }

 private:
  // The work that is to be done in the chain of a LID.
  struct Chain {
    Version due = 0;                        // the horizon from which on the chain is to be walked
    Version unmarked = ThreadState::kIdle;  // lowest version of the buffers that lost their marks
    bool has_left = false;                  // the node has left the tree
    Version left_at = 0;                    // the version at which it left, if it has
    Retired::Kind left_as = {};             // if it has left: kNode or kWholeNode
  };
  struct Due {
    Version due;
    Link link;
  };
  // The one walk that has begun.
  struct Walk {
    bool is_on = false;
    Link link;
    Chain chain;
    NodeHeader* newer = nullptr;  // the walk goes on with the buffer that hangs on this one
    Version top = 0;              // version of the chain's newest buffer
    bool left_unripe = false;
  };
  struct Dying {
    uint64_t epoch;
    Retired what;
  };
  struct Budget {
    uint32_t visits, blocks, nodes, frees;
  };

  void ShowDetached(uint64_t difference) {
    if (board_ != nullptr) board_->detached.fetch_add(difference, std::memory_order_seq_cst);
  }
  bool IsRipe(Version end) const SKEP_REQUIRES(mutex_) { return end <= horizon_; }
  void Collect(ThreadState& thread) SKEP_REQUIRES(mutex_);
  void Take(const Retired& what) SKEP_REQUIRES(mutex_);
  bool TakeReleased(uint32_t pieces_max) SKEP_REQUIRES(mutex_);
  void TakeBack(const Retired& what) SKEP_REQUIRES(mutex_);
  void TakeChain(Link link, const Chain& chain) SKEP_REQUIRES(mutex_);
  void Await(Link link, const Chain& chain, bool at_once) SKEP_REQUIRES(mutex_);
  void AwaitAgain(Link link, const Chain& chain) SKEP_REQUIRES(mutex_);
  void Queue(Link link, Version due) SKEP_REQUIRES(mutex_);
  void WalkChains() SKEP_REQUIRES(mutex_);
  void BeginWalk(Link link, const Chain& chain) SKEP_REQUIRES(mutex_);
  void WalkOn() SKEP_REQUIRES(mutex_);
  bool WalkBuffers() SKEP_REQUIRES(mutex_);
  void EndWalk() SKEP_REQUIRES(mutex_);
  void JudgeNode(NodeHeader* head) SKEP_REQUIRES(mutex_);
  uint32_t BytesOf(const NodeHeader* node, Retired::Kind kind) SKEP_REQUIRES(mutex_);
  void NoteFreed(uint32_t bytes) { freed_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void QueueBlocks(const NodeHeader* node, Version end) SKEP_REQUIRES(mutex_);
  void JudgeBlocks() SKEP_REQUIRES(mutex_);
  void JudgeBlock(const Retired& what) SKEP_REQUIRES(mutex_);
  bool WalkSubtrees() SKEP_REQUIRES(mutex_);
  bool MarkSubtree(const Retired& what) SKEP_REQUIRES(mutex_);
  void FreeSome(ThreadState& thread) SKEP_REQUIRES(mutex_);
  void Free(const Retired& what, ThreadState& thread) SKEP_REQUIRES(mutex_);
  void FreeNode(const Retired& what, ThreadState& thread) SKEP_REQUIRES(mutex_);
  void FreeBlock(const OutsideBlock& block, ThreadState& thread) SKEP_REQUIRES(mutex_);
  void FreeUnpinned(ThreadState& thread) SKEP_REQUIRES(mutex_);
  void ListBlocks(const NodeHeader* node) SKEP_REQUIRES(mutex_);
  bool HasRipe() const SKEP_REQUIRES(mutex_);
  bool CanFree() const SKEP_REQUIRES(mutex_) {
    return !dying_.empty() && dying_.front().epoch < lowest_epoch_;
  }
  NodeHeader* Node(ArenaAddress buffer) const { return NodeIn(arena_.At(buffer), front_bytes_); }
  void Die(const Retired& what) SKEP_REQUIRES(mutex_) {
    dying_.push_back({.epoch = ThreadState::kIdle, .what = what});
  }

  Arena& arena_;
  PageTable& table_;
  Versions& versions_;
  Snapshots& snapshots_;
  const ReleaseGate& gate_;
  const NodeContents& contents_;
  const SyncHook& hook_;
  const uint32_t front_bytes_;
  std::atomic<uint64_t> detached_{0};
  LeafBoard* board_ = nullptr;  // null: the tree is not shared
  std::atomic<uint64_t> freed_bytes_{0};

  BudgetedMemory memory_;
  mutable UnpinnedPieces unpinned_;
  uint64_t left_to_pins_ SKEP_GUARDED_BY(mutex_) = 0;  // pieces disowned and not freed
  mutable Mutex mutex_;
  // The set of LIDs whose chains wait. Each has an entry in `chains_` with its `due`; an entry with
  // another `due` is out of date.
  std::pmr::unordered_map<uint64_t, Chain> dirty_ SKEP_GUARDED_BY(mutex_){&memory_};
  // Ordered roughly by the time at which chains become ripe, which is the order of versions; a
  // chain that is ripe when it comes goes to the front.
  std::pmr::deque<Due> chains_ SKEP_GUARDED_BY(mutex_){&memory_};
  std::pmr::deque<Retired> blocks_ SKEP_GUARDED_BY(mutex_){&memory_};
  Walk walk_ SKEP_GUARDED_BY(mutex_);
  // A stack: kSubtree, or kWholeNode once the node is marked.
  std::pmr::deque<Retired> subtrees_ SKEP_GUARDED_BY(mutex_){&memory_};
  // The epoch of a piece is kIdle until the epoch is next advanced.
  std::pmr::deque<Dying> dying_ SKEP_GUARDED_BY(mutex_){&memory_};
  std::vector<Retired> again_ SKEP_GUARDED_BY(mutex_);
  // Of this Run: no executing reader needs a piece that ended at this version or below.
  Version horizon_ SKEP_GUARDED_BY(mutex_) = 0;
  // Of this Run: the lowest epoch that readers are in.
  uint64_t lowest_epoch_ SKEP_GUARDED_BY(mutex_) = 0;
  Budget left_ SKEP_GUARDED_BY(mutex_) = {};  // budget of this Run
  uint64_t visits_ SKEP_GUARDED_BY(mutex_) = 0;
  std::vector<Link> children_ SKEP_GUARDED_BY(mutex_);
  std::vector<OutsideBlock> named_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep::btree

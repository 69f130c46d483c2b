#include "btree/reclaim.h"

#include <algorithm>
#include <new>

#include "base/mutex.h"
#include "base/reserve_more.h"
#include "btree/pieces.h"

namespace skep::btree {
namespace {

void Mark(NodeHeader* node, uint64_t mark) { node->word.fetch_or(mark, std::memory_order_relaxed); }
void Unmark(NodeHeader* node, uint64_t mark) {
  node->word.fetch_and(~mark, std::memory_order_relaxed);
}
bool HasMark(const NodeHeader* node, uint64_t mark) {
  return (node->word.load(std::memory_order_relaxed) & mark) != 0;
}

// Takes one unit from a budget; false if it is used up.
bool Spend(uint32_t* budget) {
  if (*budget == 0) return false;
  --*budget;
  return true;
}

}  // namespace

Reclaimer::Reclaimer(Arena& arena, PageTable& table, Versions& versions, Snapshots& snapshots,
                     const ReleaseGate& gate, const NodeContents& contents, const SyncHook& hook,
                     MemoryBudget& budget, uint32_t front_bytes)
    : arena_(arena),
      table_(table),
      versions_(versions),
      snapshots_(snapshots),
      gate_(gate),
      contents_(contents),
      hook_(hook),
      front_bytes_(front_bytes),
      memory_(budget) {}

bool Reclaimer::Run(ThreadState& thread, uint32_t pieces_max, bool wait) {
  if (wait) {
    mutex_.lock();
  } else if (!mutex_.try_lock()) {
    return false;
  }
  const MutexLock lock(mutex_, std::adopt_lock);
  // The released version is read before the floors, and both before any pin is looked for (S1,
  // snapshots.h).
  const Version released = gate_.released();
  horizon_ = std::min(released, versions_.LowestReadFloor());
  left_ = {.visits = pieces_max, .blocks = pieces_max, .nodes = pieces_max, .frees = pieces_max};

  const bool more_released = TakeReleased(pieces_max);
  WalkChains();
  Collect(thread);
  JudgeBlocks();
  FreeSome(thread);
  FreeUnpinned(thread);
  const bool more_to_mark = WalkSubtrees();
  // The pieces that began to die in this run have no epoch yet.
  const bool more_to_free = CanFree() || !unpinned_.is_empty() ||
                            (!dying_.empty() && dying_.front().epoch == ThreadState::kIdle);
  return more_released || more_to_mark || more_to_free || HasRipe();
}

bool Reclaimer::HasRipe() const {
  return walk_.is_on || (!chains_.empty() && IsRipe(chains_.front().due)) ||
         (!blocks_.empty() && IsRipe(blocks_.front().end));
}

void Reclaimer::Collect(ThreadState& thread) {
  size_t taken = 0;
  try {
    while (taken < thread.retired.size()) {
      Take(thread.retired[taken]);
      ++taken;
      WalkOn();
    }
  } catch (const std::bad_alloc&) {
    thread.retired.erase(thread.retired.begin(),
                         thread.retired.begin() + static_cast<ptrdiff_t>(taken));
    throw;
  }
  thread.retired.clear();
}

void Reclaimer::Take(const Retired& what) {
  switch (what.kind) {
    case Retired::Kind::kBuffer:
      return TakeChain(what.link, {.due = what.end});
    case Retired::Kind::kNode:
    case Retired::Kind::kWholeNode:
      return TakeChain(
          what.link,
          {.due = what.end, .has_left = true, .left_at = what.end, .left_as = what.kind});
    case Retired::Kind::kSubtree:
      return subtrees_.push_back(what);
    case Retired::Kind::kBlock:
    case Retired::Kind::kPiece:
      return blocks_.push_back(what);
    case Retired::Kind::kUnlinked:
      return Die(what);
  }
}

// Takes back some of the pieces kept for snapshots that are gone. True if there are more of those.
bool Reclaimer::TakeReleased(uint32_t pieces_max) {
  // again_ has some already if a run before had no memory to go on with them.
  const bool more = snapshots_.TakeReleased(&again_, pieces_max);
  for (; !again_.empty(); again_.pop_back()) TakeBack(again_.back());
  return more;
}

void Reclaimer::TakeBack(const Retired& what) {
  if (what.is_block()) return blocks_.push_front(what);
  Chain chain{.due = horizon_};
  if (what.kind != Retired::Kind::kBuffer) {
    chain.has_left = true;
    chain.left_at = what.end;
    chain.left_as = what.kind;
    return Await(what.link, chain, true);
  }
  NodeHeader* const buffer = Node(what.at);
  chain.unmarked = buffer->version.load(std::memory_order_relaxed);
  Await(what.link, chain, true);
  Unmark(buffer, NodeWord::kKept);
}

// Begins the walk of the chain now if it is ripe and no other walk is under way; else the chain
// waits. The caller calls WalkOn, which may throw, once its own entry is gone: the walk replaces
// it.
void Reclaimer::TakeChain(Link link, const Chain& chain) {
  if (walk_.is_on || !IsRipe(chain.due) || left_.visits == 0 || dirty_.contains(link.bits)) {
    return Await(link, chain, false);
  }
  BeginWalk(link, chain);
}

// Notes in the set what is to be done in a chain. A chain that waits already keeps its `due`,
// unless `at_once`.
void Reclaimer::Await(Link link, const Chain& chain, bool at_once) {
  const auto at = dirty_.find(link.bits);
  const bool is_known = at != dirty_.end();
  if (!is_known || (at_once && !IsRipe(at->second.due))) Queue(link, chain.due);
  if (!is_known) {
    // If this throws, the entry in the queue is out of date.
    dirty_.emplace(link.bits, chain);
    return;
  }
  Chain& known = at->second;
  if (at_once && !IsRipe(known.due)) known.due = chain.due;
  known.unmarked = std::min(known.unmarked, chain.unmarked);
  if (!chain.has_left) return;
  known.has_left = true;
  known.left_at = chain.left_at;
  known.left_as = chain.left_as;
}

void Reclaimer::Queue(Link link, Version due) {
  const Due entry = {.due = due, .link = link};
  IsRipe(due) ? chains_.push_front(entry) : chains_.push_back(entry);
}

void Reclaimer::WalkChains() {
  if (walk_.is_on) WalkOn();
  while (!walk_.is_on && left_.visits > 0 && !chains_.empty() && IsRipe(chains_.front().due)) {
    const Due due = chains_.front();
    chains_.pop_front();
    const auto at = dirty_.find(due.link.bits);
    if (at == dirty_.end() || at->second.due != due.due) continue;
    const Chain chain = at->second;
    dirty_.erase(at);
    BeginWalk(due.link, chain);
    WalkOn();
  }
}

void Reclaimer::BeginWalk(Link link, const Chain& chain) {
  const ArenaAddress head = table_.Find(link);
  if (!head) return;  // the whole node has been freed
  Spend(&left_.visits);
  ++visits_;
  NodeHeader* const node = Node(head);
  walk_ = {.is_on = true,
           .link = link,
           .chain = chain,
           .newer = node,
           .top = node->version.load(std::memory_order_relaxed)};
}

// A walk that meets an exception goes on in a later run.
void Reclaimer::WalkOn() {
  if (walk_.is_on && WalkBuffers()) EndWalk();
}

// Walks on to the end of what the walk has to look at. False: the budget is used up.
bool Reclaimer::WalkBuffers() {
  while (true) {
    const Older older{walk_.newer->older.load(std::memory_order_acquire)};
    if (!older.buffer()) return true;
    if (!Spend(&left_.visits)) return false;
    ++visits_;
    NodeHeader* const buffer = Node(older.buffer());
    const Version begin = buffer->version.load(std::memory_order_relaxed);
    const Version end = walk_.newer->version.load(std::memory_order_relaxed);
    if (!IsRipe(end)) {
      walk_.left_unripe = true;
      walk_.newer = buffer;
      continue;
    }
    if (HasMark(buffer, NodeWord::kKept)) {
      if (begin < walk_.chain.unmarked) return true;
      walk_.newer = buffer;
      continue;
    }
    const Version pin = snapshots_.PinIn(begin, end);
    if (pin != ThreadState::kIdle) {
      snapshots_.Keep(pin, {.kind = Retired::Kind::kBuffer,
                            .bytes = static_cast<uint32_t>(buffer->buffer_bytes()),
                            .link = walk_.link,
                            .at = older.buffer()});
      Mark(buffer, NodeWord::kKept);
      walk_.newer = buffer;
      continue;
    }
    // The piece gets its epoch at the end of this run, so no thread frees it before it is unlinked.
    Die({.kind = Retired::Kind::kUnlinked,
         .bytes = static_cast<uint32_t>(buffer->buffer_bytes()),
         .at = older.buffer()});
    // seq_cst, for (E1) of versions.h.
    walk_.newer->older.store(buffer->older.load(std::memory_order_acquire),
                             std::memory_order_seq_cst);
  }
}

void Reclaimer::EndWalk() {
  Chain chain = walk_.chain;
  const bool is_early = chain.has_left && !IsRipe(chain.left_at);
  if (walk_.left_unripe || is_early) {
    chain.due = walk_.left_unripe ? walk_.top : chain.left_at;
    chain.unmarked = ThreadState::kIdle;
    AwaitAgain(walk_.link, chain);
  } else {
    JudgeNode(Node(table_.Find(walk_.link)));
  }
  walk_ = {};
}

// Queues the chain again after a walk that left unripe buffers. Those that came meanwhile wait as
// long as the rest.
void Reclaimer::AwaitAgain(Link link, const Chain& chain) {
  const auto at = dirty_.find(link.bits);
  if (at != dirty_.end() && !IsRipe(at->second.due)) {
    Queue(link, chain.due);
    at->second.due = chain.due;
  }
  Await(link, chain, false);
}

// The chain has been walked and is ripe: decides what becomes of the node itself, if it has left.
void Reclaimer::JudgeNode(NodeHeader* head) {
  Chain& chain = walk_.chain;
  const Link link = walk_.link;
  const bool has_older =
      static_cast<bool>(Older{head->older.load(std::memory_order_acquire)}.buffer());
  if (!chain.has_left) {
    if (has_older || !HasMark(head, NodeWord::kHollow)) return;
    Die({.kind = Retired::Kind::kNode, .link = link});
    return Unmark(head, NodeWord::kHollow);  // so that this happens once only
  }
  const Version pin =
      snapshots_.PinIn(head->version.load(std::memory_order_relaxed), chain.left_at);
  if (pin != ThreadState::kIdle) {
    return snapshots_.Keep(pin, {.kind = chain.left_as,
                                 .bytes = BytesOf(head, chain.left_as),
                                 .link = link,
                                 .end = chain.left_at});
  }
  const bool is_whole = chain.left_as == Retired::Kind::kWholeNode;
  if (is_whole && (has_older || snapshots_.PinIn(0, chain.left_at) != ThreadState::kIdle)) {
    QueueBlocks(head, chain.left_at);
    chain.left_as = Retired::Kind::kNode;
  }
  if (has_older) return Mark(head, NodeWord::kHollow);
  Die({.kind = chain.left_as, .link = link});
}

// The bytes that are freed with the node: its buffer, and its blocks if they are retired with it.
uint32_t Reclaimer::BytesOf(const NodeHeader* node, Retired::Kind kind) {
  uint64_t bytes = node->buffer_bytes();
  if (kind == Retired::Kind::kWholeNode) {
    ListBlocks(node);
    for (const OutsideBlock& block : named_) bytes += block.bytes;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

// Queues the node's blocks, each by itself, since a snapshot may see some of them in an older
// buffer.
void Reclaimer::QueueBlocks(const NodeHeader* node, Version end) {
  ListBlocks(node);
  size_t queued = 0;
  try {
    for (; queued < named_.size(); ++queued) {
      blocks_.push_front(RetiredOf(named_[queued], end));
    }
  } catch (const std::bad_alloc&) {
    for (; queued > 0; --queued) blocks_.pop_front();
    throw;
  }
}

// A block leaves the queue only once it is in the next list, so none is lost when memory runs out.
void Reclaimer::JudgeBlocks() {
  while (!blocks_.empty() && IsRipe(blocks_.front().end) && Spend(&left_.blocks)) {
    ++visits_;
    JudgeBlock(blocks_.front());
    blocks_.pop_front();
  }
}

void Reclaimer::JudgeBlock(const Retired& what) {
  Version born;
  std::memcpy(&born, arena_.At(what.at), sizeof born);
  const Version pin = snapshots_.PinIn(born, what.end);
  if (pin != ThreadState::kIdle) {
    snapshots_.Keep(pin, what);
  } else {
    Die(what);
  }
}

// Marks nodes of detached subtrees, children before their parents, and takes them over, unless
// nodes marked before are still to be walked or freed. True if some are left that could be marked
// now.
bool Reclaimer::WalkSubtrees() {
  size_t busy = 0;
  while (busy < subtrees_.size() && !HasRipe() && !CanFree()) {
    const Retired what = subtrees_.back();
    if (what.kind == Retired::Kind::kWholeNode) {
      TakeChain(what.link,
                {.due = what.end, .has_left = true, .left_at = what.end, .left_as = what.kind});
      subtrees_.pop_back();
      WalkOn();
      continue;
    }
    if (!Spend(&left_.nodes)) break;
    ++visits_;
    if (MarkSubtree(what)) continue;
    subtrees_.push_front(what);
    subtrees_.pop_back();
    ++busy;
  }
  return busy < subtrees_.size();
}

// Marks the last node of the stack: it becomes one that has left, and its children are pushed above
// it. False if a writer that is about to give up still holds the node.
bool Reclaimer::MarkSubtree(const Retired& what) {
  NodeHeader* const node = Node(table_.Find(what.link));
  uint64_t word = node->word.load(std::memory_order_relaxed);
  if ((word & NodeWord::kLocked) != 0 ||
      !node->word.compare_exchange_strong(word, word | NodeWord::kLocked | NodeWord::kRetired,
                                          std::memory_order_seq_cst)) {
    return false;
  }
  const size_t before = subtrees_.size();
  try {
    children_.clear();
    if (!node->is_leaf()) contents_.Children(node, &children_);
    for (const Link child : children_) {
      subtrees_.push_back({.kind = Retired::Kind::kSubtree, .link = child, .end = what.end});
    }
  } catch (const std::bad_alloc&) {
    while (subtrees_.size() > before) subtrees_.pop_back();
    node->word.store(word, std::memory_order_release);
    throw;
  }
  subtrees_[before - 1].kind = Retired::Kind::kWholeNode;
  // The children are added first: detached_ must not come to zero between the two.
  detached_.fetch_add(children_.size(), std::memory_order_seq_cst);
  detached_.fetch_sub(1, std::memory_order_seq_cst);
  ShowDetached(children_.size() - 1);
  contents_.HasLeft(node);
  return true;
}

// Frees the pieces that no reader can stand on any more.
void Reclaimer::FreeSome(ThreadState& thread) {
  lowest_epoch_ = 0;
  if (dying_.empty()) return;
  if (dying_.back().epoch == ThreadState::kIdle) {
    hook_.Reach(SyncPoint::kReclaimUnlinked);
    const uint64_t epoch = versions_.AdvanceEpoch();
    for (auto dying = dying_.rbegin(); dying != dying_.rend() && dying->epoch == ThreadState::kIdle;
         ++dying) {
      dying->epoch = epoch;
    }
  }
  lowest_epoch_ = versions_.LowestEpoch();
  while (CanFree() && Spend(&left_.frees)) {
    ++visits_;
    Free(dying_.front().what, thread);
    dying_.pop_front();
  }
}

void Reclaimer::Free(const Retired& what, ThreadState& thread) {
  switch (what.kind) {
    case Retired::Kind::kBlock:
      return FreeBlock({.at = what.at, .bytes = what.bytes}, thread);
    case Retired::Kind::kPiece:
      return FreeBlock({.at = what.at, .bytes = what.bytes, .value_bytes = OutsideBlock::kPiece},
                       thread);
    case Retired::Kind::kUnlinked:
      // kDead marks freed memory, for readers outside the epochs.
      Node(what.at)->word.store(NodeWord::kDead, std::memory_order_relaxed);
      NoteFreed(what.bytes);
      return arena_.Free(thread.cache, what.at, what.bytes);
    default:
      return FreeNode(what, thread);
  }
}

// Readers with a hint or a sibling link could find the node in the page table until now, so its
// buffer dies a second time. That is noted first: `what` is an element of the list too, and
// elements stay where they are.
void Reclaimer::FreeNode(const Retired& what, ThreadState& thread) {
  const Link link = what.link;
  const ArenaAddress at = table_.Find(link);
  NodeHeader* const node = Node(at);
  named_.clear();
  if (what.kind == Retired::Kind::kWholeNode) ListBlocks(node);
  Die({.kind = Retired::Kind::kUnlinked,
       .bytes = static_cast<uint32_t>(node->buffer_bytes()),
       .at = at});
  for (const OutsideBlock& block : named_) FreeBlock(block, thread);
  visits_ += named_.size();
  left_.frees -= std::min<uint32_t>(left_.frees, static_cast<uint32_t>(named_.size()));
  node->version.store(NodeHeader::kDead, std::memory_order_relaxed);
  table_.Free(link);
}

// A block is marked dead in its `born`. A piece that is pinned is left to those who have pinned it.
void Reclaimer::FreeBlock(const OutsideBlock& block, ThreadState& thread) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(arena_.At(block.at)))
      .store(NodeWord::kDead, std::memory_order_relaxed);
  if (block.is_piece() && !Disown(arena_, block.at)) {
    ++left_to_pins_;
    return;
  }
  NoteFreed(block.bytes);
  arena_.Free(thread.cache, block.at, block.bytes);
}

// Frees the pieces that nobody pins any more.
void Reclaimer::FreeUnpinned(ThreadState& thread) {
  OutsideBlock piece;
  while (left_.frees > 0 && unpinned_.Take(&piece)) {
    Spend(&left_.frees);
    --left_to_pins_;
    NoteFreed(piece.bytes);
    arena_.Free(thread.cache, piece.at, piece.bytes);
  }
}

// Fills named_ with the blocks that the node names, each once.
void Reclaimer::ListBlocks(const NodeHeader* node) {
  named_.clear();
  contents_.Blocks(node, NodeWord{node->word.load(std::memory_order_relaxed)}.used(), &named_);
  KeepEachOnce(&named_);
  AddPieces(arena_, &named_);
}

ReclaimStatistics Reclaimer::Statistics() const {
  const MutexLock lock(mutex_);
  const Version released = gate_.released();
  Version oldest = released;
  if (!chains_.empty()) oldest = std::min(oldest, chains_.front().due);
  if (!blocks_.empty()) oldest = std::min(oldest, blocks_.front().end);
  return {.waiting = dirty_.size() + (walk_.is_on ? 1 : 0) + blocks_.size() + subtrees_.size(),
          .kept = snapshots_.kept(),
          .dying = dying_.size(),
          .detached = detached_.load(std::memory_order_relaxed),
          .pinned = left_to_pins_,
          .behind = released - oldest,
          .visits = visits_};
}

}  // namespace skep::btree

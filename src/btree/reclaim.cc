#include "btree/reclaim.h"

#include <algorithm>
#include <new>

#include "base/reserve_more.h"

namespace skep::btree {

Reclaimer::Reclaimer(Arena& arena, PageTable& table, Versions& versions, Snapshots& snapshots,
                     const ReleaseGate& gate, const NodeContents& contents, const SyncHook& hook,
                     uint32_t front_bytes)
    : arena_(arena),
      table_(table),
      versions_(versions),
      snapshots_(snapshots),
      gate_(gate),
      contents_(contents),
      hook_(hook),
      front_bytes_(front_bytes) {}

bool Reclaimer::Run(Slot& slot, uint32_t pieces_max, bool wait) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return false;
  }
  const bool more_to_look_at = Collect(slot, pieces_max);
  // In this order (S1, snapshots.h).
  const Version released = gate_.released();
  snapshots_.CopyPinned(&pinned_);
  horizon_ = std::min(released, versions_.LowestReadFloor());

  uint32_t pieces = pieces_max;
  const bool more_to_walk = WalkSome(&pieces);
  // A piece leaves a list once it is in the next one: so none is lost where memory ends.
  while (pieces > 0 && !waiting_.empty() && waiting_.front().end <= horizon_) {
    Advance(waiting_.front());
    waiting_.pop_front();
    --pieces;
  }
  pieces = pieces_max;
  const bool more_to_free = FreeSome(&pieces, slot);
  return more_to_look_at || more_to_walk || more_to_free ||
         (!waiting_.empty() && waiting_.front().end <= horizon_);
}

// True if there is more that was kept for snapshots which are gone.
bool Reclaimer::Collect(Slot& slot, uint32_t pieces_max) {
  size_t taken = 0;
  try {
    for (; taken < slot.retired.size(); ++taken) Take(slot.retired[taken]);
  } catch (const std::bad_alloc&) {
    slot.retired.erase(slot.retired.begin(), slot.retired.begin() + static_cast<ptrdiff_t>(taken));
    throw;
  }
  slot.retired.clear();
  // It has some already if there was no memory to go on with them.
  const bool more = snapshots_.TakeReleased(&again_, pieces_max);
  waiting_.insert(waiting_.begin(), again_.begin(), again_.end());
  again_.clear();
  return more;
}

void Reclaimer::Take(const Retired& what) {
  if (what.kind == Retired::Kind::kSubtree) {
    subtrees_.push_back(what);
  } else if (what.kind == Retired::Kind::kUnlinked) {
    Die(what);
  } else {
    waiting_.push_back(what);
  }
}

// Moves a piece on: to dying, or into the keeping of a snapshot.
void Reclaimer::Advance(const Retired& what) {
  switch (what.kind) {
    case Retired::Kind::kBuffer:
      return AdvanceBuffer(what);
    case Retired::Kind::kNode:
      return AdvanceNode(what);
    default:
      return AdvanceBlock(what);
  }
}

// The newest pinned version in [begin, end); Slot::kIdle if there is none.
Version Reclaimer::PinIn(Version begin, Version end) const {
  const auto above = std::lower_bound(pinned_.begin(), pinned_.end(), end);
  if (above == pinned_.begin()) return Slot::kIdle;
  return *std::prev(above) >= begin ? *std::prev(above) : Slot::kIdle;
}

// Unlinks from the chain of `head` every older buffer that nobody can need.
void Reclaimer::Prune(NodeHeader* head) {
  NodeHeader* newer = head;
  while (true) {
    const Older older{newer->older.load(std::memory_order_acquire)};
    if (!older.buffer()) return;
    NodeHeader* const buffer = Node(older.buffer());
    const Version end = newer->version.load(std::memory_order_relaxed);
    const bool needed = end > horizon_ ||
                        PinIn(buffer->version.load(std::memory_order_relaxed), end) != Slot::kIdle;
    if (needed) {
      newer = buffer;
      continue;
    }
    // It has no epoch before this run ends, so nobody frees it before it is unlinked.
    Die({.kind = Retired::Kind::kUnlinked,
         .bytes = static_cast<uint32_t>(buffer->buffer_bytes()),
         .at = older.buffer()});
    // seq_cst: (E1).
    newer->older.store(buffer->older.load(std::memory_order_acquire), std::memory_order_seq_cst);
  }
}

void Reclaimer::AdvanceBuffer(const Retired& what) {
  const ArenaAddress head = table_.Find(what.link);
  if (!head) return;  // the whole node is gone
  Prune(Node(head));
  // Is the one that this piece stands for still there?
  for (NodeHeader* newer = Node(head);;) {
    const Older older{newer->older.load(std::memory_order_acquire)};
    if (!older.buffer()) return;
    NodeHeader* const buffer = Node(older.buffer());
    if (older.buffer() == what.at) {
      snapshots_.Keep(PinIn(buffer->version.load(std::memory_order_relaxed),
                            newer->version.load(std::memory_order_relaxed)),
                      what);
      return;
    }
    newer = buffer;
  }
}

void Reclaimer::AdvanceNode(const Retired& what) {
  const ArenaAddress at = table_.Find(what.link);
  if (!at) return;
  NodeHeader* const head = Node(at);
  Prune(head);
  const Version pin = PinIn(head->version.load(std::memory_order_relaxed), what.end);
  if (pin != Slot::kIdle) {
    snapshots_.Keep(pin, what);
    return;
  }
  const Older older{head->older.load(std::memory_order_acquire)};
  if (older.buffer()) {
    const NodeHeader* const buffer = Node(older.buffer());
    snapshots_.Keep(PinIn(buffer->version.load(std::memory_order_relaxed),
                          head->version.load(std::memory_order_relaxed)),
                    what);
    return;
  }
  Die(what);
}

void Reclaimer::AdvanceBlock(const Retired& what) {
  Version born;
  std::memcpy(&born, arena_.At(what.at), sizeof born);
  const Version pin = PinIn(born, what.end);
  if (pin != Slot::kIdle) {
    snapshots_.Keep(pin, what);
  } else {
    Die(what);
  }
}

// Walks up to `pieces` nodes of detached subtrees. True if some are left that could be walked now.
bool Reclaimer::WalkSome(uint32_t* pieces) {
  size_t busy = 0;
  while (*pieces > 0 && busy < subtrees_.size()) {
    --*pieces;
    const Retired what = subtrees_.back();
    if (WalkOne(what)) {
      detached_.fetch_sub(1, std::memory_order_seq_cst);
    } else {
      subtrees_.pop_back();
      subtrees_.insert(subtrees_.begin(), what);
      ++busy;
    }
  }
  return busy < subtrees_.size();
}

// The last one of the stack makes room for its children. False if a writer that is about to give up
// still holds the node.
bool Reclaimer::WalkOne(const Retired& what) {
  NodeHeader* const node = Node(table_.Find(what.link));
  uint64_t word = node->word.load(std::memory_order_relaxed);
  if ((word & NodeWord::kLocked) != 0 ||
      !node->word.compare_exchange_strong(word, word | NodeWord::kLocked | NodeWord::kRetired,
                                          std::memory_order_seq_cst)) {
    return false;
  }
  const size_t waiting = waiting_.size();
  try {
    children_.clear();
    if (!node->is_leaf()) contents_.Children(node, &children_);
    ReserveMore(subtrees_, children_.size());
    blocks_.clear();
    contents_.Blocks(node, NodeWord{word}.used(), &blocks_);
    KeepEachOnce(&blocks_);
    for (const OutsideBlock& block : blocks_) {
      waiting_.push_back(
          {.kind = Retired::Kind::kBlock, .bytes = block.bytes, .at = block.at, .end = what.end});
    }
    waiting_.push_back({.kind = Retired::Kind::kNode, .link = what.link, .end = what.end});
  } catch (const std::bad_alloc&) {
    while (waiting_.size() > waiting) waiting_.pop_back();
    node->word.store(word, std::memory_order_release);
    throw;
  }
  detached_.fetch_add(children_.size(), std::memory_order_seq_cst);
  subtrees_.pop_back();
  for (const Link child : children_) {
    subtrees_.push_back({.kind = Retired::Kind::kSubtree, .link = child, .end = what.end});
  }
  contents_.HasLeft(node);
  return true;
}

// Frees up to `pieces` of what no reader can stand on. True if there is more of that.
bool Reclaimer::FreeSome(uint32_t* pieces, Slot& slot) {
  if (dying_.empty()) return false;
  if (dying_.back().epoch == Slot::kIdle) {
    hook_.Reach(SyncPoint::kReclaimUnlinked);
    const uint64_t epoch = versions_.AdvanceEpoch();
    for (auto dying = dying_.rbegin(); dying != dying_.rend() && dying->epoch == Slot::kIdle;
         ++dying) {
      dying->epoch = epoch;
    }
  }
  const uint64_t lowest = versions_.LowestEpoch();
  for (; *pieces > 0 && !dying_.empty() && dying_.front().epoch < lowest; --*pieces) {
    Free(dying_.front().what, slot);
    dying_.pop_front();
  }
  // What died just now has no epoch yet.
  return !dying_.empty() && (dying_.front().epoch == Slot::kIdle || dying_.front().epoch < lowest);
}

void Reclaimer::Free(const Retired& what, Slot& slot) {
  if (what.kind != Retired::Kind::kNode) {
    // The mark of death, for readers outside the epochs: in a node's word, in a block's `born`.
    const uint64_t dead = NodeWord::kRetired | NodeWord::kReplaced | NodeWord::kLocked;
    if (what.kind == Retired::Kind::kUnlinked) {
      Node(what.at)->word.store(dead, std::memory_order_relaxed);
    } else {
      std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(arena_.At(what.at)))
          .store(dead, std::memory_order_relaxed);
    }
    arena_.Free(slot.cache, what.at, what.bytes);
    return;
  }
  // Whoever came with a hint or a sibling link found it in the page table until now. That it dies
  // is noted first: `what` is of the list too, whose elements stay where they are.
  const Link link = what.link;
  const ArenaAddress at = table_.Find(link);
  NodeHeader* const node = Node(at);
  Die({.kind = Retired::Kind::kUnlinked,
       .bytes = static_cast<uint32_t>(node->buffer_bytes()),
       .at = at});
  node->version.store(NodeHeader::kDead, std::memory_order_relaxed);
  table_.Free(link);
}

ReclaimStatistics Reclaimer::Statistics() const {
  std::lock_guard lock(mutex_);
  const Version released = gate_.released();
  const Version oldest = waiting_.empty() ? released : waiting_.front().end;
  return {.waiting = waiting_.size(),
          .kept = snapshots_.kept(),
          .dying = dying_.size(),
          .detached = detached_.load(std::memory_order_relaxed),
          .behind = released > oldest ? released - oldest : 0};
}

}  // namespace skep::btree

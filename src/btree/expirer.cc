#include "btree/expirer.h"

#include <algorithm>
#include <new>

#include "btree/expired_keys.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/writer.h"

namespace skep::btree {

template <class Layout>
bool Expirer<Layout>::Run(ThreadState& thread, uint64_t now_ms, uint64_t lag_ms) {
  constexpr uint64_t kBehindMs = 250;  // a piece has a leaf more for each of these that it lags
  constexpr uint64_t kLeavesMax = 8;
  const uint64_t due_ms = now_ms - std::min(now_ms, lag_ms);
  if (!core_.expiry.IsDue(due_ms) && core_.expiry.is_whole()) return false;
  if (!mutex_.try_lock()) return false;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (!core_.expiry.is_whole()) FindLost(thread);
  for (uint64_t done = 0, leaves = 1; done < leaves; ++done) {
    const auto entry = core_.expiry.Take(due_ms);
    if (!entry) break;
    leaves = std::min(1 + (due_ms - entry->deadline_ms) / kBehindMs, kLeavesMax);
    core_.versions.EnterEpoch(thread);
    core_.versions.BeginWrites(thread);
    try {
      Clean(thread, *entry, now_ms);
    } catch (const std::bad_alloc&) {
      core_.expiry.Add(entry->leaf, entry->deadline_ms);
      throw;
    }
    core_.versions.LeaveEpoch(thread);
    core_.versions.EndWrites(thread);
  }
  return core_.expiry.IsDue(due_ms) || !core_.expiry.is_whole();
}

template <class Layout>
void Expirer<Layout>::FindLost(ThreadState& thread) {
  constexpr int kLeaves = 64;
  if (look_from_.empty()) look_for_ = core_.expiry.lost();
  core_.versions.EnterEpoch(thread);
  for (int i = 0; i < kLeaves; ++i) {
    const LeafPlace place = reader_.Find(look_from_, Reader<Layout>::kNewest);
    const uint64_t deadline_ms = Layout::NodeDeadline(core_.codec, place.node);
    if (deadline_ms != Layout::kNoDeadline) core_.expiry.Add(place.link.lid(), deadline_ms);
    const auto fences = Layout::FencesOf(core_.codec, place.node);
    if (fences.unbounded) {
      look_from_.clear();
      core_.expiry.FoundAgain(look_for_);
      break;
    }
    Scratch scratch;
    look_from_ = core_.codec.Whole(fences.upper, scratch);
  }
  core_.versions.LeaveEpoch(thread);
}

template <class Layout>
void Expirer<Layout>::Clean(ThreadState& thread, const ExpiryQueue::Entry& due, uint64_t now_ms) {
  const Lid leaf = due.leaf;
  // Writers that are faster than this loop merge the leaf, and so clean it themselves.
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    core_.versions.BeginOperation(thread);
    const PageTable::Entry entry = core_.table.Load(leaf);
    if (!entry.buffer()) return;
    const NodeHeader* const node = core_.Node(entry.buffer());
    // A leaf that has left the tree may name outside blocks that are gone.
    const NodeWord word{node->word.load(std::memory_order_seq_cst)};
    if (!node->is_leaf() || word.retired()) return;
    // The LID may be out of the tree without that mark; the tree decides.
    Scratch scratch;
    const std::string_view lower =
        core_.codec.Whole(Layout::FencesOf(core_.codec, node).lower, scratch);
    const LeafPlace place = reader_.Find(lower, Reader<Layout>::kNewest);
    if (place.link.lid() != leaf) return;
    const uint64_t deadline_ms = Layout::NodeDeadline(core_.codec, place.node);
    if (deadline_ms > now_ms) {
      if (deadline_ms != Layout::kNoDeadline) core_.expiry.Add(leaf, deadline_ms);
      return;
    }
    TryClean(thread, place, now_ms);
    // Whether or not that was done, the leaf has no entry, so the loop looks at what it has become.
  }
  core_.expiry.Add(leaf, due.deadline_ms);
}

template <class Layout>
void Expirer<Layout>::TryClean(ThreadState& thread, const LeafPlace& place, uint64_t now_ms) {
  std::vector<typename Layout::LeafItem> items;
  split_join_.Gather(place.node, place.word.used(), &items);
  const std::vector<std::string> keys = ExpiredKeysOf(core_, items, now_ms);
  const uint64_t expired = EraseExpired(now_ms, &items);
  const auto fences = Layout::FencesOf(core_.codec, place.node);
  const uint32_t bytes = Layout::LeafBytes(core_.codec, items, fences);
  const Geometry& g = core_.codec.geometry;
  Scratch scratch;
  const std::string_view lower = core_.codec.Whole(fences.lower, scratch);
  if (!Layout::FitsLeaf(core_.codec, items, fences)) {
    // Sorted block and log together are too much for one leaf: it is split, and each half is due.
    split_join_.Refresh(thread, lower, Arena::Limit::kExceed);
    return;
  }
  StructureChange<Layout> change(core_, thread, Arena::Limit::kExceed);
  if (!change.Lock(place.node, place.word.bits) ||
      !change.ReplaceByLeaf(place.link, place.node, items, fences) || !change.Draw()) {
    return;
  }
  change.Publish();
  CountExpired(core_, thread, expired);
  TellExpired(core_, keys);
  if (bytes < Layout::FixedBytes(g) + g.underflow_bytes()) split_join_.Balance(thread, lower);
}

template class Expirer<PaperLayout>;
template class Expirer<HeadLayout>;

}  // namespace skep::btree

#include "btree/log_merger.h"

#include <new>
#include <vector>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/structure_change.h"

namespace skep::btree {

template <class Layout>
bool LogMerger<Layout>::MergeSampled(ThreadState& thread) {
  const auto samples = thread.scanned.Take();
  if (core_.snapshots.has_pins() || core_.board() != nullptr) return false;
  core_.versions.EnterEpoch(thread);
  for (const ScannedLeaves::Sample& sample : samples) {
    if (!core_.versions.TryBeginRebuild(thread)) break;
    try {
      TryMerge(thread, sample);
    } catch (const std::bad_alloc&) {
      // The batch is done; the leaf keeps its log.
    }
    core_.versions.EndRebuild(thread);
  }
  core_.versions.LeaveEpoch(thread);
  return true;
}

template <class Layout>
void LogMerger<Layout>::TryMerge(ThreadState& thread, const ScannedLeaves::Sample& sample) {
  // In this order: (1), (2).
  if (core_.reclaimer.detached()) return;
  const ArenaAddress at = core_.table.Find(sample.leaf);
  if (!at) return;
  NodeHeader* const node = core_.Node(at);
  const NodeWord word{node->word.load(std::memory_order_seq_cst)};
  if (word.bits != sample.word || word.locked() || !node->is_leaf()) return;
  if (!core_.turnstiles.Of(sample.leaf.lid()).IsFree()) return;

  const uint32_t bytes_max = Layout::LeafBytesMax(core_.codec.geometry);
  NodeHeader* const bench = thread.workspace->Bench(Layout::kFrontBytes);
  const uint32_t bytes = Layout::MergeLog(core_.codec, node, word.used(), bytes_max, bench);
  if (bytes > bytes_max) return;
  std::vector<typename Layout::LeafItem> items;
  const auto fences = Layout::FencesOf(core_.codec, node);
  if (bytes == 0) {
    split_join_.Gather(node, word.used(), &items);
    if (!Layout::FitsLeaf(core_.codec, items, fences)) return;
  }
  const Geometry& g = core_.codec.geometry;
  const uint32_t size = bytes != 0 ? bytes : Layout::LeafBytes(core_.codec, items, fences);
  const bool is_sparse = size < Layout::FixedBytes(g) + g.underflow_bytes();
  if (is_sparse && sample.leaf != core_.root) return;
  core_.Sync(SyncPoint::kWriterFoundLeaf);
  StructureChange<Layout> change(core_, thread, Arena::Limit::kObey);
  if (!change.Lock(node, word.bits)) return;
  const bool made = bytes != 0 ? change.ReplaceByMerged(sample.leaf, node, bench, bytes)
                               : change.ReplaceByLeaf(sample.leaf, node, items, fences);
  if (!made) return;
  core_.Sync(SyncPoint::kMergeBuilt);
  change.ShowFrom(typename Layout::Leaf(core_.codec, node, word.used()).newest_version());
  change.Publish();
  core_.log_merges.fetch_add(1, std::memory_order_relaxed);
}

template class LogMerger<PaperLayout>;
template class LogMerger<HeadLayout>;

}  // namespace skep::btree

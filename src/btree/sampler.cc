#include "btree/sampler.h"

#include "btree/paper_layout.h"
#include "btree/reader.h"

namespace skep::btree {

template <class Layout>
std::optional<Item> Sampler<Layout>::Draw(Scratch& scratch) {
  // Enough to find the one leaf among as many free LIDs, unless the tree is empty.
  const uint64_t rounds = 64 * (core_.table.end() + 64);
  for (uint64_t round = 0; round < rounds && core_.ItemCount() > 0; ++round) {
    const Lid lid = 1 + Below(core_.table.end() - 1);
    const uint64_t number = Below(core_.leaf_items_max.load(std::memory_order_relaxed));
    if (const auto item = Take(lid, number, scratch)) return item;
  }
  return std::nullopt;
}

template <class Layout>
std::optional<Item> Sampler<Layout>::Take(Lid lid, uint64_t number, Scratch& scratch) {
  const PageTable::Entry entry = core_.table.Load(lid);
  if (!entry.buffer()) return std::nullopt;
  const bool detached = core_.reclaimer.detached();
  NodeHeader* const node = core_.Node(entry.buffer());
  const NodeWord word{node->word.load(std::memory_order_acquire)};
  if (!node->is_leaf() || word.retired()) return std::nullopt;
  const typename Layout::Leaf leaf(core_.codec, node, word.used());
  if (number >= leaf.CountPresent()) return std::nullopt;
  if (detached) {
    // It may be out of the tree without knowing it.
    const StoredKey lower = Layout::FencesOf(core_.codec, node).lower;
    const Reader<Layout> reader(core_);
    const LeafPlace place = reader.Find(core_.codec.Whole(lower, scratch), Reader<Layout>::kNewest);
    if (place.link.lid() != lid) return std::nullopt;
  }
  typename Layout::LeafCursor cursor(leaf);
  cursor.SeekFirst();
  for (; number > 0; --number) cursor.Next();
  version_ = leaf.newest_version();
  return Item{scratch.Copy(core_.codec.Whole(cursor.key(), scratch)),
              scratch.Copy(core_.codec.Whole(cursor.value()))};
}

template class Sampler<PaperLayout>;

}  // namespace skep::btree

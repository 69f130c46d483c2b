#include "btree/sampler.h"

#include <algorithm>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/ranges.h"
#include "btree/reader.h"
#include "engine/point.h"

namespace skep::btree {

template <class Layout>
std::optional<Item> Sampler<Layout>::Draw() {
  scratch_.Clear();
  constexpr int kRounds = 2048;
  for (int round = 0; round < kRounds; ++round) {
    const Lid lid = 1 + Below(core_.table.end() - 1);
    const uint64_t number = Below(core_.leaf_items_max.load(std::memory_order_relaxed));
    if (const auto item = Take(lid, number)) return item;
  }
  return CountAndTake();
}

// Draws a number among all keys. A change between counting and taking may shift which key it is.
template <class Layout>
std::optional<Item> Sampler<Layout>::CountAndTake() {
  const uint64_t keys = Ranges<Layout>(core_, Reader<Layout>::kNewest, now_ms_)
                            .CountKeys({}, {}, true, UINT64_MAX, UINT64_MAX)
                            .keys;
  if (keys == 0) return std::nullopt;
  uint64_t number = Below(keys);
  LeafIterator<Layout> walk(core_, Reader<Layout>::kNewest, now_ms_);
  std::optional<Item> item;
  for (walk.Seek({});; walk.Next()) {
    const uint64_t present = walk.leaf().CountPresent();
    if (present > 0) item = ItemAt(walk.leaf(), std::min(number, present - 1));
    if (number < present || walk.unbounded()) return item;
    number -= present;
  }
}

template <class Layout>
std::optional<Item> Sampler<Layout>::ItemAt(const typename Layout::Leaf& leaf, uint64_t number) {
  typename Layout::LeafCursor cursor(leaf);
  for (cursor.SeekFirst(); number > 0; --number) cursor.Next();
  if (HasExpired(DeadlineOf(cursor.value()), now_ms_)) return std::nullopt;
  version_ = leaf.newest_version();
  const bool is_plain = TypeOf(cursor.value()) == kPlainType;
  return Item{
      scratch_.Copy(core_.codec.Whole(cursor.key(), scratch_)),
      is_plain ? scratch_.Copy(core_.codec.Whole(cursor.value(), scratch_)) : std::string_view()};
}

template <class Layout>
std::optional<Item> Sampler<Layout>::Take(Lid lid, uint64_t number) {
  const PageTable::Entry entry = core_.table.Load(lid);
  if (!entry.buffer()) return std::nullopt;
  const bool detached = core_.reclaimer.detached();
  NodeHeader* const node = core_.Node(entry.buffer());
  const NodeWord word{node->word.load(std::memory_order_seq_cst)};
  if (!node->is_leaf() || word.retired()) return std::nullopt;
  const typename Layout::Leaf leaf(core_.codec, node, word.used());
  if (number >= leaf.CountPresent()) return std::nullopt;
  if (detached) {
    // The leaf may be out of the tree without a mark.
    const StoredKey lower = Layout::FencesOf(core_.codec, node).lower;
    const Reader<Layout> reader(core_);
    const LeafPlace place =
        reader.Find(core_.codec.Whole(lower, scratch_), Reader<Layout>::kNewest);
    if (place.link.lid() != lid) return std::nullopt;
  }
  return ItemAt(leaf, number);
}

template class Sampler<PaperLayout>;
template class Sampler<HeadLayout>;

}  // namespace skep::btree

// A leaf's log, counts and deadline, and the fences of all nodes.

#include "base/check.h"
#include "btree/heads/head_layout_search.h"

namespace skep::btree {

using heads::Fill;
using heads::LogItem;

uint32_t HeadLayout::Leaf::CountLive() const {
  uint32_t live = 0;
  LeafCursor cursor(*this);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) ++live;
  return live;
}

uint32_t HeadLayout::Leaf::CountPresent() const {
  if (now_ms_ != kNoTime) return CountLive();
  uint32_t present = node_->sorted_count;
  for (uint32_t i = 0; i < visible_; ++i) {
    const LogItem item = Log(i);
    present += !item.deleted();
    present -= item.replaces();
  }
  return present;
}

Version HeadLayout::Leaf::newest_version() const {
  return node_version_ + (visible_ == 0 ? 0 : Log(visible_ - 1).delta());
}

bool HeadLayout::LowerDeadline(const Codec&, NodeHeader* node, uint64_t deadline_ms) {
  const auto word = heads::AtomicAt(node, heads::kDeadlineAt);
  if (deadline_ms == 0 || word.load(std::memory_order_relaxed) <= deadline_ms) return false;
  word.store(deadline_ms, std::memory_order_relaxed);
  return true;
}

uint32_t HeadLayout::LogItemBytes(const StoredKey& key, const StoredValue* value) {
  return LogItem::BytesOf(
      static_cast<uint32_t>(key.bytes.size() + (value != nullptr ? value->bytes.size() : 0)));
}

bool HeadLayout::HasLogRoom(const Codec& codec, const NodeHeader* node, uint32_t used,
                            uint32_t bytes, uint32_t items) {
  const Fill fill = Fill::Of(used);
  const uint32_t end = fill.bytes + bytes;
  return fill.log_items + items <= kLogItemsMax && kFrontBytes + end <= node->buffer_bytes() &&
         end - node->log_begin <= LogBytesMax(codec.geometry);
}

uint32_t HeadLayout::AppendToLog(const Codec&, NodeHeader* node, uint32_t used, const Found& at,
                                 const StoredKey& key, const StoredValue* value) {
  const Fill fill = Fill::Of(used);
  const uint32_t flags =
      (value == nullptr ? field::kDeleted : 0u) | (at.present ? field::kReplaces : 0u);
  const uint32_t item = fill.bytes;
  field::Store(node, item + 4, static_cast<uint16_t>(heads::FormOfKey(key) | flags));
  field::Store(node, item + 6, value == nullptr ? uint16_t{0} : heads::FormOfValue(*value));
  std::byte* const bytes = node->bytes() + item + heads::kLogItemHeaderBytes;
  CopyBytes(bytes, key.bytes.data(), key.bytes.size());
  if (value != nullptr) {
    CopyBytes(bytes + key.bytes.size(), value->bytes.data(), value->bytes.size());
  }
  heads::SetLogOffset(node, fill.log_items, item);
  heads::SetLogRank(node, fill.log_items,
                    at.rank < heads::kRankOfLogItem
                        ? at.rank
                        : heads::LogRank(node, at.rank - heads::kRankOfLogItem));
  heads::SetTag(node, fill.log_items, heads::TagOf(at.head));
  return Fill{.bytes = item + LogItemBytes(key, value), .log_items = fill.log_items + 1}.used();
}

void HeadLayout::SetLogVersion(NodeHeader* node, uint32_t used, uint64_t delta) {
  SKEP_DCHECK(delta <= kDeltaMax);
  field::Store(node, Fill::Of(used).bytes, static_cast<uint32_t>(delta));
  heads::NewestOf(node).store(node->version.load(std::memory_order_relaxed) + delta,
                              std::memory_order_relaxed);
}

HeadLayout::Fences HeadLayout::FencesOf(const Codec&, const NodeHeader* node) {
  return field::FencesAt(node, node->shortcut_end);
}

bool HeadLayout::Covers(const Codec& codec, const NodeHeader* node, std::string_view key) {
  return FencesOf(codec, node).Cover(codec, key);
}

Link HeadLayout::Inner::ChildBelow(std::string_view key, uint32_t* index) const {
  bool equal;
  const uint32_t child = Seek(key, &equal);
  if (index != nullptr) *index = child;
  return Child(child);
}

void HeadLayout::Inner::CopyTo(std::vector<InnerItem>* items) const {
  items->clear();
  items->reserve(count() + 1);
  for (uint32_t i = 0; i < count(); ++i) {
    items->push_back({.separator = separator(i), .child = Child(i + 1)});
  }
}

void HeadLayout::BlocksOf(const Codec& codec, const NodeHeader* node, uint32_t used,
                          std::vector<OutsideBlock>* blocks) {
  const Fences fences = FencesOf(codec, node);
  AddBlock(fences.lower, blocks);
  if (!fences.unbounded) AddBlock(fences.upper, blocks);
  if (!node->is_leaf()) {
    const Inner inner(codec, node);
    for (uint32_t i = 0; i < inner.count(); ++i) AddBlock(inner.separator(i), blocks);
    return;
  }
  const Leaf leaf(codec, node, used);
  const Sorted sorted(node);
  // The newest item of a key has its value; a log item hides all items of its key before it.
  std::vector<bool> hidden(sorted.count());
  for (uint32_t i = 0; i < leaf.log_items(); ++i) {
    const LogItem item = leaf.Log(i);
    AddBlock(item.key(), blocks);
    const uint16_t rank = heads::LogRank(node, i);
    if (heads::IsOfItem(rank)) hidden[heads::ItemOfRank(rank)] = true;
    bool is_newest = true;
    for (uint32_t later = i + 1; later < leaf.log_items(); ++later) {
      is_newest &= heads::LogRank(node, later) != rank ||
                   codec.Compare(item.key(), leaf.Log(later).key()) != 0;
    }
    if (is_newest && !item.deleted()) AddBlock(item.value(), blocks);
  }
  for (uint32_t i = 0; i < sorted.count(); ++i) {
    AddBlock(sorted.key(i), blocks);
    if (!hidden[i]) AddBlock(sorted.value(i), blocks);
  }
}

bool HeadLayout::HasOutsideKeys(const Codec& codec, const NodeHeader* leaf, uint32_t used) {
  const Sorted sorted(leaf);
  // The keys of uniform items all have the form of the first one.
  const uint32_t forms = sorted.is_uniform() ? std::min(sorted.count(), 1u) : sorted.count();
  for (uint32_t i = 0; i < forms; ++i) {
    if (sorted.key(i).outside) return true;
  }
  const Leaf items(codec, leaf, used);
  for (uint32_t i = 0; i < items.log_items(); ++i) {
    if (items.Log(i).key().outside) return true;
  }
  return false;
}

}  // namespace skep::btree

// Searches a leaf; its log and its deadline.

#include "base/prefetch.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {

using paper::LogItem;
using paper::SortedPosition;

PaperLayout::Leaf::Leaf(const Codec& codec, const NodeHeader* node, uint32_t used,
                        Version read_version, uint64_t now_ms)
    : codec_(&codec),
      node_(node),
      used_(used),
      node_version_(node->version.load(std::memory_order_relaxed)),
      delta_max_(read_version - node_version_),
      now_ms_(now_ms != kNoTime && NodeDeadline(codec, node) <= now_ms ? now_ms : kNoTime) {
  SKEP_DCHECK(read_version >= node_version_);
}

PaperLayout::Found PaperLayout::Leaf::Find(std::string_view key, const LeafSpot&) const {
  return FindKey(key);
}

template <class Key>
PaperLayout::Found PaperLayout::Leaf::FindKey(const Key& key) const {
  Found found;
  uint32_t rank = 0;
  uint32_t newest = 0;
  ForEachVisible([&](uint32_t at, const LogItem& item) {
    const int order = codec_->Compare(key, item.key());
    rank += order >= 0;
    if (order == 0) newest = at;
  });
  found.order_hint = static_cast<uint8_t>(rank);
  if (newest == 0) {
    SortedPosition at(*codec_, node_);
    const bool equal = at.SeekAtLeast(key);
    FindSorted(at, equal, &found);
    return found;
  }
  const LogItem item(node_, newest);
  found.known = true;
  found.present = !item.deleted();
  found.key = item.key();
  if (found.present) found.value = item.value();
  found.version = node_version_ + item.delta();
  found.back_pointer = static_cast<uint16_t>(newest);
  return found;
}

void PaperLayout::Leaf::FindSorted(const SortedPosition& at, bool equal, Found* found) const {
  found->back_pointer = static_cast<uint16_t>(at.offset());
  if (!equal) return;
  found->known = true;
  found->present = true;
  found->key = at.key();
  found->value = paper::ValueAt(node_, at.payload());
  found->version = node_version_;
}

LeafSpot PaperLayout::Leaf::Prefetch(std::string_view key) const {
  for (uint32_t at = node_->log_begin; at < used_; at += 64) {
    FetchLine(node_->bytes() + at);
  }
  SortedPosition(*codec_, node_).PrefetchSegmentOf(key);
  return {};
}

uint32_t PaperLayout::Leaf::log_items() const {
  uint32_t items = 0;
  for (uint32_t at = node_->log_begin; at < used_; at = LogItem(node_, at).end()) ++items;
  return items;
}

uint32_t PaperLayout::Leaf::CountLive() const {
  uint32_t live = 0;
  LeafCursor cursor(*this);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) ++live;
  return live;
}

uint32_t PaperLayout::Leaf::CountPresent() const {
  if (now_ms_ != kNoTime) return CountLive();
  // Counts how each log item changes the presence of its key. A sorted item always has a value.
  uint32_t present = node_->sorted_count;
  ForEachVisible([&](uint32_t, const LogItem& item) {
    const uint32_t replaced = item.back_pointer();
    const bool was_present =
        item.replaces() && (replaced < node_->log_begin || !LogItem(node_, replaced).deleted());
    present += !item.deleted();
    present -= was_present;
  });
  return present;
}

Version PaperLayout::Leaf::newest_version() const {
  uint64_t delta = 0;
  ForEachVisible([&](uint32_t, const LogItem& item) { delta = item.delta(); });
  return node_version_ + delta;
}

namespace {

std::atomic_ref<uint64_t> DeadlineWord(const Codec& codec, const NodeHeader* node) {
  auto* const at = const_cast<std::byte*>(node->bytes()) + codec.geometry.body_begin();
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at));
}

}  // namespace

uint64_t PaperLayout::NodeDeadline(const Codec& codec, const NodeHeader* node) {
  // Relaxed: a thread that has seen an item, by an acquire load of the node's word, sees its
  // deadline here.
  return DeadlineWord(codec, node).load(std::memory_order_relaxed);
}

bool PaperLayout::LowerDeadline(const Codec& codec, NodeHeader* node, uint64_t deadline_ms) {
  const auto word = DeadlineWord(codec, node);
  if (deadline_ms == 0 || word.load(std::memory_order_relaxed) <= deadline_ms) return false;
  word.store(deadline_ms, std::memory_order_relaxed);
  return true;
}

uint32_t PaperLayout::LogItemBytes(const StoredKey& key, const StoredValue* value) {
  return paper::kLogItemHeaderBytes + paper::BytesOf(key) +
         (value != nullptr ? paper::BytesOf(*value) : 0);
}

bool PaperLayout::HasLogRoom(const Codec& codec, const NodeHeader* node, uint32_t used,
                             uint32_t bytes, uint32_t items) {
  const uint32_t end = used + bytes;
  if (end - node->log_begin > codec.geometry.log_bytes_max || end > node->buffer_bytes()) {
    return false;
  }
  return Leaf(codec, node, used).log_items() + items <= kLogItemsMax;
}

uint32_t PaperLayout::AppendToLog(const Codec&, NodeHeader* node, uint32_t used, const Found& at,
                                  const StoredKey& key, const StoredValue* value) {
  paper::Store(node, used, at.back_pointer | uint64_t{at.order_hint} << 16);
  const uint32_t flags =
      (value == nullptr ? paper::kDeleted : 0u) | (at.known ? paper::kReplaces : 0u);
  const uint32_t after_key = paper::PutKey(node, used + paper::kLogItemHeaderBytes, key, flags);
  return value == nullptr ? after_key : paper::PutValue(node, after_key, *value);
}

void PaperLayout::SetLogVersion(NodeHeader* node, uint32_t item, uint64_t delta) {
  SKEP_DCHECK(delta <= kDeltaMax);
  const auto placement = paper::Load<uint64_t>(node, item) & 0xffffff;
  paper::Store(node, item, placement | delta << 24);
}

// For Check(), which has keys only in their stored form.
template PaperLayout::Found PaperLayout::Leaf::FindKey(const StoredKey& key) const;

}  // namespace skep::btree

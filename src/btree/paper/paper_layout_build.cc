// Builds nodes: decides which keys become shortcuts, and writes the bytes.

#include <algorithm>

#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

using paper::BytesOf;

const StoredKey& KeyOf(const PaperLayout::LeafItem& item) { return item.key; }
const StoredKey& KeyOf(const PaperLayout::InnerItem& item) { return item.separator; }

uint32_t PayloadBytes(const PaperLayout::LeafItem& item) { return BytesOf(item.value); }
uint32_t PayloadBytes(const PaperLayout::InnerItem&) { return paper::kLinkBytes; }

uint32_t PutPayload(NodeHeader* node, uint32_t at, const PaperLayout::LeafItem& item) {
  return paper::PutValue(node, at, item.value);
}
uint32_t PutPayload(NodeHeader* node, uint32_t at, const PaperLayout::InnerItem& item) {
  paper::Store(node, at, item.child);
  return at + paper::kLinkBytes;
}

// Decides, item by item from the left, where segments begin. In this order: as many shortcuts as
// possible, segments of similar size, none shorter than segment_bytes_min (unless the block is).
//
// A segment ends once it has its share of the bytes that were left when it began. They are shared
// by as many segments as keys of average size still fit the shortcut block. The share counts the
// key that goes to the shortcut block, so that segments have the same number of equal items; the
// minimum does not, as it is about the bytes that a search reads.
class SegmentPlan {
 public:
  SegmentPlan(const Geometry& geometry, uint32_t items, uint32_t key_bytes, uint32_t bytes)
      : bytes_min_(geometry.segment_bytes_min),
        room_(geometry.shortcut_bytes()),
        entry_bytes_(items == 0 ? 1 : key_bytes / items + paper::kOffsetBytes),
        bytes_left_(bytes) {
    TakeShare();
  }

  // Whether the next item begins a segment that has a shortcut.
  bool Begins(uint32_t key_bytes, uint32_t payload_bytes) {
    const uint32_t entry_bytes = key_bytes + paper::kOffsetBytes;
    const bool begins = given_ >= share_ && stored_ >= bytes_min_ && entry_bytes <= room_ &&
                        bytes_left_ - key_bytes >= bytes_min_;
    if (begins) {
      room_ -= entry_bytes;
      TakeShare();
    }
    given_ += key_bytes + payload_bytes;
    stored_ += begins ? payload_bytes : key_bytes + payload_bytes;
    bytes_left_ -= key_bytes + payload_bytes;
    return begins;
  }

 private:
  void TakeShare() {
    share_ = bytes_left_ / (room_ / entry_bytes_ + 1);
    given_ = 0;
    stored_ = 0;
  }

  uint32_t bytes_min_;
  uint32_t room_;         // bytes left in the shortcut block
  uint32_t entry_bytes_;  // bytes of a key of average size in the shortcut block
  uint32_t bytes_left_;   // bytes of the items to come
  uint32_t share_;
  uint32_t given_;   // bytes of the current segment's items
  uint32_t stored_;  // the same without the key that is in the shortcut block
};

template <class Item>
SegmentPlan PlanOf(const Geometry& geometry, std::span<const Item> items) {
  uint32_t key_bytes = 0;
  uint32_t bytes = 0;
  for (const Item& item : items) {
    key_bytes += BytesOf(KeyOf(item));
    bytes += BytesOf(KeyOf(item)) + PayloadBytes(item);
  }
  return SegmentPlan(geometry, static_cast<uint32_t>(items.size()), key_bytes, bytes);
}

uint64_t EarliestDeadline(std::span<const PaperLayout::InnerItem>) {
  return PaperLayout::kNoDeadline;
}

template <class Item>
uint32_t Build(const Codec& codec, uint8_t level, std::span<const Item> items,
               const PaperLayout::Fences& fences, NodeHeader* node) {
  SegmentPlan plan = PlanOf(codec.geometry, items);
  uint32_t shortcut = paper::kShortcutBegin;
  paper::Store(node, codec.geometry.body_begin(), EarliestDeadline(items));
  uint32_t at = paper::PutFences(node, codec.geometry.fences_begin(), fences);
  for (const Item& item : items) {
    const StoredKey& key = KeyOf(item);
    if (plan.Begins(BytesOf(key), PayloadBytes(item))) {
      shortcut = paper::PutKey(node, shortcut, key);
      paper::Store(node, shortcut, static_cast<uint16_t>(at));
      shortcut += paper::kOffsetBytes;
    } else {
      at = paper::PutKey(node, at, key);
    }
    at = PutPayload(node, at, item);
  }
  node->shortcut_end = static_cast<uint16_t>(shortcut);
  node->log_begin = static_cast<uint16_t>(at);
  node->level = level;
  node->sorted_count = static_cast<uint16_t>(items.size());
  return at;
}

}  // namespace

uint32_t PaperLayout::LeafItemBytes(const LeafItem& item) {
  return BytesOf(item.key) + PayloadBytes(item);
}

uint32_t PaperLayout::InnerItemBytes(const InnerItem& item) {
  return BytesOf(item.separator) + PayloadBytes(item);
}

uint32_t PaperLayout::FenceBytes(const Fences& fences) { return BytesOf(fences); }

uint32_t PaperLayout::LeafBytes(const Codec& codec, std::span<const LeafItem> items,
                                const Fences& fences) {
  uint32_t bytes = FixedBytes(codec.geometry) + FenceBytes(fences);
  for (const LeafItem& item : items) bytes += LeafItemBytes(item);
  return bytes;
}

uint32_t PaperLayout::InnerBytes(const Codec& codec, std::span<const InnerItem> items,
                                 const Fences& fences) {
  uint32_t bytes = FixedBytes(codec.geometry) + FenceBytes(fences);
  for (const InnerItem& item : items) bytes += InnerItemBytes(item);
  return bytes;
}

uint32_t PaperLayout::SeparatorBytesMax(const Geometry& geometry) {
  return paper::kLengthBytes + geometry.key_inline_max() + paper::kLinkBytes;
}

uint32_t PaperLayout::LeafBufferBytes(const Codec& codec, const NodeHeader*, uint32_t used) {
  return std::min(used + codec.geometry.log_bytes_max, codec.geometry.node_bytes);
}

uint32_t PaperLayout::BuildLeaf(const Codec& codec, std::span<const LeafItem> items,
                                const Fences& fences, NodeHeader* buffer) {
  return Build(codec, 0, items, fences, buffer);
}

uint32_t PaperLayout::BuildInner(const Codec& codec, uint8_t level, Link leftmost,
                                 std::span<const InnerItem> items, const Fences& fences,
                                 NodeHeader* buffer) {
  SKEP_DCHECK(level > 0);
  buffer->left.store(leftmost.bits, std::memory_order_relaxed);
  return Build(codec, level, items, fences, buffer);
}

}  // namespace skep::btree

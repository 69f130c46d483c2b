// Checks whether bytes are a node.
//
// There are two passes. The first checks lengths and offsets and establishes that reading the node
// by its views stays inside it; it reads no bytes that it has not found to be inside. The second
// compares keys, with the views' own code.

#include <algorithm>
#include <vector>

#include "btree/node_field_check.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {

using paper::Load;
using paper::LogItem;

class PaperLayout::Checker {
 public:
  Checker(const Codec& codec, const NodeHeader* node, uint32_t used)
      : codec_(codec), geometry_(codec.geometry), node_(node), used_(used), fields_(codec, node) {}

  const char* Run() {
    for (const auto step :
         {&Checker::Sizes, &Checker::Fences, &Checker::Shortcuts, &Checker::SortedBytes,
          &Checker::LogBytes, &Checker::LogPlaces, &Checker::SortedOrder, &Checker::LogOrder}) {
      if (const char* broken = (this->*step)()) return broken;
    }
    return nullptr;
  }

 private:
  const char* Sizes() {
    if (used_ < sizeof(NodeHeader) || used_ > geometry_.node_bytes) return "P1: bytes used";
    if (node_->shortcut_end < paper::kShortcutBegin ||
        node_->shortcut_end > geometry_.body_begin()) {
      return "P1: end of the shortcut block";
    }
    if (node_->log_begin <= geometry_.fences_begin() || node_->log_begin > used_) {
      return "P1: end of the sorted block";
    }
    if (!node_->is_leaf() && node_->log_begin != used_) return "P1: an inner node with a log";
    return nullptr;
  }

  const char* Fences() {
    uint32_t at = geometry_.fences_begin();
    if (!fields_.PassFences(&at, node_->log_begin)) return "P2: the fences";
    sorted_begin_ = at;
    return nullptr;
  }

  const char* Shortcuts() {
    for (uint32_t at = paper::kShortcutBegin; at != node_->shortcut_end;) {
      if (!fields_.PassKey(&at, node_->shortcut_end)) return "P2: a shortcut's key";
      if (at + paper::kOffsetBytes > node_->shortcut_end) return "P3: a shortcut's offset";
      const auto segment = Load<uint16_t>(node_, at);
      if (segment <= (segments_.empty() ? sorted_begin_ : segments_.back())) {
        return "P3: shortcuts' offsets do not rise";
      }
      segments_.push_back(segment);
      at += paper::kOffsetBytes;
    }
    return nullptr;
  }

  const char* SortedBytes() {
    size_t next_segment = 0;
    for (uint32_t at = sorted_begin_; at != node_->log_begin;) {
      items_.push_back(at);
      if (next_segment < segments_.size() && at == segments_[next_segment]) {
        ++next_segment;
      } else if (!fields_.PassKey(&at, node_->log_begin)) {
        return "P2: a sorted item's key";
      }
      if (!PassPayload(&at)) return "P2, P9: a sorted item's payload";
    }
    if (next_segment != segments_.size()) return "P3: a shortcut leads to no item";
    if (items_.size() != node_->sorted_count) return "P4: number of sorted items";
    return nullptr;
  }

  const char* LogBytes() {
    uint64_t delta = 0;
    for (uint32_t at = node_->log_begin; at != used_;) {
      log_items_.push_back(at);
      if (log_items_.size() > kLogItemsMax) return "P6: too many log items";
      if (at + paper::kLogItemHeaderBytes > used_) return "P6: a log item's header";
      uint32_t end = at + paper::kLogItemHeaderBytes;
      if (!fields_.PassKey(&end, used_, paper::kDeleted | paper::kReplaces))
        return "P2: a log item's key";
      const LogItem item(node_, at);
      if (!item.deleted() && !fields_.PassValue(&end, used_, NodeDeadline(codec_, node_)))
        return "P2, P9: a log item's value";
      if (item.delta() < delta) return "P6: version deltas fall";
      delta = item.delta();
      at = end;
    }
    return nullptr;
  }

  const char* LogPlaces() {
    for (size_t i = 0; i < log_items_.size(); ++i) {
      const LogItem item(node_, log_items_[i]);
      const uint32_t at = item.back_pointer();
      if (item.order_hint() > i) return "P7: an order hint above the items before";
      const bool older = std::binary_search(log_items_.begin(), log_items_.begin() + i, at);
      const bool sorted = std::binary_search(items_.begin(), items_.end(), at);
      if (item.replaces() ? !older && !sorted : !sorted && at != node_->log_begin) {
        return "P7: a back pointer that leads to no item";
      }
    }
    return nullptr;
  }

  const char* SortedOrder() {
    const auto fences = FencesOf(codec_, node_);
    if (!fences.unbounded && !fields_.Rises(fences.lower, fences.upper))
      return "P5: fences do not rise";
    paper::SortedPosition at(codec_, node_);
    if (at.at_end()) return nullptr;
    StoredKey key = at.key();
    if (codec_.Compare(key, fences.lower) < 0) return "P5: a key below the lower fence";
    if (!node_->is_leaf() && !fields_.Rises(fences.lower, key))
      return "P5: a leftmost child without keys";
    for (at.Next(); !at.at_end(); at.Next()) {
      if (!fields_.Rises(key, at.key())) return "P4: keys do not rise";
      key = at.key();
    }
    if (!fences.unbounded && !fields_.Rises(key, fences.upper))
      return "P5: a key above the upper fence";
    return nullptr;
  }

  const char* LogOrder() {
    const auto fences = FencesOf(codec_, node_);
    for (const uint32_t at : log_items_) {
      const LogItem item(node_, at);
      const StoredKey key = item.key();
      if (codec_.Compare(key, fences.lower) < 0) return "P5: a log item below the lower fence";
      if (!fences.unbounded && !fields_.Rises(key, fences.upper)) {
        return "P5: a log item above the upper fence";
      }
      if (fields_.has_undecided()) continue;
      const Found found = Leaf(codec_, node_, at).FindKey(key);
      if (item.back_pointer() != found.back_pointer || item.replaces() != found.known) {
        return "P8: a back pointer to another key";
      }
      if (item.order_hint() != found.order_hint) return "P8: an order hint that is no rank";
    }
    return nullptr;
  }

  bool PassPayload(uint32_t* at) {
    if (node_->is_leaf()) {
      return fields_.PassValue(at, node_->log_begin, NodeDeadline(codec_, node_));
    }
    *at += paper::kLinkBytes;
    return *at <= node_->log_begin;
  }

  const Codec& codec_;
  const Geometry& geometry_;
  const NodeHeader* node_;
  uint32_t used_;
  uint32_t sorted_begin_ = 0;
  FieldChecker fields_;
  std::vector<uint32_t> segments_;   // offsets of the segments but the first
  std::vector<uint32_t> items_;      // offsets of the sorted items
  std::vector<uint32_t> log_items_;  // offsets of the log items
};

const char* PaperLayout::Check(const Codec& codec, const NodeHeader* node, uint32_t used) {
  return Checker(codec, node, used).Run();
}

}  // namespace skep::btree

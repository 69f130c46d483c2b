#include "btree/heads/replace_values.h"

#include <array>
#include <cstring>
#include <utility>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"

namespace skep::btree {
namespace {

class ValueMerger {
 public:
  ValueMerger(const Codec& codec, const NodeHeader* leaf, uint32_t used)
      : codec_(codec), node_(leaf), log_items_(heads::Fill::Of(used).log_items), sorted_(leaf) {}

  // Lists the values of the log and of the edits. False: not all of them replace one of a sorted
  // item, or a value has a deadline.
  bool Plan(std::span<const LeafEdit> edits);
  // Returns what ReplaceValues does.
  uint32_t WriteIfFits(uint32_t bytes_max, NodeHeader* buffer) const;

 private:
  struct Replacement {
    uint32_t item;  // the sorted one
    StoredValue value;
  };

  // Log items: the sorted items whose values they replace, and their numbers.
  struct LogOrder {
    uint32_t count = 0;
    std::array<uint16_t, heads::kLogItemsMax> items;
    std::array<uint8_t, heads::kLogItemsMax> numbers;
  };

  bool SortLog(LogOrder* order) const;
  bool Add(uint32_t item, const StoredValue& value);
  // The offsets of an item, or of the end if it is count(), and of an item's value with its form.
  uint32_t Begin(uint32_t item) const {
    return item < sorted_.count() ? sorted_.offset(item) : uint32_t{node_->shortcut_end};
  }
  uint32_t ValueOf(uint32_t item) const {
    const uint32_t at = sorted_.offset(item);
    return sorted_.is_uniform() ? at + sorted_.key_bytes() : field::AfterField(node_, at);
  }
  uint32_t WriteItems(NodeHeader* buffer) const;
  bool HasOneForm(const NodeHeader* buffer) const;

  const Codec& codec_;
  const NodeHeader* node_;
  const uint32_t log_items_;
  const HeadLayout::Sorted sorted_;
  uint32_t bytes_ = 0;  // of the merged leaf
  uint32_t count_ = 0;
  std::array<Replacement, heads::kLogItemsMax + kEditsReplacedMax> replacements_;  // ascending
};

// Adds a value behind the others.
bool ValueMerger::Add(uint32_t item, const StoredValue& value) {
  const uint32_t at = ValueOf(item);
  if (sorted_.is_uniform() && heads::FormOfValue(value) != heads::FormOf(node_).value_form) {
    return false;
  }
  if (!sorted_.is_uniform()) bytes_ += field::BytesOf(value) - (Begin(item + 1) - at);
  replacements_[count_++] = {.item = item, .value = value};
  return true;
}

// Sorts the log by the sorted items whose values it replaces, and keeps the last one of each.
// False: it does something else, too.
bool ValueMerger::SortLog(LogOrder* order) const {
  for (uint32_t number = 0; number < log_items_; ++number) {
    const uint16_t rank = heads::LogRank(node_, number);
    const heads::LogItem log_item(node_, heads::LogOffset(node_, number));
    if (!heads::IsOfItem(rank) || log_item.deleted()) return false;
    const auto item = static_cast<uint16_t>(heads::ItemOfRank(rank));
    uint32_t at = order->count;
    while (at > 0 && order->items[at - 1] > item) --at;
    const bool is_known = at > 0 && order->items[at - 1] == item;
    if (!is_known) {
      for (uint32_t i = order->count++; i > at; --i) {
        order->items[i] = order->items[i - 1];
        order->numbers[i] = order->numbers[i - 1];
      }
      order->items[at++] = item;
    }
    order->numbers[at - 1] = static_cast<uint8_t>(number);
  }
  return true;
}

bool ValueMerger::Plan(std::span<const LeafEdit> edits) {
  const bool has_deadlines = HeadLayout::NodeDeadline(codec_, node_) != HeadLayout::kNoDeadline;
  LogOrder order;
  if (edits.size() > kEditsReplacedMax || has_deadlines || !SortLog(&order)) return false;
  bytes_ = node_->log_begin;
  uint32_t entry = 0;
  // Adds the values of the log up to that of an item, which an edit replaces, too.
  const auto add_log_before = [&](uint32_t item) {
    for (; entry < order.count && order.items[entry] < item; ++entry) {
      const heads::LogItem log_item(node_, heads::LogOffset(node_, order.numbers[entry]));
      if (!Add(order.items[entry], log_item.value())) return false;
    }
    if (entry < order.count && order.items[entry] == item) ++entry;
    return true;
  };
  for (const LeafEdit& edit : edits) {
    if (edit.erase || DeadlineOf(edit.value) != 0) return false;
    bool equal;
    const uint16_t head = HeadInLeaf(sorted_, node_, edit.stored_key);
    const uint32_t item = sorted_.Seek(codec_, edit.stored_key, head, &equal);
    if (!equal || !add_log_before(item) || !Add(item, edit.value)) return false;
  }
  return add_log_before(sorted_.count()) && count_ > 0;
}

// Writes the items with their new values, and before them their offsets, if there are any. Returns
// the offset behind them.
uint32_t ValueMerger::WriteItems(NodeHeader* buffer) const {
  const uint32_t items = heads::AfterHeads(true, sorted_.count());
  uint32_t to = Begin(0);
  uint32_t next = 0;  // item
  const auto copy_up_to = [&](uint32_t item, uint32_t end) {
    const uint32_t from = Begin(next);
    for (; !sorted_.is_uniform() && next < item; ++next) {
      field::Store(buffer, items + 2 * next,
                   static_cast<uint16_t>(sorted_.offset(next) + (to - from)));
    }
    std::memcpy(buffer->bytes() + to, node_->bytes() + from, end - from);
    to += end - from;
    next = item;
  };
  for (const Replacement& replaced : std::span(replacements_.data(), count_)) {
    copy_up_to(replaced.item + 1, ValueOf(replaced.item));
    if (sorted_.is_uniform()) {
      const std::string_view bytes = replaced.value.bytes;
      CopyBytes(buffer->bytes() + to, bytes.data(), bytes.size());
      to += static_cast<uint32_t>(bytes.size());
    } else {
      to = field::PutValue(buffer, to, replaced.value);
    }
  }
  copy_up_to(sorted_.count(), node_->shortcut_end);
  return to;
}

// Whether the items that were written, each with its form, have all the same one.
bool ValueMerger::HasOneForm(const NodeHeader* buffer) const {
  const uint32_t offsets = heads::AfterHeads(true, sorted_.count());
  const auto form = [&](uint32_t item) {
    const uint32_t at = field::Load<uint16_t>(buffer, offsets + 2 * item);
    return std::pair(field::Load<uint16_t>(buffer, at),
                     field::Load<uint16_t>(buffer, field::AfterField(buffer, at)));
  };
  const auto first = form(0);
  for (uint32_t item = 1; item < sorted_.count(); ++item) {
    if (form(item) != first) return false;
  }
  return ((first.first | first.second) & field::kLengthMask) != 0;
}

uint32_t ValueMerger::WriteIfFits(uint32_t bytes_max, NodeHeader* buffer) const {
  const uint32_t count = sorted_.count();
  if (sorted_.is_uniform() && !heads::HasRoomForForms(codec_.geometry, bytes_, count)) {
    return UINT32_MAX;
  }
  if (bytes_ > bytes_max) return bytes_;
  buffer->level = 0;
  buffer->sorted_count = static_cast<uint16_t>(count);
  heads::PutForm(buffer, heads::FormOf(node_));
  heads::PutEmptyLog(buffer, HeadLayout::kNoDeadline);
  std::memcpy(buffer->bytes() + heads::kLeafHeadsAt, node_->bytes() + heads::kLeafHeadsAt,
              2 * heads::HeadSlots(count));
  const uint32_t fences = WriteItems(buffer);
  if (!sorted_.is_uniform() && HasOneForm(buffer)) return 0;
  std::memcpy(buffer->bytes() + fences, node_->bytes() + node_->shortcut_end,
              node_->log_begin - node_->shortcut_end);
  buffer->shortcut_end = static_cast<uint16_t>(fences);
  buffer->log_begin = static_cast<uint16_t>(bytes_);
  return bytes_;
}

}  // namespace

uint32_t ReplaceValues(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                       std::span<const LeafEdit> edits, uint32_t bytes_max, NodeHeader* buffer) {
  ValueMerger merger(codec, leaf, used);
  return merger.Plan(edits) ? merger.WriteIfFits(bytes_max, buffer) : 0;
}

}  // namespace skep::btree

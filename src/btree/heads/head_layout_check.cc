// Checks whether bytes are a node.
//
// There are two passes. The first checks sizes and offsets and establishes that reading the node by
// its views stays inside it; it reads no bytes that it has not found to be inside. The second
// compares keys, with the views' own code.

#include <algorithm>
#include <cstring>
#include <vector>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"
#include "btree/node_field_check.h"

namespace skep::btree {

using heads::Fill;
using heads::LogItem;

class HeadLayout::Checker {
 public:
  Checker(const Codec& codec, const NodeHeader* node, uint32_t used)
      : codec_(codec), node_(node), fill_(Fill::Of(used)), fields_(codec, node) {}

  const char* Run() {
    for (const auto step : {&Checker::Sizes, &Checker::Items, &Checker::LogBytes, &Checker::Forms,
                            &Checker::Order, &Checker::Heads, &Checker::LogOrder}) {
      if (const char* broken = (this->*step)()) return broken;
    }
    return nullptr;
  }

 private:
  const char* Sizes() {
    if (fill_.bytes > 32768 || fill_.bytes < heads::kInnerHeadsAt) return "H1: bytes used";
    if (node_->log_begin > fill_.bytes) return "H1: end of the sorted block";
    if (!node_->is_leaf() && (node_->log_begin != fill_.bytes || fill_.log_items != 0)) {
      return "H1: an inner node with a log";
    }
    if (fill_.log_items > kLogItemsMax) return "H1: too many log items";
    if (heads::FormOf(node_).count != node_->sorted_count) return "H1: the number of items";
    if (HeadLayout::IsLeaf(node_) != node_->is_leaf()) return "H1: leaf or inner node";
    if (AfterHeads() > node_->log_begin) return "H1: heads";
    return nullptr;
  }

  const char* Items() {
    uint32_t at = AfterHeads();
    const char* const wrong = node_->is_leaf() ? LeafItems(&at) : Separators(&at);
    if (wrong != nullptr) return wrong;
    if (node_->shortcut_end != at) return "H1: the fences are not behind the items";
    if (!fields_.PassFences(&at, node_->log_begin)) return "H2: the fences";
    return at == node_->log_begin ? nullptr : "H1: the log is not behind the fences";
  }

  const char* LeafItems(uint32_t* at) {
    const heads::Form& form = heads::FormOf(node_);
    const uint32_t count = node_->sorted_count;
    const uint32_t end = node_->log_begin;
    const uint64_t deadline_ms = NodeDeadline(codec_, node_);
    if (form.key_form == heads::kMixed) {
      const uint32_t offsets = *at;
      *at += 2 * count;
      if (*at > end) return "H1: offsets";
      for (uint32_t i = 0; i < count; ++i) {
        if (field::Load<uint16_t>(node_, offsets + 2 * i) != *at) return "H1: an item's offset";
        if (!fields_.PassKey(at, end)) return "H2: a sorted item's key";
        if (!fields_.PassValue(at, end, deadline_ms)) return "H2, H8: a sorted item's value";
      }
      return nullptr;
    }
    const uint32_t key_bytes = form.key_form & field::kLengthMask;
    const uint32_t value_bytes = form.value_form & field::kLengthMask;
    if (count == 0 || key_bytes + value_bytes == 0) return "H1: a form of no items";
    for (uint32_t i = 0; i < count; ++i, *at += key_bytes + value_bytes) {
      if (!fields_.IsKey(form.key_form, *at, end)) return "H2: a sorted item's key";
      if (!fields_.IsValue(form.value_form, *at + key_bytes, end, deadline_ms)) {
        return "H2, H8: a sorted item's value";
      }
    }
    return nullptr;
  }

  const char* Separators(uint32_t* at) {
    const uint32_t count = node_->sorted_count;
    const uint32_t offsets = *at + 8 * count;
    *at = offsets + 2 * count;
    if (*at > node_->log_begin) return "H1: links";
    for (uint32_t i = 0; i < count; ++i) {
      if (field::Load<uint16_t>(node_, offsets + 2 * i) != *at) return "H1: a separator's offset";
      if (!fields_.PassKey(at, node_->log_begin)) return "H2: a separator";
    }
    return nullptr;
  }

  const char* LogBytes() {
    uint32_t at = node_->log_begin;
    uint64_t delta = 0;
    for (uint32_t i = 0; i < fill_.log_items; ++i) {
      if (heads::LogOffset(node_, i) != at) return "H1: a log item's offset";
      const uint32_t key = at + heads::kLogItemHeaderBytes;
      if (key > fill_.bytes) return "H1: a log item's header";
      const auto key_form = field::Load<uint16_t>(node_, at + 4);
      const auto value_form = field::Load<uint16_t>(node_, at + 6);
      if (!fields_.IsKey(key_form, key, fill_.bytes, field::kDeleted | field::kReplaces)) {
        return "H2: a log item's key";
      }
      const LogItem item(node_, at);
      if (item.deleted() ? value_form != 0
                         : !fields_.IsValue(value_form, key + (key_form & field::kLengthMask),
                                            fill_.bytes, NodeDeadline(codec_, node_))) {
        return "H2, H8: a log item's value";
      }
      if (item.delta() < delta) return "H6: version deltas fall";
      delta = item.delta();
      at = item.end();
    }
    if (at != fill_.bytes) return "H1: end of the log";
    if (fill_.log_items == 0) return nullptr;
    const uint64_t newest = heads::NewestOf(node_).load(std::memory_order_relaxed);
    const Version version = node_->version.load(std::memory_order_relaxed);
    return newest < version + delta ? "H6: the newest version" : nullptr;
  }

  // Checks that a search that uses the form stays inside the keys.
  const char* Forms() {
    const heads::Form& form = heads::FormOf(node_);
    const auto fences = FencesOf(codec_, node_);
    // The word behind the prefix lies within the bytes that the node has of outside keys.
    if (form.prefix + 8u > codec_.geometry.long_key_head_bytes()) return "H5: a prefix too long";
    if (heads::HasChosenBits(form)) return ChosenBits();
    const bool is_guaranteed = form.prefix <= heads::GuaranteedPrefix(fences);
    if (is_guaranteed == (form.is_surmised != 0)) return "H5: what the fences have in common";
    if (node_->sorted_count == 0) return is_guaranteed ? nullptr : "H5: a prefix of no keys";
    const std::string_view first = heads::OwnBytes(Key(0));
    if (first.size() < form.prefix) return "H5: a prefix longer than a key";
    for (uint32_t i = 0; i < node_->sorted_count; ++i) {
      if (!heads::OwnBytes(Key(i)).starts_with(first.substr(0, form.prefix))) {
        return "H5: what the keys have in common";
      }
    }
    return nullptr;
  }

  // A key whose head is not what D1 says would be looked for at a wrong place.
  const char* ChosenBits() {
    if (!node_->is_leaf() || node_->sorted_count < 2) return "H4: bits of such a node";
    const auto key = [&](uint32_t i) { return heads::OwnBytes(Key(i)); };
    heads::Form chosen = heads::FormOf(node_);
    heads::TakeBits(heads::DiscriminativeBitsOf(codec_, node_->sorted_count, key), &chosen);
    return std::memcmp(&chosen, &heads::FormOf(node_), sizeof(chosen)) == 0
               ? nullptr
               : "H4: the discriminative bits";
  }

  const char* Order() {
    const auto fences = FencesOf(codec_, node_);
    if (!fences.unbounded && !fields_.Rises(fences.lower, fences.upper)) {
      return "H3: fences do not rise";
    }
    const uint32_t count = node_->sorted_count;
    if (count == 0) return nullptr;
    if (codec_.Compare(Key(0), fences.lower) < 0) return "H3: a key below the lower fence";
    if (!node_->is_leaf() && !fields_.Rises(fences.lower, Key(0))) {
      return "H3: a leftmost child without keys";
    }
    for (uint32_t i = 1; i < count; ++i) {
      if (!fields_.Rises(Key(i - 1), Key(i))) return "H3: keys do not rise";
    }
    if (!fences.unbounded && !fields_.Rises(Key(count - 1), fences.upper)) {
      return "H3: a key above the upper fence";
    }
    return nullptr;
  }

  const char* Heads() {
    const uint32_t count = node_->sorted_count;
    const uint16_t* const all = heads::HeadsOf(node_, node_->is_leaf());
    for (uint32_t i = 0; i < heads::HeadSlots(count); ++i) {
      if (all[i] != (i < count ? HeadOf(Key(i)) : 0xffff)) return "H4: a head";
    }
    const heads::Form& form = heads::FormOf(node_);
    if (!heads::HasChosenBits(form) && !HasMask(form)) return "H4: the mask";
    const uint32_t samples_max =
        node_->is_leaf() ? heads::kLeafSamplesMax : heads::kInnerSamplesMax;
    const uint32_t samples_at =
        node_->is_leaf() ? heads::kFormAt + offsetof(heads::Form, samples) : heads::kInnerSamplesAt;
    const uint32_t shift = heads::SampleShift(count, samples_max);
    for (uint32_t i = 0; i < samples_max; ++i) {
      const uint32_t at = (i + 1) << shift;
      const uint32_t sample = at < count ? all[at] >> 8 : 0xff;
      if (field::Load<uint8_t>(node_, samples_at + i) != sample) return "H4: a sample";
    }
    return nullptr;
  }

  // Whether the form has the mask of all bits in which the words of the keys differ.
  bool HasMask(const heads::Form& form) const {
    const uint32_t count = node_->sorted_count;
    uint64_t differing = 0;
    for (uint32_t i = 0; i < count && count > 1; ++i) {
      differing |= heads::WordOf(form, heads::OwnBytes(Key(i))) ^ form.base;
    }
    heads::Form chosen = form;
    heads::TakeAllBits(&chosen);
    if (count >= 2) heads::ChooseMask(&chosen, differing);
    return form.wide == chosen.wide && form.narrow == chosen.narrow &&
           form.wide_bytes == chosen.wide_bytes;
  }

  const char* LogOrder() {
    if (!node_->is_leaf()) return nullptr;
    const auto fences = FencesOf(codec_, node_);
    for (uint32_t i = 0; i < fill_.log_items; ++i) {
      const LogItem item(node_, heads::LogOffset(node_, i));
      const StoredKey key = item.key();
      if (codec_.Compare(key, fences.lower) < 0) return "H3: a log item below the lower fence";
      if (!fences.unbounded && !fields_.Rises(key, fences.upper)) {
        return "H3: a log item above the upper fence";
      }
      if (!IsRank(heads::LogRank(node_, i), key)) return "H4: a log item's rank";
      if (heads::Tag(node_, i) != heads::TagOf(HeadOf(key))) return "H4: a log item's tag";
      if (fields_.has_undecided()) continue;
      if (item.replaces() != HadValue(i, key)) return "H7: what a log item replaces";
    }
    return nullptr;
  }

  // Whether the rank is that of the key; of an outside key, as far as its bytes in the node tell.
  bool IsRank(uint16_t rank, const StoredKey& key) const {
    const uint32_t count = node_->sorted_count;
    const uint32_t item = heads::ItemOfRank(rank);
    if (item + (heads::IsOfItem(rank) ? 1 : 0) > count) return false;
    if (item > 0 && !fields_.Rises(Key(item - 1), key)) return false;
    if (heads::IsOfItem(rank)) return codec_.Compare(key, Key(item)) == 0;
    return item == count || fields_.Rises(key, Key(item));
  }

  // Whether the key had a value before log item `item`, which is one of the key.
  bool HadValue(uint32_t item, const StoredKey& key) const {
    for (uint32_t i = item; i > 0; --i) {
      const LogItem before(node_, heads::LogOffset(node_, i - 1));
      if (codec_.Compare(key, before.key()) == 0) return !before.deleted();
    }
    for (uint32_t i = 0; i < node_->sorted_count; ++i) {
      if (codec_.Compare(key, Key(i)) == 0) return true;
    }
    return false;
  }

  uint32_t AfterHeads() const { return heads::AfterHeads(node_->is_leaf(), node_->sorted_count); }
  StoredKey Key(uint32_t i) const {
    return node_->is_leaf() ? Sorted(node_).key(i) : Inner(codec_, node_).separator(i);
  }
  uint16_t HeadOf(const StoredKey& key) const {
    return heads::HeadIn(node_, heads::OwnBytes(key), [&] { return heads::OwnBytes(Key(0)); });
  }

  const Codec& codec_;
  const NodeHeader* node_;
  Fill fill_;
  FieldChecker fields_;
};

const char* HeadLayout::Check(const Codec& codec, const NodeHeader* node, uint32_t used) {
  return Checker(codec, node, used).Run();
}

}  // namespace skep::btree

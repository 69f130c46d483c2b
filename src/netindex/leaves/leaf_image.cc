#include "netindex/leaves/leaf_image.h"

#include <algorithm>
#include <bit>

#include "btree/heads/head_layout_search.h"

namespace skep::leaves {
namespace {

using btree::HeadLayout;
using btree::NodeHeader;
using btree::NodeWord;
namespace heads = btree::heads;
namespace field = btree::field;

constexpr uint32_t kUnitsAt = offsetof(NodeHeader, units);
constexpr uint32_t kLevelAt = offsetof(NodeHeader, level);
constexpr uint32_t kUnitBytes = 256;

std::string_view TextAt(const std::byte* at, size_t bytes) {
  return {reinterpret_cast<const char*>(at), bytes};
}

bool IsPlain(uint16_t form) { return (form & ~field::kLengthMask) == 0; }

// Takes a key with its form from the front of the fences. False: it is outside, or not there.
bool TakeFence(std::string_view& left, std::string_view* key) {
  if (left.size() < sizeof(uint16_t)) return false;
  uint16_t form;
  std::memcpy(&form, left.data(), sizeof(form));
  left.remove_prefix(sizeof(form));
  if (!IsPlain(form) || form > left.size()) return false;
  *key = left.substr(0, form);
  left.remove_prefix(form);
  return true;
}

}  // namespace

LeafHead::LeafHead(const std::byte* image, uint32_t items)
    : image_(image),
      word_{Load<uint64_t>(heads::kSearchLineAt)},
      form_(Load<heads::Form>(heads::kFormAt)),
      fill_(heads::Fill::Of(word_.used())),
      log_begin_(Load<uint16_t>(offsetof(NodeHeader, log_begin))),
      fences_(Load<uint16_t>(offsetof(NodeHeader, shortcut_end))),
      is_valid_(IsInside(items)) {}

bool LeafHead::IsInside(uint32_t items) const {
  const uint32_t buffer_bytes = Load<uint8_t>(kUnitsAt) * kUnitBytes;
  return !word_.dead() && Load<uint8_t>(kLevelAt) == 0 && form_.count == items &&
         fill_.log_items <= heads::kLogItemsMax && heads::AfterHeads(true, items) <= fences_ &&
         fences_ <= log_begin_ && log_begin_ <= fill_.bytes &&
         kFrontBytes + fill_.bytes <= buffer_bytes;
}

uint32_t LeafHead::LogItemAt(uint32_t index) const {
  const auto place = LoadAt<uint8_t>(image_ + offsetof(heads::Front, places) + index);
  return log_begin_ + heads::kLogUnit * place;
}

uint32_t LeafHead::LogItemEnd(uint32_t index) const {
  return index + 1 < fill_.log_items ? LogItemAt(index + 1) : fill_.bytes;
}

LeafSpot::LeafSpot(const LeafHead& head, std::string_view key) : head_(head), key_(key) {
  const heads::Form& form = head.form_;
  if (form.key_form == heads::kMixed) {
    verdict_ = Finding::kWhole;
    return;
  }
  if (!IsPlain(form.key_form) || !IsPlain(form.value_form)) {
    verdict_ = Finding::kAsk;
    return;
  }
  const uint16_t own = heads::HeadOf(form, key);
  tagged_ = heads::LogItemsTagged(head.node(), head.log_items(), heads::TagOf(own));
  const uint16_t* const all = heads::HeadsOf(head.node(), true);
  sorted_ = std::min(heads::LowerBound(all, form.count, 0, own), uint32_t{form.count});
  while (sorted_ + ties_ < form.count && all[sorted_ + ties_] == own) ++ties_;
  if (ties_ * head.stride() > kTiesBytesMax || !AddLogPieces()) {
    verdict_ = Finding::kWhole;
    return;
  }
  const uint32_t items = heads::AfterHeads(true, form.count);
  const bool is_inside = ties_ == 0 || AddPiece(items + sorted_ * head.stride(),
                                                items + (sorted_ + ties_) * head.stride());
  if (!is_inside || (piece_count_ == 0 && !AddPiece(head.fences_, head.log_begin_))) {
    verdict_ = Finding::kWhole;
  }
}

bool LeafSpot::AddPiece(uint32_t begin, uint32_t end) {
  if (begin >= end || end > head_.fill_.bytes || piece_count_ == kPiecesMax) return false;
  pieces_[piece_count_++] = Piece::Around(kFrontBytes + begin, kFrontBytes + end);
  return true;
}

bool LeafSpot::AddLogPieces() {
  for (uint32_t left = tagged_; left != 0;) {
    const auto index = static_cast<uint32_t>(std::bit_width(left) - 1);
    left ^= uint32_t{1} << index;
    const uint32_t begin = head_.LogItemAt(index);
    if (begin + heads::kLogItemHeaderBytes > head_.LogItemEnd(index)) return false;
    if (!AddPiece(begin, head_.LogItemEnd(index))) return false;
    ++log_pieces_;
  }
  return true;
}

bool LeafSpot::AgreesWith(const std::byte* log_image) const {
  const uint32_t count = head_.log_items();
  const auto agrees = [&](size_t at, uint32_t bytes) {
    return std::memcmp(log_image + at, head_.image_ + at, bytes) == 0;
  };
  return agrees(kFrontBytes + heads::kTagsAt, count) &&
         agrees(offsetof(heads::Front, places), count);
}

Finding LeafSpot::Look(std::span<const std::byte* const> bytes, std::string_view* value,
                       uint64_t* delta) const {
  *delta = 0;
  const Finding logged = LookInLog(bytes, value, delta);
  if (logged != Finding::kStale) return logged;
  if (ties_ > 0) return LookAmongSorted(bytes[log_pieces_], value);
  return log_pieces_ > 0 ? Finding::kWhole : LookAtFences(bytes[0]);
}

// kStale: the log does not have the key.
Finding LeafSpot::LookInLog(std::span<const std::byte* const> bytes, std::string_view* value,
                            uint64_t* delta) const {
  uint32_t left = tagged_;
  for (uint32_t i = 0; i < log_pieces_; ++i) {
    const auto index = static_cast<uint32_t>(std::bit_width(left) - 1);
    left ^= uint32_t{1} << index;
    const uint32_t begin = head_.LogItemAt(index);
    const std::byte* const item = bytes[i] + (kFrontBytes + begin) % 8;
    const auto key_form = LoadAt<uint16_t>(item + 4);
    const auto value_form = LoadAt<uint16_t>(item + 6);
    const uint32_t key_bytes = key_form & field::kLengthMask;
    const uint32_t value_bytes = value_form & field::kLengthMask;
    if (begin + heads::kLogItemHeaderBytes + key_bytes + value_bytes > head_.LogItemEnd(index)) {
      return Finding::kWhole;
    }
    if ((key_form & field::kOutside) != 0) return Finding::kAsk;
    const std::byte* const text = item + heads::kLogItemHeaderBytes;
    if (TextAt(text, key_bytes) != key_) continue;
    *delta = LoadAt<uint32_t>(item);
    if ((key_form & field::kDeleted) != 0) return Finding::kAbsent;
    *value = TextAt(text + key_bytes, value_bytes);
    return IsPlain(value_form) ? Finding::kValue : Finding::kAsk;
  }
  return Finding::kStale;
}

// A key whose head is that of other keys is looked for in the whole leaf.
Finding LeafSpot::LookAmongSorted(const std::byte* bytes, std::string_view* value) const {
  const uint32_t key_bytes = head_.form_.key_form;
  if (key_bytes != key_.size()) return Finding::kWhole;
  const uint32_t items = heads::AfterHeads(true, head_.items());
  const std::byte* at = bytes + (kFrontBytes + items + sorted_ * head_.stride()) % 8;
  for (uint32_t i = 0; i < ties_; ++i, at += head_.stride()) {
    if (TextAt(at, key_bytes) != key_) continue;
    *value = TextAt(at + key_bytes, head_.form_.value_form);
    return Finding::kValue;
  }
  return Finding::kWhole;
}

// A surmised head says nothing of a key without the prefix that the items share.
Finding LeafSpot::LookAtFences(const std::byte* bytes) const {
  if (head_.form_.is_surmised != 0) return Finding::kWhole;
  std::string_view left =
      TextAt(bytes + (kFrontBytes + head_.fences_) % 8, head_.log_begin_ - head_.fences_);
  std::string_view lower;
  if (!TakeFence(left, &lower)) return Finding::kAsk;
  if (key_ < lower) return Finding::kStale;
  if (left.size() >= sizeof(uint16_t) &&
      LoadAt<uint16_t>(reinterpret_cast<const std::byte*>(left.data())) == field::kNoFence) {
    return Finding::kAbsent;
  }
  std::string_view upper;
  if (!TakeFence(left, &upper)) return Finding::kAsk;
  return key_ < upper ? Finding::kAbsent : Finding::kStale;
}

WholeLeaf::WholeLeaf(std::byte* image, NodeWord word, uint64_t version, uint32_t node_bytes)
    : node_(reinterpret_cast<const NodeHeader*>(image + kFrontBytes)),
      word_(word),
      codec_{.geometry = {.node_bytes = node_bytes}} {
  std::memcpy(image + kFrontBytes + offsetof(NodeHeader, version), &version, sizeof(version));
  is_valid_ = HeadLayout::Check(codec_, node_, word.used()) == nullptr;
}

// False also for a key that only what lies outside the node could tell from a fence.
bool WholeLeaf::Covers(std::string_view key) const {
  const btree::Fences fences = HeadLayout::FencesOf(codec_, node_);
  if (fences.lower.outside || (!fences.unbounded && fences.upper.outside)) return false;
  return fences.Cover(codec_, key);
}

Finding WholeLeaf::Get(std::string_view key, std::string_view* value, uint64_t* delta) const {
  if (!Covers(key)) return Finding::kStale;
  const btree::Found found = HeadLayout::Leaf(codec_, node_, word_.used()).Find(key);
  if (found.known && found.key.outside) return Finding::kAsk;
  *delta = found.known ? found.version - node_->version.load(std::memory_order_relaxed) : 0;
  if (!found.present) return Finding::kAbsent;
  *value = found.value.bytes;
  return found.value.outside || found.value.has_metadata ? Finding::kAsk : Finding::kValue;
}

Finding WholeLeaf::Scan(std::string_view key, const std::string_view* hi, uint32_t limit,
                        std::vector<Item>* items, std::string_view* bound) const {
  items->clear();
  *bound = {};
  if (!Covers(key)) return Finding::kStale;
  const HeadLayout::Leaf leaf(codec_, node_, word_.used());
  HeadLayout::LeafCursor cursor(leaf);
  for (cursor.SeekAtLeast(key); cursor.valid(); cursor.Next()) {
    const btree::StoredKey at = cursor.key();
    const btree::StoredValue value = cursor.value();
    if (at.outside || value.outside || value.has_metadata) return Finding::kAsk;
    if (hi != nullptr && at.bytes >= *hi) return Finding::kItems;
    if (items->size() == limit) {
      *bound = at.bytes;
      return Finding::kItems;
    }
    items->push_back({.key = at.bytes, .value = value.bytes});
  }
  const btree::Fences fences = HeadLayout::FencesOf(codec_, node_);
  const bool ends_here = fences.unbounded || (hi != nullptr && *hi <= fences.upper.bytes);
  return ends_here ? Finding::kItems : Finding::kAsk;
}

uint64_t WholeLeaf::newest_delta() const {
  return HeadLayout::Leaf(codec_, node_, word_.used()).newest_version() -
         node_->version.load(std::memory_order_relaxed);
}

}  // namespace skep::leaves

// Builds nodes: finds the form that all keys of a node share, and writes the bytes.

#include "btree/heads/head_layout_build.h"

#include <algorithm>

#include "base/check.h"
#include "btree/heads/head_layout_search.h"

namespace skep::btree {
namespace {

using heads::Form;

bool HaveOneForm(std::span<const LeafItem> items) {
  if (items.empty()) return false;
  const uint16_t key = heads::FormOfKey(items[0].key);
  const uint16_t value = heads::FormOfValue(items[0].value);
  if (((key | value) & field::kLengthMask) == 0) return false;
  return std::ranges::all_of(items, [&](const LeafItem& item) {
    return heads::FormOfKey(item.key) == key && heads::FormOfValue(item.value) == value;
  });
}

// The bytes of an item beside its key and value, unless all items have one form.
constexpr uint32_t kOffsetAndForms = 2 + 2 * field::kLengthBytes;

uint32_t Bytes(const LeafItem& item) {
  return static_cast<uint32_t>(item.key.bytes.size() + item.value.bytes.size());
}

// Writes the fences behind the items, where the node ends.
uint32_t PutFences(NodeHeader* node, uint32_t at, const Fences& fences) {
  node->shortcut_end = static_cast<uint16_t>(at);
  at = field::PutFences(node, at, fences);
  node->log_begin = static_cast<uint16_t>(at);
  return at;
}

// Writes the items from `at` on, and returns the offset behind them.
uint32_t PutUniform(NodeHeader* node, uint32_t at, std::span<const LeafItem> items) {
  std::byte* to = node->bytes() + at;
  for (const LeafItem& item : items) {
    CopyBytes(to, item.key.bytes.data(), item.key.bytes.size());
    to += item.key.bytes.size();
    CopyBytes(to, item.value.bytes.data(), item.value.bytes.size());
    to += item.value.bytes.size();
  }
  return static_cast<uint32_t>(to - node->bytes());
}

uint32_t PutMixed(NodeHeader* node, uint32_t offsets, std::span<const LeafItem> items) {
  uint32_t at = offsets + 2 * static_cast<uint32_t>(items.size());
  for (const LeafItem& item : items) {
    field::Store(node, offsets, static_cast<uint16_t>(at));
    offsets += 2;
    at = field::PutKey(node, at, item.key);
    at = field::PutValue(node, at, item.value);
  }
  return at;
}

// A prefix that the fences do not guarantee makes searches look at the first key. So only keys that
// have more bytes in common than these beyond the guaranteed ones have one: their words would
// differ in few bytes.
constexpr uint32_t kAlikeInWord = 3;

}  // namespace

Form heads::MakeForm(const Codec& codec, std::string_view first, std::string_view last,
                     uint32_t count, const Fences& fences) {
  const uint32_t prefix_max = PrefixMax(codec);
  Form form = {.base = 0,
               .key_form = heads::kMixed,
               .value_form = 0,
               .count = static_cast<uint16_t>(count & heads::kCountMask),
               .wide = heads::kEightBits,
               .shift = 0,
               .squeezes = 0,
               .is_surmised = 0,
               .prefix = 0,
               .samples = {},
               .narrow = heads::kEightBits,
               .wide_bytes = heads::kAllBytes};
  const uint32_t guaranteed = std::min(heads::GuaranteedPrefix(fences), prefix_max);
  form.prefix = static_cast<uint8_t>(guaranteed);
  if (count < 2) return form;
  const uint32_t common = std::min(heads::CommonPrefix(first, last), prefix_max);
  if (common > guaranteed + kAlikeInWord) {
    form.prefix = static_cast<uint8_t>(common);
    form.is_surmised = 1;
  }
  form.base = heads::WordAt(first, form.prefix);
  return form;
}

// The choice depends on the widths of the bytes alone. So if more bits differ, but none outside the
// mask, the choice is the same: no other one has become cheaper, and this one costs what it did.
void heads::ChooseMask(Form* form, uint64_t differing) {
  std::array<uint32_t, 8> widths;  // indexes of kWidths
  uint32_t candidates = 1;         // for `narrow`: a bit for each
  for (uint32_t byte = 0; byte < widths.size(); ++byte) {
    const auto bits = static_cast<uint32_t>(std::bit_width(differing >> (56 - 8 * byte) & 0xff));
    widths[byte] = bits <= 1 ? bits : bits - 1;
    candidates |= 1u << widths[byte];
  }
  const uint32_t wide = std::ranges::max(widths);
  uint32_t least = UINT32_MAX;
  for (uint32_t left = candidates; left != 0; left &= left - 1) {
    const auto narrow = static_cast<uint32_t>(std::countr_zero(left));
    if (narrow > 0 && narrow == wide) break;
    uint32_t cost = 0;
    uint32_t wide_bytes = 0;
    for (uint32_t byte = 0; byte < kChosenBytes; ++byte) {
      const bool is_wide = widths[byte] > narrow;
      wide_bytes |= uint32_t{is_wide} << byte;
      cost += kWidths[is_wide ? wide : narrow];
    }
    if (cost >= least) continue;
    least = cost;
    form->narrow = narrow & 7;
    form->wide_bytes = wide_bytes & kAllBytes;
  }
  form->wide = wide & 7;
  const uint64_t mask = MaskOf(*form);
  const uint64_t filled = mask | (mask - 1);
  if (!form->squeezes && (filled & (filled + 1)) == 0) TakeAllBits(form);
}

void heads::SetShift(Form* form, std::string_view last) {
  const auto [most, first] = ExtractBits(WordOf(*form, last), form->base, MaskOf(*form));
  form->shift = static_cast<uint8_t>(std::countl_zero((most - first) | 1)) & 0x3f;
}

uint32_t heads::CountAlike(const uint16_t* all, uint32_t count) {
  uint32_t alike = 0;
  for (uint32_t i = 1; i < count; ++i) alike += all[i] == all[i - 1];
  return alike;
}

void heads::PutForm(NodeHeader* node, const Form& form) {
  *FrontOf(node) = {};
  Form* const to = reinterpret_cast<Form*>(node->bytes() + kFormAt);
  *to = form;
  if (!node->is_leaf()) to->value_form = kOfInner;
}

void heads::PutEmptyLog(NodeHeader* leaf, uint64_t deadline_ms) {
  std::memset(leaf->bytes() + kTagsAt, 0, kLogItemsMax);
  std::memset(leaf->bytes() + kLogRanksAt, 0, kLeafHeadsAt - kLogRanksAt);
  Store(leaf, kDeadlineAt, deadline_ms);
}

void heads::FinishHeads(NodeHeader* node) {
  const bool is_leaf = node->is_leaf();
  const uint32_t count = node->sorted_count;
  uint16_t* const all = NumbersAt(node, is_leaf ? kLeafHeadsAt : kInnerHeadsAt);
  std::byte* const samples =
      node->bytes() + (is_leaf ? kFormAt + offsetof(Form, samples) : kInnerSamplesAt);
  const uint32_t samples_max = is_leaf ? kLeafSamplesMax : kInnerSamplesMax;
  std::fill(all + count, all + HeadSlots(count), uint16_t{0xffff});
  const uint32_t shift = SampleShift(count, samples_max);
  for (uint32_t i = 0; i < samples_max; ++i) {
    const uint32_t at = (i + 1) << shift;
    samples[i] = static_cast<std::byte>(at < count ? all[at] >> 8 : 0xff);
  }
}

uint32_t HeadLayout::FixedBytes(const Geometry&) { return heads::AfterHeads(true, 0); }

uint32_t HeadLayout::LeafItemBytes(const LeafItem& item) {
  return 2 + kOffsetAndForms + Bytes(item);
}

uint32_t HeadLayout::InnerItemBytes(const InnerItem& item) {
  return 2 + field::kLinkBytes + 2 + field::BytesOf(item.separator);
}

uint32_t HeadLayout::FenceBytes(const Fences& fences) { return field::BytesOf(fences); }

uint32_t HeadLayout::LeafBytes(const Codec&, std::span<const LeafItem> items,
                               const Fences& fences) {
  const auto count = static_cast<uint32_t>(items.size());
  uint32_t bytes = heads::AfterHeads(true, count) + FenceBytes(fences);
  if (HaveOneForm(items)) return bytes + count * Bytes(items[0]);
  for (const LeafItem& item : items) bytes += kOffsetAndForms + Bytes(item);
  return bytes;
}

uint32_t HeadLayout::InnerBytes(const Codec&, std::span<const InnerItem> items,
                                const Fences& fences) {
  const auto count = static_cast<uint32_t>(items.size());
  uint32_t bytes = heads::AfterHeads(false, count) + FenceBytes(fences);
  for (const InnerItem& item : items) bytes += InnerItemBytes(item) - 2;
  return bytes;
}

uint32_t HeadLayout::SeparatorBytesMax(const Geometry& geometry) {
  return 2 * heads::kSegmentHeads + field::kLinkBytes + 2 + field::kLengthBytes +
         geometry.key_inline_max();
}

uint32_t HeadLayout::LeafBytesMax(const Geometry& geometry) {
  // The log comes on top of this.
  return std::min(geometry.node_bytes,
                  Geometry::kBufferBytesMax - kFrontBytes - LogBytesMax(geometry));
}

// A leaf and its log are split when they are too much for one leaf: a fifth too much, and the log,
// leave half a leaf room for the largest item and fence.
bool heads::HasRoomForForms(const Geometry& geometry, uint32_t bytes, uint32_t items) {
  return 5 * (bytes + items * kOffsetAndForms) <= 6 * HeadLayout::LeafBytesMax(geometry);
}

bool HeadLayout::FitsLeaf(const Codec& codec, std::span<const LeafItem> items,
                          const Fences& fences) {
  const uint32_t bytes = LeafBytes(codec, items, fences);
  return bytes <= LeafBytesMax(codec.geometry) &&
         (!HaveOneForm(items) ||
          heads::HasRoomForForms(codec.geometry, bytes, static_cast<uint32_t>(items.size())));
}

// A leaf gets room for fewer log items than a log may have: a buffer is larger than what was asked
// for by half an arena size class, on average, and the log uses that, too.
constexpr uint32_t kLogItemsMin = 16;

uint32_t HeadLayout::LeafBufferBytes(const Codec& codec, const NodeHeader* built, uint32_t used) {
  const Sorted sorted(built);
  uint32_t log = LogBytesMax(codec.geometry);
  if (sorted.is_uniform()) {
    log = std::min(log, kLogItemsMin * heads::LogItem::BytesOf(sorted.stride()));
  }
  return used + log;
}

uint32_t HeadLayout::BuildLeaf(const Codec& codec, std::span<const LeafItem> items,
                               const Fences& fences, NodeHeader* buffer) {
  const auto count = static_cast<uint32_t>(items.size());
  buffer->level = 0;
  buffer->sorted_count = static_cast<uint16_t>(count);
  Form form = heads::PutLeafHeads(
      codec, count, fences, [&](uint32_t i) { return heads::OwnBytes(items[i].key); },
      heads::NumbersAt(buffer, heads::kLeafHeadsAt));
  const bool uniform = HaveOneForm(items);
  if (uniform) {
    form.key_form = heads::FormOfKey(items[0].key);
    form.value_form = heads::FormOfValue(items[0].value);
  }
  heads::PutForm(buffer, form);
  heads::PutEmptyLog(buffer, EarliestDeadline(items));
  heads::FinishHeads(buffer);
  uint32_t at = heads::AfterHeads(true, count);
  at = uniform ? PutUniform(buffer, at, items) : PutMixed(buffer, at, items);
  return PutFences(buffer, at, fences);
}

uint32_t HeadLayout::BuildLeaf(const Codec& codec, const ItemSpan& items, const Fences& fences,
                               NodeHeader* buffer) {
  SKEP_DCHECK(items.count > 0 && items.stride() > 0);
  buffer->level = 0;
  buffer->sorted_count = static_cast<uint16_t>(items.count);
  Form form = heads::PutLeafHeads(
      codec, items.count, fences, [&](uint32_t i) { return std::string_view(items[i].key); },
      heads::NumbersAt(buffer, heads::kLeafHeadsAt));
  form.key_form = static_cast<uint16_t>(items.key_bytes);
  form.value_form = static_cast<uint16_t>(items.value_bytes);
  heads::PutForm(buffer, form);
  heads::PutEmptyLog(buffer, kNoDeadline);
  heads::FinishHeads(buffer);
  const uint32_t at = heads::AfterHeads(true, items.count);
  const auto bytes = static_cast<uint32_t>(items.count * items.stride());
  std::memcpy(buffer->bytes() + at, items.at, bytes);
  return PutFences(buffer, at + bytes, fences);
}

uint32_t HeadLayout::BuildInner(const Codec& codec, uint8_t level, Link leftmost,
                                std::span<const InnerItem> items, const Fences& fences,
                                NodeHeader* buffer) {
  SKEP_DCHECK(level > 0);
  const auto count = static_cast<uint32_t>(items.size());
  buffer->left.store(leftmost.bits, std::memory_order_relaxed);
  buffer->level = level;
  buffer->sorted_count = static_cast<uint16_t>(count);
  const Form form = heads::PutHeads(
      codec, count, fences, [&](uint32_t i) { return heads::OwnBytes(items[i].separator); },
      heads::NumbersAt(buffer, heads::kInnerHeadsAt));
  heads::PutForm(buffer, form);
  const uint32_t links = heads::AfterHeads(false, count);
  const uint32_t offsets = links + 8 * count;
  uint32_t at = offsets + 2 * count;
  for (uint32_t i = 0; i < count; ++i) {
    field::Store(buffer, links + 8 * i, items[i].child);
    field::Store(buffer, offsets + 2 * i, static_cast<uint16_t>(at));
    at = field::PutKey(buffer, at, items[i].separator);
  }
  heads::FinishHeads(buffer);
  return PutFences(buffer, at, fences);
}

}  // namespace skep::btree

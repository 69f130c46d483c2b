// head_layout_bytes.h: the fields of a node of HeadLayout, and the heads of keys. The functions
// read and write them; searches are in head_layout_search.h. head_layout.h has the picture.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "btree/heads/discriminative_bits.h"
#include "btree/heads/extract_bits.h"
#include "btree/heads/key_word.h"
#include "btree/heads/lanes.h"
#include "btree/heads/squeeze_letters.h"
#include "btree/node.h"
#include "btree/node_field.h"
#include "btree/node_items.h"
#include "btree/stored.h"

namespace skep::btree::heads {

using namespace field;

inline constexpr uint32_t kLogItemsMax = 24;
inline constexpr uint32_t kSegmentHeads = 32;  // compared at once; a cache line
inline constexpr uint32_t kLogItemHeaderBytes = 8;
// Log items begin at multiples of this from the begin of the log.
inline constexpr uint32_t kLogUnit = 8;
inline constexpr uint32_t kLogBytesMax = 256 * kLogUnit;
inline constexpr uint16_t kMixed = 0xffff;  // the items do not share one form
// With kMixed as the form of keys: the node is an inner node.
inline constexpr uint16_t kOfInner = 0xffff;

inline constexpr uint32_t kSearchLineAt = offsetof(NodeHeader, word);
inline constexpr uint32_t kFormAt = sizeof(NodeHeader);
inline constexpr uint32_t kLeafSamplesMax = 7;  // Form::samples
inline constexpr uint32_t kTagsAt = 72;         // leaf
inline constexpr uint32_t kInnerSamplesAt = 72;
inline constexpr uint32_t kInnerSamplesMax = 24;
inline constexpr uint32_t kInnerHeadsAt = 96;
inline constexpr uint32_t kLogRanksAt = 96;   // leaf
inline constexpr uint32_t kDeadlineAt = 144;  // leaf; the 8 bytes behind it are zeros
inline constexpr uint32_t kLeafHeadsAt = 160;
static_assert(kSearchLineAt + 64 == kTagsAt + kLogItemsMax);
static_assert(kSearchLineAt + 64 == kInnerSamplesAt + kInnerSamplesMax);
static_assert(kLogRanksAt + 2 * kLogItemsMax == kDeadlineAt);

// The bytes before a leaf; before an inner node they are unused. They make kSearchLineAt begin a
// cache line.
struct Front {
  uint64_t newest;               // no log item is of a later version
  uint8_t places[kLogItemsMax];  // of the log's items, in units of kLogUnit: LogOffset()
};
inline constexpr uint32_t kFrontBytes = sizeof(Front);
static_assert((kFrontBytes + kSearchLineAt) % 64 == 0);
static_assert(Geometry{.node_bytes = Geometry::kBufferBytesMax}.inner_bytes_max() + kFrontBytes <=
              Geometry::kBufferBytesMax);

inline Front* FrontOf(const NodeHeader* leaf) {
  return reinterpret_cast<Front*>(const_cast<std::byte*>(leaf->bytes()) - kFrontBytes);
}

// Says how heads are made of keys, and what all items of a leaf have in common: 24 bytes at
// kFormAt. The mask has the lowest bits of each byte of a word. To take few bits itself it has two
// widths for them: of the first five bytes, the highest, those that `wide_bytes` has a bit for (the
// lowest bit for the first byte) have the width `wide`, the others `narrow`; the last three have
// `wide`. A head seldom reaches further than five bytes of text.
//
// The form of heads made of discriminative bits (BitsOf) has their mask in `base`; `wide` is 0 and
// `narrow` is not.
//
// Readers in other processes know these bytes: a change of their meaning needs a new
// LeafBoard::kMagic (engine/leaf_board.h).
struct Form {
  uint64_t base;         // the first key's word: its bytes from `prefix` on, the first one highest
  uint16_t key_form;     // length and flags of every key (node_field.h), or kMixed
  uint16_t value_form;   // the same of every value; if key_form is kMixed, 0, or kOfInner
  uint16_t count : 13;   // the header's sorted_count, here in the search line
  uint16_t wide : 3;     // an index of kWidths
  uint8_t shift : 6;     // to the left; then the upper 16 bits of 64 are a head
  uint8_t squeezes : 1;  // the words have their letters next to their digits: SqueezeLetters
  uint8_t is_surmised : 1;           // not all keys that belong to the node begin with the prefix
  uint8_t prefix;                    // all keys of the sorted block have these bytes in common
  uint8_t samples[kLeafSamplesMax];  // leaf: upper bytes of the first heads of segments
  uint8_t narrow : 3;                // an index of kWidths, below `wide`, or kEightBits: all bits
  uint8_t wide_bytes : 5;
};
static_assert(sizeof(Form) == 24);
static_assert(kFormAt + sizeof(Form) == kTagsAt);
// A key takes 2 bytes at least, or is one of 256, and its head 2.
static_assert(Geometry::kBufferBytesMax / 4 <= 1 << 13);

// The bits of a byte that a mask may have.
inline constexpr std::array<uint8_t, 8> kWidths = {0, 2, 3, 4, 5, 6, 7, 8};
inline constexpr uint32_t kEightBits = 7;
inline constexpr uint32_t kCountMask = (1u << 13) - 1;
inline constexpr uint32_t kAllBytes = 0x1f;
inline constexpr uint32_t kChosenBytes = 5;

// For each width, a word of bytes with so many bits.
inline constexpr auto kBitsInEach = [] {
  std::array<uint64_t, kWidths.size()> words = {};
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = 0x0101010101010101 * ((uint64_t{1} << kWidths[i]) - 1);
  }
  return words;
}();
// For each value of Form::wide_bytes, the whole bytes that are wide.
inline constexpr auto kWideBytes = [] {
  std::array<uint64_t, kAllBytes + 1> words = {};
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = 0xffffff;
    for (uint32_t byte = 0; byte < kChosenBytes; ++byte) {
      if ((i >> byte & 1) != 0) words[i] |= uint64_t{0xff} << (56 - 8 * byte);
    }
  }
  return words;
}();

// The bits that make heads.
inline uint64_t MaskOf(const Form& form) {
  const uint64_t wide_bytes = kWideBytes[form.wide_bytes];
  return (kBitsInEach[form.wide] & wide_bytes) | (kBitsInEach[form.narrow] & ~wide_bytes);
}
// Whether the mask has all bits, as of binary keys. Subtracting the first key's word leaves out
// those above that no key has, and the shift those below.
inline bool HasAllBits(const Form& form) { return form.narrow == kEightBits; }
inline void TakeAllBits(Form* form) {
  form->wide = form->narrow = kEightBits;
  form->wide_bytes = kAllBytes;
}

// Whether heads are made of discriminative bits, and of which.
inline bool HasChosenBits(const Form& form) { return form.narrow > form.wide; }
inline DiscriminativeBits BitsOf(const Form& form) {
  return {.mask = form.base,
          .begin = form.prefix,
          .first_bytes = (form.wide_bytes & 7u) + 1,
          .gap = form.shift};
}
inline void TakeBits(const DiscriminativeBits& bits, Form* form) {
  form->base = bits.mask;
  form->wide = 0;
  form->narrow = 1;
  form->wide_bytes = (bits.first_bytes - 1) & 7;
  form->shift = bits.gap & DiscriminativeBits::kGapMax;
  form->prefix = static_cast<uint8_t>(bits.begin);
  form->squeezes = 0;
  form->is_surmised = 0;
}

inline const Form& FormOf(const NodeHeader* node) {
  return *reinterpret_cast<const Form*>(node->bytes() + kFormAt);
}

// The header's level says the same, but lies in another line.
inline bool IsLeaf(const Form& form) {
  return form.key_form != kMixed || form.value_form != kOfInner;
}

inline const uint16_t* HeadsOf(const NodeHeader* node, bool is_leaf) {
  const uint32_t at = is_leaf ? kLeafHeadsAt : kInnerHeadsAt;
  return reinterpret_cast<const uint16_t*>(node->bytes() + at);
}

inline uint32_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  return static_cast<uint32_t>(in_a - a.begin());
}
using btree::OwnBytes;
inline std::string_view OwnBytes(std::string_view key) { return key; }

// The length of the prefix that all keys between two fences share.
inline uint32_t GuaranteedPrefix(const Fences& fences) {
  return fences.unbounded ? 0 : CommonPrefix(OwnBytes(fences.lower), OwnBytes(fences.upper));
}

// The number of entries of the array of heads: whole segments, at least one, the last one filled
// up.
inline constexpr uint32_t HeadSlots(uint32_t items) {
  return std::max(kSegmentHeads, (items + kSegmentHeads - 1) / kSegmentHeads * kSegmentHeads);
}
inline constexpr uint32_t AfterHeads(bool is_leaf, uint32_t items) {
  return (is_leaf ? kLeafHeadsAt : kInnerHeadsAt) + 2 * HeadSlots(items);
}

// Log2 of the distance, in heads, from one sample to the next.
inline uint32_t SampleShift(uint32_t items, uint32_t samples_max) {
  uint32_t shift = 5;
  while ((items >> shift) > samples_max) ++shift;
  return shift;
}

// The word of a key, as the heads of the node are made of it.
inline uint64_t WordOf(const Form& form, std::string_view key) {
  const uint64_t word = WordAt(key, form.prefix);
  return form.squeezes ? SqueezeLetters(word) : word;
}

// How far the number that the mask makes of a word is above the first key's; 0 if it is not above.
// The words of the node's keys differ in the bits of the mask only, so these bits alone, one beside
// the other, order them. A word that differs from them all in another bit is above or below each
// that has the bits above that one in common with it: it gets ones, or zeros, from there on.
inline uint64_t AboveFirst(const Form& form, uint64_t word) {
  const uint64_t mask = MaskOf(form);
  const uint64_t foreign = (word ^ form.base) & ~mask;
  if (foreign != 0) [[unlikely]] {
    const uint64_t from_there_on = ~uint64_t{0} >> std::countl_zero(foreign);
    const bool is_above = word & foreign & ~(from_there_on >> 1);
    word = is_above ? word | from_there_on : word & ~from_there_on;
  }
  const auto [number, first] = ExtractBits(word, form.base, mask);
  return number > first ? number - first : 0;
}

// HeadOf for a form of discriminative bits. Apart from the others, so that these stay short.
[[gnu::noinline]] inline uint16_t HeadOfChosenBits(const Form& form, std::string_view key) {
  return BitsOf(form).HeadOf(key);
}

// The head of a key.
inline uint16_t HeadOf(const Form& form, std::string_view key) {
  uint64_t above_first;
  if (HasAllBits(form)) {
    const uint64_t word = WordAt(key, form.prefix);
    if (word <= form.base) return 0;
    above_first = word - form.base;
  } else if (HasChosenBits(form)) {
    return HeadOfChosenBits(form, key);
  } else {
    above_first = AboveFirst(form, WordOf(form, key));
  }
  if (above_first > ~uint64_t{0} >> form.shift) return 0xffff;
  return static_cast<uint16_t>(above_first << form.shift >> 48);
}

// The rank of a key is its place among the sorted keys: 2i if it lies in the gap before sorted item
// i, and 2i + 1 if it is that item's key. A reader that walks the log and the sorted items as one
// needs no other search for the place of a log item.
inline constexpr uint16_t RankOf(uint32_t item, bool is_equal) {
  return static_cast<uint16_t>(2 * item + (is_equal ? 1 : 0));
}
inline constexpr uint32_t ItemOfRank(uint32_t rank) { return rank / 2; }
inline constexpr bool IsOfItem(uint32_t rank) { return rank % 2 != 0; }
// Found::rank of a key whose newest item is in the log: this plus the item's number there. Its rank
// is that item's, and is looked up by who needs it.
inline constexpr uint16_t kRankOfLogItem = 0x8000;
static_assert(2 * kCountMask + 1 < kRankOfLogItem);

// The log's ranks are written under readers, so they are read and written as whole words.
inline std::atomic_ref<uint64_t> LogRanksWord(const NodeHeader* node, uint32_t index) {
  auto* const at = const_cast<std::byte*>(node->bytes()) + kLogRanksAt;
  return std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t*>(at)[index]);
}
inline uint16_t LogRank(const NodeHeader* node, uint32_t index) {
  const uint64_t word = LogRanksWord(node, index / 4).load(std::memory_order_relaxed);
  return static_cast<uint16_t>(word >> (16 * (index % 4)));
}
// Called by the holder of the lock.
inline void SetLogRank(NodeHeader* node, uint32_t index, uint16_t rank) {
  const auto word = LogRanksWord(node, index / 4);
  const uint32_t at = 16 * (index % 4);
  const uint64_t others = word.load(std::memory_order_relaxed) & ~(uint64_t{0xffff} << at);
  word.store(others | uint64_t{rank} << at, std::memory_order_relaxed);
}

// The tag of a head: 8 bits of its product with a large odd number, because the heads of text do
// not have all values and are often multiples of a power of two. A tag tells most log items apart
// that a search does not want, without a look at them. Tags are read and written as whole words,
// too.
inline uint8_t TagOf(uint16_t head) { return static_cast<uint8_t>(head * 0x9e3779b1u >> 24); }
inline std::atomic_ref<uint64_t> TagsWord(const NodeHeader* node, uint32_t index) {
  auto* const at = const_cast<std::byte*>(node->bytes()) + kTagsAt;
  return std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t*>(at)[index]);
}
// Called by the holder of the lock.
inline void SetTag(NodeHeader* node, uint32_t index, uint8_t tag) {
  const auto word = TagsWord(node, index / 8);
  const uint32_t at = 8 * (index % 8);
  const uint64_t others = word.load(std::memory_order_relaxed) & ~(uint64_t{0xff} << at);
  word.store(others | uint64_t{tag} << at, std::memory_order_relaxed);
}
inline uint8_t Tag(const NodeHeader* node, uint32_t index) {
  const uint64_t word = TagsWord(node, index / 8).load(std::memory_order_relaxed);
  return static_cast<uint8_t>(word >> (8 * (index % 8)));
}
// A bit for each of the first `count` log items with this tag. Cost: the search line alone.
inline uint32_t LogItemsTagged(const NodeHeader* node, uint32_t count, uint8_t tag) {
  const auto word = [&](uint32_t i) { return TagsWord(node, i).load(std::memory_order_relaxed); };
  return EqualBytes24(word(0), word(1), word(2), tag) & ((uint32_t{1} << count) - 1);
}

// Copies all ranks of the log; those of items not published yet may have any content.
inline void CopyLogRanks(const NodeHeader* node, uint16_t* to) {
  for (uint32_t i = 0; i < kLogItemsMax / 4; ++i) {
    const uint64_t word = LogRanksWord(node, i).load(std::memory_order_relaxed);
    std::memcpy(to + 4 * i, &word, sizeof(word));
  }
}
// A bit for each of 24 ranks that is not below `rank`.
inline uint32_t NotBelow24(const uint16_t* all, uint32_t rank) {
  const auto bound = static_cast<uint16_t>(rank);
  return NotBelow8(all, bound) | NotBelow8(all + 8, bound) << 8 | NotBelow8(all + 16, bound) << 16;
}
inline uint32_t CountBelow24(const uint16_t* all, uint16_t rank) {
  return CountBelow8(all, rank) + CountBelow8(all + 8, rank) + CountBelow8(all + 16, rank);
}

inline std::atomic_ref<uint64_t> AtomicAt(const NodeHeader* node, uint32_t at) {
  return std::atomic_ref<uint64_t>(
      *reinterpret_cast<uint64_t*>(const_cast<std::byte*>(node->bytes()) + at));
}

inline uint32_t LogOffset(const NodeHeader* node, uint32_t index) {
  return node->log_begin + kLogUnit * FrontOf(node)->places[index];
}
inline void SetLogOffset(NodeHeader* node, uint32_t index, uint32_t offset) {
  SKEP_DCHECK(offset - node->log_begin < kLogBytesMax);
  FrontOf(node)->places[index] = static_cast<uint8_t>((offset - node->log_begin) / kLogUnit);
}
inline std::atomic_ref<uint64_t> NewestOf(const NodeHeader* node) {
  return std::atomic_ref<uint64_t>(FrontOf(node)->newest);
}

// How far a leaf is filled, as encoded in NodeWord::used().
struct Fill {
  uint32_t bytes;
  uint32_t log_items;
  static Fill Of(uint32_t used) { return {used & 0xffff, used >> 16}; }
  uint32_t used() const { return bytes | log_items << 16; }
};

// A view of an item of the log: u32 version delta | u16 key form | u16 value form | key | value.
class LogItem {
 public:
  LogItem(const NodeHeader* node, uint32_t at)
      : node_(node),
        at_(at),
        key_form_(Load<uint16_t>(node, at + 4)),
        value_form_(Load<uint16_t>(node, at + 6)) {}

  uint32_t at() const { return at_; }
  uint64_t delta() const { return Load<uint32_t>(node_, at_); }
  bool deleted() const { return (key_form_ & kDeleted) != 0; }
  // Whether the key had a value before.
  bool replaces() const { return (key_form_ & kReplaces) != 0; }
  StoredKey key() const {
    return {.bytes = BytesAt(node_, at_ + kLogItemHeaderBytes, key_form_ & kLengthMask),
            .outside = (key_form_ & kOutside) != 0};
  }
  StoredValue value() const {  // unless deleted
    return {.bytes = BytesAt(node_, at_ + kLogItemHeaderBytes + (key_form_ & kLengthMask),
                             value_form_ & kLengthMask),
            .outside = (value_form_ & kOutside) != 0,
            .has_metadata = (value_form_ & kMetadata) != 0};
  }
  // Whether the item is a whole key and a whole value without metadata, of these lengths.
  bool is_plain(uint32_t key_bytes, uint32_t value_bytes) const {
    return (key_form_ & ~kReplaces) == key_bytes && value_form_ == value_bytes;
  }
  // The offset at which the next item begins.
  uint32_t end() const {
    return at_ + BytesOf((key_form_ & kLengthMask) + (value_form_ & kLengthMask));
  }
  // The bytes of an item whose key and value have `content_bytes` bytes.
  static uint32_t BytesOf(uint32_t content_bytes) {
    return (kLogItemHeaderBytes + content_bytes + kLogUnit - 1) / kLogUnit * kLogUnit;
  }

 private:
  const NodeHeader* node_;
  uint32_t at_;
  uint16_t key_form_;
  uint16_t value_form_;
};

inline uint16_t FormOfKey(const StoredKey& key) {
  return static_cast<uint16_t>(key.bytes.size() | (key.outside ? kOutside : 0u));
}
inline uint16_t FormOfValue(const StoredValue& value) {
  return static_cast<uint16_t>(value.bytes.size() | (value.outside ? kOutside : 0u) |
                               (value.has_metadata ? kMetadata : 0u));
}

}  // namespace skep::btree::heads

// leaf_image.h: what a reader makes of the bytes of a leaf that it has read out of another process.
//
//   head   [-32, 160) of the node and its heads: front, header, search line, log heads, heads
//   spot   where in the leaf a key may be, by its head: sorted items, log items, or between fences
//   look   the bytes of these, and what they say of the key
//   whole  all bytes of the leaf, searched as the server does, for a leaf that a spot does not do
//
// Pure functions of images. The words of an image may be from different times, or of another node
// or a value that has the memory now (leaf_reader.h says when an image counts), so no number in one
// is used before it was compared with the bounds of the buffer. Images are aligned to words, and
// begin with a node's first byte, kFrontBytes before its header.
//
// Only leaves of HeadLayout. What is not simple is asked for by a call: keys and values that lie
// outside the node, and items with a deadline, which the server's clock judges.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "btree/heads/head_layout_bytes.h"
#include "btree/node.h"
#include "skep/items.h"

namespace skep::leaves {

template <class T>
T LoadAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Bytes [begin, end) of a node's buffer, in whole words.
struct Piece {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t bytes() const { return end - begin; }
  static Piece Around(uint32_t begin, uint32_t end) {
    return {.begin = begin / 8 * 8, .end = (end + 7) / 8 * 8};
  }
};

inline constexpr uint32_t kFrontBytes = btree::heads::kFrontBytes;
// What a reader looks at before all else: the fields that tell a node, and its form.
inline constexpr Piece kSightPiece{.begin = kFrontBytes + btree::heads::kSearchLineAt,
                                   .end = kFrontBytes + btree::heads::kTagsAt};
// The words of the log that a writer changes before it publishes an item.
inline constexpr Piece kLogPiece{.begin = 0, .end = kFrontBytes + btree::heads::kLeafHeadsAt};

// The head of a leaf with so many items.
constexpr Piece HeadPiece(uint32_t items) {
  return {.begin = 0, .end = kFrontBytes + btree::heads::AfterHeads(true, items)};
}

enum class Finding : uint8_t {
  kValue,
  kAbsent,
  kItems,
  kStale,  // these bytes are not of a leaf that has the key, or not of one state: try again
  kWhole,  // the leaf has to be read as a whole
  kAsk,    // a call is needed: the server knows what to do
};

// An image of a head, with checked bounds.
class LeafHead {
 public:
  // `items`: as many as the image has heads for.
  LeafHead(const std::byte* image, uint32_t items);

  bool is_valid() const { return is_valid_; }
  btree::NodeWord word() const { return word_; }
  uint32_t items() const { return form_.count; }
  uint32_t log_items() const { return fill_.log_items; }
  // The piece of the whole leaf up to its last item.
  Piece whole() const { return Piece::Around(0, kFrontBytes + fill_.bytes); }

 private:
  friend class LeafSpot;

  template <class T>
  T Load(uint32_t at) const {
    return LoadAt<T>(image_ + kFrontBytes + at);
  }
  bool IsInside(uint32_t items) const;
  const btree::NodeHeader* node() const {
    return reinterpret_cast<const btree::NodeHeader*>(image_ + kFrontBytes);
  }
  uint32_t stride() const {
    return (form_.key_form & btree::field::kLengthMask) +
           (form_.value_form & btree::field::kLengthMask);
  }
  uint32_t LogItemAt(uint32_t index) const;
  uint32_t LogItemEnd(uint32_t index) const;

  const std::byte* image_;
  btree::NodeWord word_;
  btree::heads::Form form_;
  btree::heads::Fill fill_;
  uint32_t log_begin_;
  uint32_t fences_;
  bool is_valid_;
};

// Where a key may be in a leaf.
class LeafSpot {
 public:
  // Items whose heads are the key's are read together, up to so many bytes: keys that come in
  // groups can have tens of them. With more the leaf is read as a whole, and with more log items
  // that have its tag.
  static constexpr uint32_t kTiesBytesMax = 2048;
  static constexpr uint32_t kPiecesMax = 6;

  // Requires a valid head.
  LeafSpot(const LeafHead& head, std::string_view key);

  // kStale: go on, the pieces say more; else what to do instead.
  Finding verdict() const { return verdict_; }
  // What is to be read: the log's pieces first, the newest first, then the sorted items, or the
  // fences if there is none of either.
  std::span<const Piece> pieces() const { return {pieces_.data(), piece_count_}; }
  // Whether a later image of the log's words leads to the same pieces.
  bool AgreesWith(const std::byte* log_image) const;
  // What the pieces say. `bytes` has each piece's, in the same order. *value is a view of those;
  // *delta: of the version, over that of the node.
  Finding Look(std::span<const std::byte* const> bytes, std::string_view* value,
               uint64_t* delta) const;

 private:
  Finding LookInLog(std::span<const std::byte* const> bytes, std::string_view* value,
                    uint64_t* delta) const;
  Finding LookAmongSorted(const std::byte* bytes, std::string_view* value) const;
  Finding LookAtFences(const std::byte* bytes) const;
  bool AddPiece(uint32_t begin, uint32_t end);
  bool AddLogPieces();

  const LeafHead head_;
  const std::string_view key_;
  uint32_t tagged_ = 0;  // log items that may have the key
  uint32_t sorted_ = 0;  // the first sorted item that may
  uint32_t ties_ = 0;    // how many may
  uint32_t log_pieces_ = 0;
  Finding verdict_ = Finding::kStale;
  std::array<Piece, kPiecesMax> pieces_;
  uint32_t piece_count_ = 0;
};

// The image of a whole leaf, as of `word`.
class WholeLeaf {
 public:
  // `image` has the bytes of LeafHead::whole(); `version` is the node's.
  WholeLeaf(std::byte* image, btree::NodeWord word, uint64_t version, uint32_t node_bytes);

  // Whether it is a leaf at all, every byte of it.
  bool is_valid() const { return is_valid_; }
  Finding Get(std::string_view key, std::string_view* value, uint64_t* delta) const;
  // Up to `limit` items from `key` on, below `hi`, unless that is null; views of the image. *bound:
  // the next one's key, if there is one; else it has no data. kAsk, too, if another leaf is needed.
  Finding Scan(std::string_view key, const std::string_view* hi, uint32_t limit,
               std::vector<Item>* items, std::string_view* bound) const;
  // Of the newest item.
  uint64_t newest_delta() const;

 private:
  bool Covers(std::string_view key) const;

  const btree::NodeHeader* node_;
  btree::NodeWord word_;
  btree::Codec codec_;
  bool is_valid_;
};

}  // namespace skep::leaves

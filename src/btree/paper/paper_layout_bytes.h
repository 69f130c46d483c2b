// paper_layout_bytes.h: the log items in a node of PaperLayout, and sizes of its parts.
//
//   header of a log item, one word: back pointer 16 (low) | order hint 8 | version delta 40 (high)
#pragma once

#include <cstdint>

#include "btree/node_field.h"

namespace skep::btree::paper {

using namespace field;

inline constexpr uint32_t kShortcutBegin = sizeof(NodeHeader);
inline constexpr uint32_t kOffsetBytes = 2;
inline constexpr uint32_t kLogItemHeaderBytes = 8;

// A view of an item of the log.
class LogItem {
 public:
  LogItem(const NodeHeader* node, uint32_t at)
      : node_(node),
        key_(at + kLogItemHeaderBytes),
        header_(Load<uint64_t>(node, at)),
        key_length_(Load<uint16_t>(node, key_)) {}

  uint32_t back_pointer() const { return header_ & 0xffff; }
  uint32_t order_hint() const { return (header_ >> 16) & 0xff; }
  uint64_t delta() const { return header_ >> 24; }
  bool deleted() const { return (key_length_ & kDeleted) != 0; }
  bool replaces() const { return (key_length_ & kReplaces) != 0; }
  StoredKey key() const {
    return {.bytes = BytesAt(node_, key_ + kLengthBytes, key_length_ & kLengthMask),
            .outside = (key_length_ & kOutside) != 0};
  }
  StoredValue value() const { return ValueAt(node_, after_key()); }  // unless deleted
  uint32_t end() const { return deleted() ? after_key() : AfterField(node_, after_key()); }

 private:
  uint32_t after_key() const { return key_ + kLengthBytes + (key_length_ & kLengthMask); }

  const NodeHeader* node_;
  uint32_t key_;
  uint64_t header_;
  uint16_t key_length_;
};

}  // namespace skep::btree::paper

// node.h: the header that every node buffer begins with, whatever its layout
// (Honeycomb, section 3.1). In the paper's layout:
//
//   0          48               512                                                8192
//   +----------+----------------+-----------------------------------+------------------+
//   |  header  | shortcut block |  fences | sorted block            | log block        |
//   +----------+----------------+-----------------------------------+------------------+
//
//   offset size  field
//      0     8   older        the previous buffer of this LID, or the LID this one was split from
//      8     8   left         leaf: left sibling; inner node: leftmost child    (a Link)
//     16     8   right        leaf: right sibling; inner node: unused           (a Link)
//     24     2   log_begin    end of the sorted block, boundary to the log
//     26     2   shortcut_end end of the shortcut block's used part; HeadLayout: of the items
//     28     1   level        0: leaf
//     29     1   units        length of the buffer, in units of 256 bytes: room for the content and
//                             the log that it may come to, not always a full node
//     30     2   sorted_count items of the sorted block
//     32     8   word         lock, sequence, state and bytes used; NodeWord
//     40     8   version      node version: of the write that made this buffer; UINT64_MAX: dead
//
// The fields that every search reads come last, so that a layout can put them into one cache line
// with its own: HeadLayout's nodes begin 32 bytes behind a line (Core::Node).
//
// Bytes before log_begin, and the fields version (but for the mark of death) and log_begin to
// sorted_count, are written once, before the buffer is mapped; but not a leaf's deadline, nor what
// HeadLayout keeps of the log there. Changed later are word, older, left and right, all aligned
// 8-byte atomics, and log bytes beyond those that `word` says are used, which no reader looks at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "btree/geometry.h"
#include "btree/link.h"
#include "skep/batch.h"

namespace skep::btree {

// The parts of NodeHeader::word:
//    63         62        61            32 31         1  0
//   +----------+---------+----------------+------------+---+   L: a writer holds the node
//   | retired  | replaced|   bytes used   |  sequence  | L |   replaced: a newer buffer has the LID
//   +----------+---------+----------------+------------+---+   retired: the LID is out of the tree
// The sequence of a dead buffer has no use any more; its two highest bits are the freer's marks
// (reclaim.h).
struct NodeWord {
  uint64_t bits = 0;
  static constexpr uint64_t kLocked = 1;
  static constexpr uint64_t kRetired = uint64_t{1} << 63;
  static constexpr uint64_t kReplaced = uint64_t{1} << 62;
  static constexpr uint64_t kDead = kRetired | kReplaced | kLocked;  // the word of freed memory
  static constexpr uint64_t kKept = uint64_t{1} << 31;  // replaced; a snapshot needs it
  // Retired; snapshots need only its older buffers.
  static constexpr uint64_t kHollow = uint64_t{1} << 30;
  static NodeWord Of(uint32_t used, uint32_t sequence) {
    return {uint64_t{used} << 32 | uint64_t{sequence & 0x7fffffff} << 1};
  }

  bool locked() const { return (bits & kLocked) != 0; }
  bool retired() const { return (bits & kRetired) != 0; }
  bool replaced() const { return (bits & kReplaced) != 0; }
  // Whether the buffer was replaced or its node has left the tree: nobody may change it any more.
  bool dead() const { return (bits & (kRetired | kReplaced)) != 0; }
  // The lower 16 bits are bytes; the meaning of those above is the layout's own.
  uint32_t used() const { return static_cast<uint32_t>(bits >> 32) & 0x3fffffff; }
  uint32_t bytes_used() const { return used() & 0xffff; }
  uint32_t sequence() const { return static_cast<uint32_t>(bits >> 1) & 0x7fffffff; }
};

struct NodeHeader {
  static constexpr Version kDead = UINT64_MAX;

  std::atomic<uint64_t> older;
  std::atomic<uint64_t> left;
  std::atomic<uint64_t> right;
  uint16_t log_begin;
  uint16_t shortcut_end;
  uint8_t level;
  uint8_t units;
  uint16_t sorted_count;
  std::atomic<uint64_t> word;
  std::atomic<Version> version;

  bool is_leaf() const { return level == 0; }
  size_t buffer_bytes() const { return size_t{units} * 256; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(this); }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(this); }
};
// The node in a buffer of a layout that has `front_bytes` bytes before the node.
inline NodeHeader* NodeIn(std::byte* buffer, uint32_t front_bytes) {
  return reinterpret_cast<NodeHeader*>(buffer + front_bytes);
}
static_assert(sizeof(NodeHeader) == 48);
static_assert(offsetof(NodeHeader, left) == 8);
static_assert(offsetof(NodeHeader, right) == 16);
static_assert(offsetof(NodeHeader, log_begin) == 24);
static_assert(offsetof(NodeHeader, sorted_count) == 30);
static_assert(offsetof(NodeHeader, word) == 32);
static_assert(offsetof(NodeHeader, version) == 40);
static_assert(Geometry{}.body_begin() == 512);
static_assert(Geometry{}.shortcut_bytes() == 464);
static_assert(Geometry{}.key_inline_max() == 460);
static_assert(Geometry{}.value_inline_max() == 469);
static_assert(sizeof(std::atomic<uint64_t>) == 8);

}  // namespace skep::btree

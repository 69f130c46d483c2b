// geometry.h: the sizes of a node, and the bounds that follow from them (Honeycomb, section 3.1).
#pragma once

#include <cstdint>

namespace skep::btree {

// The constants of the paper are those of the default size; node.h asserts them. Thread safety: a
// value.
struct Geometry {
  uint32_t node_bytes = 8192;  // of a full node; a power of two, 2048 to 32768
  // A leaf whose log would become longer is merged; 0: with every write. The default is the
  // paper's; BtreeOptions has its own.
  uint32_t log_bytes_max = 512;
  uint32_t segment_bytes_min = 256;  // of a segment: the sorted block between two shortcuts

  static constexpr uint32_t kBufferBytesMax = 32768;

  // Bytes of header and shortcut block together, which a reader fetches at once.
  constexpr uint32_t body_begin() const { return node_bytes / 16; }
  constexpr uint32_t shortcut_bytes() const { return body_begin() - 48; }
  // Offset of the fences: they come after the deadline word (paper_layout.h).
  constexpr uint32_t fences_begin() const { return body_begin() + 8; }
  // The longest key in the node: with its length and offset it fills the shortcut block exactly.
  constexpr uint32_t key_inline_max() const { return shortcut_bytes() - 4; }
  constexpr uint32_t value_inline_max() const { return key_inline_max() + 9; }  // with metadata
  // Bytes of a longer key that the node holds, before size and address of its rest (12 bytes).
  constexpr uint32_t long_key_head_bytes() const { return key_inline_max() - 12; }
  // Most bytes of an inner node: with the bytes that a layout puts before it, it fits an arena
  // slot.
  constexpr uint32_t inner_bytes_max() const {
    return node_bytes < kBufferBytesMax ? node_bytes : kBufferBytesMax - 64;
  }
  // A node that has fewer bytes after a merge is joined with a sibling.
  constexpr uint32_t underflow_bytes() const { return node_bytes / 4; }
  // Two siblings that fit into so many bytes become one.
  constexpr uint32_t join_bytes_max() const { return node_bytes * 7 / 10; }

  constexpr bool IsValid() const {
    return node_bytes >= 2048 && node_bytes <= 32768 && (node_bytes & (node_bytes - 1)) == 0 &&
           log_bytes_max <= node_bytes / 4 && segment_bytes_min >= 16 &&
           segment_bytes_min <= node_bytes / 4;
  }
};

}  // namespace skep::btree

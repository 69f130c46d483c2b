// geometry.h: the sizes of a node, and what follows from them (Honeycomb, section 3.1).
#pragma once

#include <cstdint>

namespace skep::btree {

// The paper's numbers are those of the default; each is also a static_assert in node.h. Thread
// safety: a value.
struct Geometry {
  uint32_t node_bytes = 8192;        // of a full node; a power of two, 2048 to 32768
  uint32_t log_bytes_max = 512;      // a log block larger than this is merged; 0: always. The
                                     // paper's; BtreeOptions has its own default
  uint32_t segment_bytes_min = 256;  // of the sorted block, between two shortcuts

  static constexpr uint32_t kBufferBytesMax = 32768;

  // Header and shortcut block together: one fetch, 512 bytes.
  constexpr uint32_t body_begin() const { return node_bytes / 16; }
  constexpr uint32_t shortcut_bytes() const { return body_begin() - 48; }
  // After the deadline word of a node (paper_layout.h).
  constexpr uint32_t fences_begin() const { return body_begin() + 8; }
  // One largest key, its length and its offset fill the shortcut block exactly.
  constexpr uint32_t key_inline_max() const { return shortcut_bytes() - 4; }
  constexpr uint32_t value_inline_max() const { return key_inline_max() + 9; }  // with metadata
  // What a longer key keeps in the node, before the size and address of its rest (12 bytes).
  constexpr uint32_t long_key_head_bytes() const { return key_inline_max() - 12; }
  // Of an inner node: with what a layout has before it, it still has a slot in the arena.
  constexpr uint32_t inner_bytes_max() const {
    return node_bytes < kBufferBytesMax ? node_bytes : kBufferBytesMax - 64;
  }
  // After a merge, a node with less in it than this is joined with a sibling.
  constexpr uint32_t underflow_bytes() const { return node_bytes / 4; }
  // Two siblings become one if they fit into this.
  constexpr uint32_t join_bytes_max() const { return node_bytes * 7 / 10; }

  constexpr bool IsValid() const {
    return node_bytes >= 2048 && node_bytes <= 32768 && (node_bytes & (node_bytes - 1)) == 0 &&
           log_bytes_max <= node_bytes / 4 && segment_bytes_min >= 16 &&
           segment_bytes_min <= node_bytes / 4;
  }
};

}  // namespace skep::btree

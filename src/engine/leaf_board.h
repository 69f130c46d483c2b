// leaf_board.h: what a tree that is shared (BtreeOptions::shared) shows to readers in other
// processes, beside its rows and its nodes. netindex/leaves/leaf_reader.h tells how they use it.
//
//   offset  size  field
//        0     8  magic      "SKEPLVS2"
//        8     8  instance   of the server's process (ServerHello::instance)
//       16     8  layout, node_bytes
//       64     8  released   the gate of replies: ReleaseGate::ShowIn
//       72     8  synced     the same of the gate for writes that survive a power loss
//       80     8  syncs      1: replies wait for the second one
//       88     8  detached   subtrees detached so far, 32 bits | nodes of these without a mark, 32
//
// The first line is written before anybody maps the memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "skep/batch.h"

namespace skep {

struct alignas(64) LeafBoard {
  static constexpr uint64_t kMagic = 0x3253564c50454b53;
  static constexpr uint64_t kDetach = uint64_t{1} << 32;  // one of the first count of `detached`

  uint64_t magic = kMagic;
  uint64_t instance = 0;
  uint32_t layout = 0;  // NodeLayout
  uint32_t node_bytes = 0;
  alignas(64) std::atomic<Version> released{0};
  std::atomic<Version> synced{0};
  std::atomic<uint64_t> syncs{0};
  std::atomic<uint64_t> detached{0};
};
static_assert(sizeof(LeafBoard) == 128);
static_assert(offsetof(LeafBoard, released) == 64);
static_assert(offsetof(LeafBoard, detached) == 88);

}  // namespace skep

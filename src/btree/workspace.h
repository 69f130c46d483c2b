// workspace.h: memory that operations use one after the other, so that none of them allocates it.
//
// Each ThreadState has a workspace (versions.h), so it has one owner at a time, and is passed with
// it: an operation that merges a leaf builds the new one on the bench, and the change that replaces
// the leaf copies it from there. Nothing is kept here from one operation to the next.
//
// Memory: the part of the bench that was used once, some 8 KiB, and lists of at most some thousand
// keys or nodes.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "btree/atomic_lists.h"
#include "btree/change_lists.h"
#include "btree/geometry.h"
#include "btree/node.h"
#include "btree/stored.h"

namespace skep::btree {

struct Workspace {
  // At least the bytes of any node, with those that a layout puts before it.
  static constexpr size_t kBenchBytes = 40 * 1024;

  // Does not initialize the bench: pages that nobody has written take no memory.
  Workspace() {}  // NOLINT(modernize-use-equals-default,cppcoreguidelines-pro-type-member-init)

  // The memory in which a node is built before its size is known.
  NodeHeader* Bench(uint32_t front_bytes) { return NodeIn(bench.data(), front_bytes); }

  alignas(64) std::array<std::byte, kBenchBytes> bench;
  ChangeLists change;                  // the lists of the thread's last change, emptied
  AtomicLists atomic;                  // the lists of the thread's last atomic batch of points
  std::vector<OutsideBlock> replaced;  // blocks that the thread's last write has replaced
};
static_assert(Workspace::kBenchBytes >= Geometry::kBufferBytesMax + 64);

}  // namespace skep::btree

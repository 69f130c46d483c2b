// workspace.h: memory that operations use one after the other, so that none of them allocates it.
//
// Each ThreadState has a workspace (versions.h), so it has one owner at a time, and is passed with
// it: an operation that merges a leaf writes the new one on the bench, and the change that replaces
// the leaf copies it from there. Nothing is kept here from one operation to the next.
//
// Bytes: of the bench what was used once, some 8 KiB; and lists of at most some thousand keys or
// nodes.
#pragma once

#include <array>
#include <cstddef>

#include "btree/atomic_lists.h"
#include "btree/change_lists.h"
#include "btree/geometry.h"
#include "btree/node.h"

namespace skep::btree {

struct Workspace {
  // No node is longer than this, with what a layout has before it.
  static constexpr size_t kBenchBytes = 40 * 1024;

  // The bench is left as it is: pages that nobody has written take no memory.
  Workspace() {}  // NOLINT(modernize-use-equals-default,cppcoreguidelines-pro-type-member-init)

  // Where a node is built before its size is known.
  NodeHeader* Bench(uint32_t front_bytes) { return NodeIn(bench.data(), front_bytes); }

  alignas(64) std::array<std::byte, kBenchBytes> bench;
  ChangeLists change;  // of the thread's last change, empty
  AtomicLists atomic;  // of its last atomic batch of points
};
static_assert(Workspace::kBenchBytes >= Geometry::kBufferBytesMax + 64);

}  // namespace skep::btree

// merge_edits.h: merges of a leaf with edits that need not gather its items.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "btree/heads/replace_values.h"
#include "btree/leaf_edit.h"

namespace skep::btree {

// Builds what Layout::BuildLeaf would build of the items that a leaf has as of `used` and the
// edits, which ascend. Returns what Layout::MergeLeaf does; 0 also if the layout has no such way.
template <class Layout>
uint32_t MergeEdits(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                    std::span<const LeafEdit> edits, uint32_t bytes_max, NodeHeader* buffer) {
  uint32_t bytes = 0;
  if (edits.size() == 1) {
    const LeafEdit& edit = edits.front();
    bytes = Layout::MergeLeaf(codec, leaf, used, edit.stored_key,
                              edit.erase ? nullptr : &edit.value, bytes_max, buffer);
  }
  if constexpr (std::same_as<Layout, HeadLayout>) {
    if (bytes == 0) bytes = ReplaceValues(codec, leaf, used, edits, bytes_max, buffer);
  }
  return bytes;
}

}  // namespace skep::btree

// node_buffer.h: memory for nodes that a test builds outside of a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "btree/heads/head_layout.h"
#include "btree/node.h"

namespace skep::btree {

// Room for any node of HeadLayout, zeroed, so that the bytes that building does not write are equal
// in all.
class NodeBuffer {
 public:
  NodeBuffer() : bytes_(new uint64_t[5 * 1024]()) { new (node()) NodeHeader{}; }
  NodeHeader* node() {
    return NodeIn(reinterpret_cast<std::byte*>(bytes_.get()), HeadLayout::kFrontBytes);
  }

 private:
  std::unique_ptr<uint64_t[]> bytes_;
};

}  // namespace skep::btree

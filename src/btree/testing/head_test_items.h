// head_test_items.h: items for nodes of HeadLayout that tests build, and the heads that nodes have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/heads/head_layout_bytes.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {

// Keeps keys and values alive as long as a node is built of them.
class TestItems {
 public:
  explicit TestItems(TestStore& store) : store_(store) {}
  void Add(std::string_view key, std::string_view value = {}) {
    items_.push_back({store_.Key(key), store_.Value({.bytes = std::string(value)})});
  }
  operator std::span<const LeafItem>() const { return items_; }

 private:
  TestStore& store_;
  std::vector<LeafItem> items_;
};

inline std::vector<uint16_t> HeadsOf(const NodeHeader* node) {
  const uint16_t* const all = heads::HeadsOf(node, node->is_leaf());
  return {all, all + node->sorted_count};
}

}  // namespace skep::btree

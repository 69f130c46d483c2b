#include "bench/fat_btree/growing_tree.h"

#include <algorithm>
#include <utility>

namespace skep::bench {
namespace {

// Moves what is from `at` on out of the vector.
template <typename T>
std::vector<T> TakeFrom(std::vector<T>& from, size_t at) {
  const auto begin = from.begin() + static_cast<ptrdiff_t>(at);
  std::vector<T> taken(begin, from.end());
  from.erase(begin, from.end());
  return taken;
}

}  // namespace

GrowingTree::GrowingTree(size_t leaf_keys_max, size_t branches_max)
    : leaf_keys_max_(leaf_keys_max), branches_max_(branches_max) {
  Add({.keys = {}, .children = {}, .is_fixed = true});
}

void GrowingTree::Insert(uint64_t key) {
  std::vector<Id> path = PathTo(key);
  auto& keys = nodes_[path.back()].keys;
  keys.insert(std::ranges::lower_bound(keys, key), key);
  while (IsTooLarge(path.back())) {
    const Id id = path.back();
    if (nodes_[id].is_fixed) {
      PushDown(id);
      Split(id, nodes_[id].children.front());
      return;
    }
    path.pop_back();
    Split(path.back(), id);
  }
}

GrowingTree::Id GrowingTree::LeafOf(uint64_t key) const { return PathTo(key).back(); }

uint32_t GrowingTree::LevelsFrom(Id id, uint64_t key) const {
  uint32_t levels = 1;
  for (; !nodes_[id].children.empty(); ++levels) {
    id = nodes_[id].children[ChildOf(nodes_[id], key)];
  }
  return levels;
}

netindex::IndexTree GrowingTree::Index(std::span<const uint64_t> accessed) const {
  std::vector<uint64_t> hits(nodes_.size());
  for (const uint64_t key : accessed) ++hits[LeafOf(key)];
  netindex::IndexTree tree;
  tree.roots.push_back(AddTo(tree, kRoot, 0, hits));
  return tree;
}

size_t GrowingTree::ChildOf(const Node& node, uint64_t key) {
  return static_cast<size_t>(std::ranges::upper_bound(node.keys, key) - node.keys.begin());
}

bool GrowingTree::IsTooLarge(Id id) const {
  const Node& node = nodes_[id];
  return node.children.empty() ? node.keys.size() > leaf_keys_max_
                               : node.children.size() > branches_max_;
}

GrowingTree::Id GrowingTree::Add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<Id>(nodes_.size() - 1);
}

std::vector<GrowingTree::Id> GrowingTree::PathTo(uint64_t key) const {
  std::vector<Id> path = {kRoot};
  while (!nodes_[path.back()].children.empty()) {
    const Node& node = nodes_[path.back()];
    path.push_back(node.children[ChildOf(node, key)]);
  }
  return path;
}

void GrowingTree::Split(Id parent, Id child) {
  nodes_[child].is_retired = true;
  Node left{.keys = std::move(nodes_[child].keys), .children = std::move(nodes_[child].children)};
  const bool is_leaf = left.children.empty();
  const size_t half = (is_leaf ? left.keys.size() : left.children.size()) / 2;
  const uint64_t separator = is_leaf ? left.keys[half] : left.keys[half - 1];
  Node right{.keys = TakeFrom(left.keys, half), .children = {}};
  if (!is_leaf) {
    right.children = TakeFrom(left.children, half);
    left.keys.pop_back();  // the separator goes up
  }
  const Id left_id = Add(std::move(left)), right_id = Add(std::move(right));
  Node& above = nodes_[parent];
  const size_t at = ChildOf(above, separator);
  above.keys.insert(above.keys.begin() + static_cast<ptrdiff_t>(at), separator);
  above.children[at] = left_id;
  above.children.insert(above.children.begin() + static_cast<ptrdiff_t>(at) + 1, right_id);
}

void GrowingTree::PushDown(Id id) {
  const Id fresh =
      Add({.keys = std::move(nodes_[id].keys), .children = std::move(nodes_[id].children)});
  nodes_[id].keys.clear();
  nodes_[id].children = {fresh};
  if (id != kRoot) ++pushed_down_;
}

uint32_t GrowingTree::AddTo(netindex::IndexTree& tree, Id id, uint64_t pivot,
                            std::span<const uint64_t> hits) const {
  const Node& node = nodes_[id];
  netindex::IndexNode made{.pivot = pivot, .address = id + 1ull, .hits = hits[id]};
  for (size_t i = 0; i < node.children.size(); ++i) {
    const uint64_t child_pivot = i == 0 ? pivot : node.keys[i - 1] - 1;
    made.children.push_back(AddTo(tree, node.children[i], child_pivot, hits));
    made.hits += tree.nodes[made.children.back()].hits;
  }
  tree.nodes.push_back(std::move(made));
  return static_cast<uint32_t>(tree.nodes.size() - 1);
}

}  // namespace skep::bench

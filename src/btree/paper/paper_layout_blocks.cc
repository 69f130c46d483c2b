// Lists the outside blocks of a node of PaperLayout.

#include <algorithm>

#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

// The offsets of the items that a later log item replaces, ascending.
std::vector<uint32_t> ReplacedItems(const NodeHeader* node, uint32_t used) {
  std::vector<uint32_t> replaced;
  for (uint32_t at = node->log_begin; at < used;) {
    const paper::LogItem item(node, at);
    if (item.replaces()) replaced.push_back(item.back_pointer());
    at = item.end();
  }
  std::ranges::sort(replaced);
  return replaced;
}

}  // namespace

void PaperLayout::BlocksOf(const Codec& codec, const NodeHeader* node, uint32_t used,
                           std::vector<OutsideBlock>* blocks) {
  const Fences fences = FencesOf(codec, node);
  AddBlock(fences.lower, blocks);
  if (!fences.unbounded) AddBlock(fences.upper, blocks);
  const std::vector<uint32_t> replaced = ReplacedItems(node, used);
  const auto add_value = [&](uint32_t item, const StoredValue& value) {
    if (value.outside && !std::ranges::binary_search(replaced, item)) {
      blocks->push_back(BlockOf(value));
    }
  };
  for (paper::SortedPosition at(codec, node); !at.at_end(); at.Next()) {
    AddBlock(at.key(), blocks);
    if (node->is_leaf()) add_value(at.offset(), paper::ValueAt(node, at.payload()));
  }
  for (uint32_t at = node->log_begin; at < used;) {
    const paper::LogItem item(node, at);
    AddBlock(item.key(), blocks);
    if (!item.deleted()) add_value(at, item.value());
    at = item.end();
  }
}

bool PaperLayout::HasOutsideKeys(const Codec& codec, const NodeHeader* leaf, uint32_t used) {
  for (paper::SortedPosition at(codec, leaf); !at.at_end(); at.Next()) {
    if (at.key().outside) return true;
  }
  for (uint32_t at = leaf->log_begin; at < used;) {
    const paper::LogItem item(leaf, at);
    if (item.key().outside) return true;
    at = item.end();
  }
  return false;
}

}  // namespace skep::btree

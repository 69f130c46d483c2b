// Reads inner nodes, and the fences of all nodes.

#include "btree/paper/paper_layout.h"

namespace skep::btree {

using paper::SortedPosition;

PaperLayout::Inner::Inner(const Codec& codec, const NodeHeader* node)
    : codec_(&codec), node_(node) {}

Link PaperLayout::Inner::ChildOf(std::string_view key, uint32_t* index) const {
  SortedPosition at(*codec_, node_);
  const bool found = at.SeekAtMost(key);
  return ChildAt(at, found, index);
}

Link PaperLayout::Inner::ChildBelow(std::string_view key, uint32_t* index) const {
  SortedPosition at(*codec_, node_);
  at.SeekAtLeast(key);
  const bool found = at.PreviousOffset() != 0;
  if (found) at.Previous();
  return ChildAt(at, found, index);
}

Link PaperLayout::Inner::rightmost() const {
  SortedPosition at(*codec_, node_);
  at.SeekEnd();
  const bool found = at.PreviousOffset() != 0;
  if (found) at.Previous();
  return ChildAt(at, found, nullptr);
}

Link PaperLayout::Inner::ChildAt(const SortedPosition& at, bool found, uint32_t* index) const {
  if (index != nullptr) {
    *index = found ? 1 : 0;
    for (SortedPosition walk(*codec_, node_); walk.offset() < at.offset(); walk.Next()) ++*index;
  }
  return found ? paper::Load<Link>(node_, at.payload()) : leftmost();
}

void PaperLayout::Inner::CopyTo(std::vector<InnerItem>* items) const {
  items->clear();
  items->reserve(count());
  for (SortedPosition at(*codec_, node_); !at.at_end(); at.Next()) {
    items->push_back({.separator = at.key(), .child = paper::Load<Link>(node_, at.payload())});
  }
}

uint32_t PaperLayout::InnerBytesOf(const Codec& codec, const NodeHeader* inner) {
  std::vector<InnerItem> items;
  Inner(codec, inner).CopyTo(&items);
  return InnerBytes(codec, items, FencesOf(codec, inner));
}

PaperLayout::Fences PaperLayout::FencesOf(const Codec& codec, const NodeHeader* node) {
  return paper::FencesAt(node, codec.geometry.fences_begin());
}

bool PaperLayout::Covers(const Codec& codec, const NodeHeader* node, std::string_view key) {
  return FencesOf(codec, node).Cover(codec, key);
}

}  // namespace skep::btree

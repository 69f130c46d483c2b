// head_layout_build.h: the functions that building and merging nodes of HeadLayout share.
#pragma once

#include "btree/heads/head_layout.h"

namespace skep::btree::heads {

// The form of a node with `count` sorted keys, `first` to `last` (own bytes), without an item form.
Form MakeForm(const Codec& codec, std::string_view first, std::string_view last, uint32_t count,
              const Fences& fences);
// Writes the form, and an empty front.
void PutForm(NodeHeader* node, const Form& form);
// Sets the parts of a leaf's header that its log changes, for an empty log.
void PutEmptyLog(NodeHeader* leaf, uint64_t deadline_ms);
// Fills up the array of heads and takes the samples. The node has its level and number of items.
void FinishHeads(NodeHeader* node);

// Whether a leaf of `items` items in one form, `bytes` long, can be split in two when each item
// needs a form of its own.
bool HasRoomForForms(const Geometry& geometry, uint32_t bytes, uint32_t items);

inline bool MakesEqualHeads(const Form& a, const Form& b) {
  return a.base == b.base && a.shift == b.shift && a.prefix == b.prefix;
}

inline uint16_t* NumbersAt(NodeHeader* node, uint32_t at) {
  return reinterpret_cast<uint16_t*>(node->bytes() + at);
}

}  // namespace skep::btree::heads

// head_layout_build.h: the functions that building and merging nodes of HeadLayout share.
#pragma once

#include <bit>
#include <string_view>

#include "btree/heads/head_layout.h"

namespace skep::btree::heads {

// The form of a node with `count` sorted keys, `first` to `last` (own bytes), without an item form
// and a mask.
Form MakeForm(const Codec& codec, std::string_view first, std::string_view last, uint32_t count,
              const Fences& fences);
// Gives the form its mask, and the shift with which the head of `last` still fits.
void SetMask(Form* form, uint64_t mask, std::string_view last);

// The bits in which the words of a node's `count` keys differ; there are at least two keys, and
// key(i) gives the own bytes of one. Keys rise, so the highest of these bits is one in which the
// first and the last differ. Cost: of binary keys only the first few are looked at, as they differ
// in all lower bits.
template <class KeyAt>
uint64_t MaskOf(const Form& form, uint32_t count, KeyAt key) {
  uint64_t mask = WordAt(key(count - 1), form.prefix) ^ form.base;
  const uint64_t most = mask == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(mask);
  for (uint32_t i = 1; i + 1 < count && mask != most; ++i) {
    mask |= WordAt(key(i), form.prefix) ^ form.base;
  }
  return mask;
}
// Makes the whole form of a node with `count` sorted keys, and puts their heads to `to`.
template <class KeyAt>
Form PutHeads(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key, uint16_t* to) {
  if (count == 0) return MakeForm(codec, {}, {}, 0, fences);
  const std::string_view last = key(count - 1);
  Form form = MakeForm(codec, key(0), last, count, fences);
  if (count > 1) SetMask(&form, MaskOf(form, count, key), last);
  for (uint32_t i = 0; i < count; ++i) to[i] = Scale(form, WordAt(key(i), form.prefix));
  return form;
}
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
  return a.base == b.base && a.mask == b.mask && a.shift == b.shift && a.prefix == b.prefix;
}

inline uint16_t* NumbersAt(NodeHeader* node, uint32_t at) {
  return reinterpret_cast<uint16_t*>(node->bytes() + at);
}

}  // namespace skep::btree::heads

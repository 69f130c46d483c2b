// head_layout_build.h: the functions that building and merging nodes of HeadLayout share.
#pragma once

#include <bit>
#include <string_view>

#include "btree/heads/head_layout.h"

namespace skep::btree::heads {

// The form of a node with `count` sorted keys, `first` to `last` (own bytes), without an item form,
// with the words as they are in the keys and without a mask.
Form MakeForm(const Codec& codec, std::string_view first, std::string_view last, uint32_t count,
              const Fences& fences);
// Gives the form its mask, as keys' words differ in the bits `differing`, and the shift with which
// the head of `last` just fits.
void SetMask(Form* form, uint64_t differing, std::string_view last);
// Makes words of letters next to digits.
inline void Squeeze(Form* form) {
  form->squeezes = 1;
  form->base = SqueezeLetters(form->base);
}
// Whether words that differ in these bits may be digits and letters.
inline bool MayHaveLetters(uint64_t mask) { return (mask & 0x4040404040404040) != 0; }

// The bits in which the words of a node's `count` keys differ; there are at least two keys, and
// key(i) gives the own bytes of one. Keys rise, so the highest of these bits is one in which the
// first and the last differ. Cost: of binary keys only the first few are looked at, as they differ
// in all lower bits.
template <class KeyAt>
uint64_t MaskOf(const Form& form, uint32_t count, KeyAt key) {
  uint64_t mask = WordOf(form, key(count - 1)) ^ form.base;
  const uint64_t most = mask == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(mask);
  for (uint32_t i = 1; i + 1 < count && mask != most; ++i) {
    mask |= WordOf(form, key(i)) ^ form.base;
  }
  return mask;
}

// The whole form of a node with `count` sorted keys.
template <class KeyAt>
Form FormOfKeys(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key) {
  if (count == 0) return MakeForm(codec, {}, {}, 0, fences);
  const std::string_view last = key(count - 1);
  Form form = MakeForm(codec, key(0), last, count, fences);
  if (count == 1) return form;
  uint64_t mask = MaskOf(form, count, key);
  uint32_t hexadecimal = 0;
  if (MayHaveLetters(mask)) {
    while (hexadecimal < count && IsHexadecimal(WordOf(form, key(hexadecimal)))) ++hexadecimal;
  }
  if (hexadecimal == count) {
    Squeeze(&form);
    mask = MaskOf(form, count, key);
  }
  SetMask(&form, mask, last);
  return form;
}

// FormOfKeys for a node that has the keys of a node of form `before` and `added` other ones, of
// which added_key(i) gives one. Cost: of text often a look at the added keys alone.
template <class KeyAt, class AddedKeyAt>
Form FormOfGrown(const Codec& codec, const Form& before, uint32_t count, const Fences& fences,
                 KeyAt key, uint32_t added, AddedKeyAt added_key) {
  const auto make_anew = [&] { return FormOfKeys(codec, count, fences, key); };
  if (before.count < 2 || before.mask == kAllBits) return make_anew();
  const std::string_view last = key(count - 1);
  Form form = MakeForm(codec, key(0), last, count, fences);
  if (form.prefix != before.prefix) return make_anew();
  uint64_t mask = before.mask;
  bool is_hexadecimal = before.squeezes;
  if (before.squeezes) Squeeze(&form);
  for (uint32_t i = 0; i < added; ++i) {
    const std::string_view one = added_key(i);
    mask |= WordOf(before, one) ^ before.base;
    is_hexadecimal = is_hexadecimal && IsHexadecimal(WordAt(one, form.prefix));
  }
  // The keys that made the words what they are have not gone.
  const bool has_new_letters = MayHaveLetters(mask) && !MayHaveLetters(before.mask);
  if (before.squeezes ? !is_hexadecimal : has_new_letters) return make_anew();
  SetMask(&form, mask, last);
  return form;
}

// Makes the form of a node with `count` sorted keys, and puts their heads to `to`.
template <class KeyAt>
Form PutHeads(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key, uint16_t* to) {
  const Form form = FormOfKeys(codec, count, fences, key);
  for (uint32_t i = 0; i < count; ++i) to[i] = HeadOf(form, key(i));
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
  return a.base == b.base && a.mask == b.mask && a.shift == b.shift && a.squeezes == b.squeezes &&
         a.prefix == b.prefix;
}

inline uint16_t* NumbersAt(NodeHeader* node, uint32_t at) {
  return reinterpret_cast<uint16_t*>(node->bytes() + at);
}

}  // namespace skep::btree::heads

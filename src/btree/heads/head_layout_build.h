// head_layout_build.h: the functions that building and merging nodes of HeadLayout share.
#pragma once

#include <bit>
#include <string_view>

#include "btree/heads/head_layout.h"

namespace skep::btree::heads {

// The form of a node with `count` sorted keys, `first` to `last` (own bytes), without an item form,
// with the words as they are in the keys and with all bits in the mask.
Form MakeForm(const Codec& codec, std::string_view first, std::string_view last, uint32_t count,
              const Fences& fences);
// The most bytes that a form takes as the prefix of all keys: so many that the 8 bytes behind it
// lie within the bytes that the node has of outside keys.
inline uint32_t PrefixMax(const Codec& codec) {
  return std::min(255u, codec.geometry.long_key_head_bytes() - 8);
}
// Gives the form the mask with the fewest bits that has all of `differing`, in which the words of
// the keys differ; but all bits if it leaves out none between the highest and the lowest.
void ChooseMask(Form* form, uint64_t differing);
// Gives the form the shift with which the head of `last`, the greatest key, just fits.
void SetShift(Form* form, std::string_view last);
// Makes words of letters next to digits.
inline void Squeeze(Form* form) {
  form->squeezes = 1;
  form->base = SqueezeLetters(form->base);
}
// Whether words that differ in these bits may be digits and letters.
inline bool MayHaveLetters(uint64_t differing) { return (differing & 0x4040404040404040) != 0; }

// The bits in which the words of a node's `count` keys differ; there are at least two keys, and
// key(i) gives the own bytes of one. Keys rise, so the highest of these bits is one in which the
// first and the last differ. Cost: of binary keys only the first few are looked at, as they differ
// in all lower bits.
template <class KeyAt>
uint64_t DifferingBits(const Form& form, uint32_t count, KeyAt key) {
  uint64_t differing = WordOf(form, key(count - 1)) ^ form.base;
  const uint64_t most = differing == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(differing);
  for (uint32_t i = 1; i + 1 < count && differing != most; ++i) {
    differing |= WordOf(form, key(i)) ^ form.base;
  }
  return differing;
}

// The whole form of a node with `count` sorted keys.
template <class KeyAt>
Form FormOfKeys(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key) {
  if (count == 0) return MakeForm(codec, {}, {}, 0, fences);
  const std::string_view last = key(count - 1);
  Form form = MakeForm(codec, key(0), last, count, fences);
  if (count == 1) return form;
  uint64_t differing = DifferingBits(form, count, key);
  uint32_t hexadecimal = 0;
  if (MayHaveLetters(differing)) {
    while (hexadecimal < count && IsHexadecimal(WordOf(form, key(hexadecimal)))) ++hexadecimal;
  }
  if (hexadecimal == count) {
    Squeeze(&form);
    differing = DifferingBits(form, count, key);
  }
  ChooseMask(&form, differing);
  SetShift(&form, last);
  return form;
}

// FormOfKeys for a node that has the keys of a node of form `before` and `added` other ones, of
// which added_key(i) gives one. Cost: of text often a look at the added keys alone.
template <class KeyAt, class AddedKeyAt>
Form FormOfGrown(const Codec& codec, const Form& before, uint32_t count, const Fences& fences,
                 KeyAt key, uint32_t added, AddedKeyAt added_key) {
  const auto make_anew = [&] { return FormOfKeys(codec, count, fences, key); };
  if (before.count < 2 || HasAllBits(before) || HasChosenBits(before)) return make_anew();
  const std::string_view last = key(count - 1);
  Form form = MakeForm(codec, key(0), last, count, fences);
  if (form.prefix != before.prefix) return make_anew();
  const uint64_t others = ~MaskOf(before);
  for (uint32_t i = 0; i < added; ++i) {
    const std::string_view one = added_key(i);
    if (((WordOf(before, one) ^ before.base) & others) != 0) return make_anew();
    if (before.squeezes && !IsHexadecimal(WordAt(one, form.prefix))) return make_anew();
  }
  // The keys that made the words and the mask what they are have not gone.
  if (before.squeezes) Squeeze(&form);
  form.wide = before.wide;
  form.narrow = before.narrow;
  form.wide_bytes = before.wide_bytes;
  SetShift(&form, last);
  return form;
}

// Makes the form of a node with `count` sorted keys, and puts their heads to `to`.
template <class KeyAt>
Form PutHeads(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key, uint16_t* to) {
  const Form form = FormOfKeys(codec, count, fences, key);
  for (uint32_t i = 0; i < count; ++i) to[i] = HeadOf(form, key(i));
  return form;
}

// The discriminative bits of a leaf's `count` sorted keys (> 1), of which key(i) gives the own
// bytes.
template <class KeyAt>
DiscriminativeBits DiscriminativeBitsOf(const Codec& codec, uint32_t count, KeyAt key) {
  const uint32_t begin = std::min(CommonPrefix(key(0), key(count - 1)), PrefixMax(codec));
  DiscriminativeBits::Chooser chooser(begin, codec.geometry.long_key_head_bytes() - begin);
  for (uint32_t i = 1; i < count; ++i) chooser.Add(key(i - 1), key(i));
  return chooser.Choose();
}

// How many of the heads equal the one before.
uint32_t CountAlike(const uint16_t* all, uint32_t count);
// A leaf keeps the heads of its form if no more than one in so many equals the one before.
inline constexpr uint32_t kAlikeShare = 8;

// Makes heads of discriminative bits instead, if many of a leaf's heads are alike and of those at
// most half as many. Cost: a few instructions for each 8 heads; where many are alike, of each key
// a comparison with the one before and its head.
template <class KeyAt>
void TellAlikeApart(const Codec& codec, uint32_t count, KeyAt key, Form* form, uint16_t* to) {
  if (count < 2 || HasChosenBits(*form)) return;
  const uint32_t alike = CountAlike(to, count);
  if (kAlikeShare * alike <= count) return;
  Form chosen = *form;
  TakeBits(DiscriminativeBitsOf(codec, count, key), &chosen);
  for (uint32_t i = 0; i < count; ++i) to[i] = HeadOf(chosen, key(i));
  if (2 * CountAlike(to, count) <= alike) {
    *form = chosen;
    return;
  }
  for (uint32_t i = 0; i < count; ++i) to[i] = HeadOf(*form, key(i));
}

// PutHeads for a leaf.
template <class KeyAt>
Form PutLeafHeads(const Codec& codec, uint32_t count, const Fences& fences, KeyAt key,
                  uint16_t* to) {
  Form form = PutHeads(codec, count, fences, key, to);
  TellAlikeApart(codec, count, key, &form, to);
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
  return a.base == b.base && a.wide == b.wide && a.narrow == b.narrow &&
         a.wide_bytes == b.wide_bytes && a.shift == b.shift && a.squeezes == b.squeezes &&
         a.prefix == b.prefix;
}

inline uint16_t* NumbersAt(NodeHeader* node, uint32_t at) {
  return reinterpret_cast<uint16_t*>(node->bytes() + at);
}

}  // namespace skep::btree::heads

// fence_words.h: makes a word of 64 bits of each key that tells the fences of a tree apart.
//
// All fences but the first, which is empty, begin with one prefix. Behind it text has many bits
// that are the same in every fence: of "abc/item/0123" and "xyz/item/4567" eight bytes are the same
// but for three. So a word is made of the bits that differ in some of the fences, the mask, of 32
// bytes behind the prefix, side by side, as many as find room; and of all bits of the bytes behind
// the longest fence.
//
// Words rise with the keys: a < b  =>  word(a) <= word(b). This holds for all keys, whatever the
// mask was made of. A key may differ from all fences, the base, in a bit outside the mask: let t be
// the highest such bit. Then the bits of the mask from t on are taken to be ones, if the key has a
// 1 at t, or zeros.
//
//   Proof. Let d be the highest bit in which a and b differ: a has a 0 there and b a 1. If one has
//   a bit t above d, both have the same, and equal words. Else, if d is in the mask, the words have
//   the same bits above d, and at d a 0 and a 1. Else the base has a 0 or a 1 at d: so for b, or
//   for a, t is d, and its word has ones, or zeros, from there on, and the same bits above as the
//   other's. Bits behind the last one of the mask, at which the base is not looked at, make no
//   difference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace skep::btree {

// Thread safety: a value.
class FenceWords {
 public:
  // The words of keys that do not begin with the prefix: the lowest one, if they are below it, and
  // the highest.
  static constexpr uint64_t kLowest = 0;
  static constexpr uint64_t kHighest = UINT64_MAX;

  // Words of the 8 bytes behind the prefix.
  explicit FenceWords(std::string prefix);
  // Words that tell these fences, of which all begin with the prefix, apart as well as can be.
  FenceWords(std::string prefix, std::span<const std::string> fences);

  // Cost: of binary keys, a load; of text some twenty instructions for each 8 bytes of the mask.
  uint64_t Of(std::string_view key) const;

 private:
  static constexpr size_t kParts = 4;  // of 8 bytes
  struct Part {
    uint64_t base = 0;
    uint64_t mask = 0;
    uint64_t outside = 0;  // the bits outside the mask that are those of the base
  };

  uint64_t OfParts(std::string_view key) const;

  std::string prefix_;
  std::array<Part, kParts> parts_;
  size_t used_ = 1;  // parts whose mask has bits, or have some behind them that do
};

}  // namespace skep::btree

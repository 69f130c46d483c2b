// discriminative_bits.h: heads made of the bits that tell the keys of a leaf apart, and no others.
//
// Some keys differ in two places, with a stretch between these in which they are alike, or
// differ in bits that tell none of them apart: of user:0123456789:email the number, and the
// name of the field. A head of the highest bits that differ ends in the number, so all fields
// of one user have one head. The discriminative bits of keys (HOT: Binna et al., SIGMOD 2018)
// are, of each two of them, the first bit in which they differ. Those of a leaf lie in few
// bytes, of which the word of a key has eight, in two parts:
//
//     begin        first_bytes            gap          8 - first_bytes
//   user:0123    4 5 6 7 8 9     :  (none tells apart)    em     ail
//                word's first bytes                       its others
//
// The head has the bits of the word that the mask has, side by side.
//
//   D1  The mask has all discriminative bits up to its last bit, and 16 bits at most.
//   D2  Of two keys of the leaf the lower one's head is not above the other's. The bits up to the
//       first one in which they differ are equal. If the mask has that bit, it orders the heads;
//       else, by D1, it lies behind the mask's last bit, and the heads are equal.
//
// Keys are padded with zeros here. A key and its continuation by zeros have no bit in which they
// differ, and equal heads.
//
// A key that is not in the leaf may differ from the keys there in any bit, so its head alone says
// nothing about its place. It is compared with one key of the leaf, the near one, whose head agrees
// with its own in the most bits. Let t be the first bit in which these two keys differ.
//
//   D3  If the mask has t or a bit behind it, all keys of the leaf whose heads agree with the near
//       key's in the bits before t have that key's bit at t, and no other bits before t than that
//       key: if the mask has t, since another one with the key's bit there would be the near one;
//       else, by D1, since no two keys of the leaf differ in t first. So the key is below all of
//       these, or above all.
//   D4  If t lies behind the mask's last bit, or there is none, the key's place is among the keys
//       with its head, or at an end of these, and comparing keys finds it.
//
// Evidence: discriminative_bits_test.cc looks for keys of many fronts, middles and backs, in the
// leaf or not, in every way of a search; head_layout_check_test.cc has leaves whose mask lacks a
// bit.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "btree/heads/extract_bits.h"
#include "btree/heads/key_word.h"

namespace skep::btree::heads {

// Thread safety: a value.
struct DiscriminativeBits {
  static constexpr uint32_t kWordBytes = 8;
  static constexpr uint32_t kGapMax = 63;
  // No byte of the word is further behind `begin`.
  static constexpr uint32_t kReach = kWordBytes + kGapMax;
  static constexpr int kHeadBits = 16;

  uint64_t mask = 0;
  uint32_t begin = 0;        // of the word's first bytes in a key
  uint32_t first_bytes = 8;  // 1 to 8
  uint32_t gap = 0;          // bytes of a key between the word's first bytes and its others

  // The head of a key. Cost: some twenty instructions.
  uint16_t HeadOf(std::string_view key) const {
    const uint64_t first = WordAt(key, begin);
    const uint64_t second = WordAt(key, begin + first_bytes + gap);
    const uint32_t others = 8 * (kWordBytes - first_bytes);
    const uint64_t word = (first >> others << others) | (second >> 8 * (first_bytes - 1) >> 8);
    return static_cast<uint16_t>(std::rotr(ExtractBits(word, 0, mask).first, std::popcount(mask)) >>
                                 (64 - kHeadBits));
  }

  // The first bit in which a key differs from another one.
  struct Difference {
    uint32_t head_bits;  // bits of a head that are before it
    bool is_behind;      // behind all bits of the head, or there is none
    bool is_below;       // the key is below the other one, if there is such a bit
  };
  // Cost: a few instructions for each 8 bytes that are equal.
  Difference FirstDifference(std::string_view key, std::string_view other) const;

  // The bits that tell keys apart, which are added in their order.
  class Chooser {
   public:
    // All keys have `begin` bytes in common. Bits from byte `reach` behind those on are not taken.
    Chooser(uint32_t begin, uint32_t reach) : begin_(begin), reach_(std::min(reach, kReach)) {}
    void Add(std::string_view below, std::string_view above) {
      for (uint32_t at = 0; at < reach_; at += 8) {
        const uint64_t differing = WordAt(below, begin_ + at) ^ WordAt(above, begin_ + at);
        if (differing == 0) continue;
        const auto bit = static_cast<uint32_t>(std::countl_zero(differing));
        const uint32_t byte = at + bit / 8;
        if (byte < reach_) bits_[byte] |= static_cast<uint8_t>(0x80 >> bit % 8);
        return;
      }
    }
    // The most of the bits that D1 allows.
    DiscriminativeBits Choose() const;

   private:
    // The byte at or behind `at` that has a bit; reach_ if none has.
    uint32_t NextByte(uint32_t at) const {
      while (at < reach_ && bits_[at] == 0) ++at;
      return at;
    }

    const uint32_t begin_;
    const uint32_t reach_;
    std::array<uint8_t, kReach + 2 * kWordBytes> bits_ = {};  // of each byte; no bits behind reach_
  };
};

inline DiscriminativeBits::Difference DiscriminativeBits::FirstDifference(
    std::string_view key, std::string_view other) const {
  const uint32_t second = begin + first_bytes + gap;
  const uint32_t end = second + (kWordBytes - first_bytes);
  for (uint32_t at = 0; at < end; at += 8) {
    const uint64_t word = WordAt(key, at);
    const uint64_t differing = word ^ WordAt(other, at);
    if (differing == 0) continue;
    const auto bit = static_cast<uint32_t>(std::countl_zero(differing));
    const uint32_t byte = at + bit / 8;
    // The bit's place in the word. Before the word or between its parts it is that of the next bit.
    uint32_t place = 0;
    if (byte >= second) {
      place = std::min(8 * (first_bytes + byte - second) + bit % 8, 64u);
    } else if (byte >= begin + first_bytes) {
      place = 8 * first_bytes;
    } else if (byte >= begin) {
      place = 8 * (byte - begin) + bit % 8;
    }
    const uint64_t from_there_on = place == 64 ? 0 : mask << place;
    return {.head_bits = static_cast<uint32_t>(std::popcount(mask) - std::popcount(from_there_on)),
            .is_behind = from_there_on == 0,
            .is_below = word < (word ^ differing)};
  }
  return {.head_bits = static_cast<uint32_t>(std::popcount(mask)),
          .is_behind = true,
          .is_below = false};
}

inline DiscriminativeBits DiscriminativeBits::Chooser::Choose() const {
  DiscriminativeBits best;
  int most = -1;
  for (uint32_t first_bytes = kWordBytes; first_bytes > 0; --first_bytes) {
    const uint32_t second = std::min(NextByte(first_bytes), first_bytes + kGapMax);
    uint64_t mask = 0;
    for (uint32_t i = 0; i < kWordBytes; ++i) {
      mask = mask << 8 | bits_[i < first_bytes ? i : second + i - first_bytes];
    }
    while (std::popcount(mask) > kHeadBits) mask &= mask - 1;
    if (std::popcount(mask) <= most) continue;
    most = std::popcount(mask);
    best = {.mask = mask, .begin = begin_, .first_bytes = first_bytes, .gap = second - first_bytes};
  }
  return best;
}

}  // namespace skep::btree::heads

// leaf_shape.h: what has to be known of a leaf to guess where in it an item lies.
#pragma once

#include <cstdint>

namespace skep::btree {

// The number of sorted items of a leaf whose items have all one size, and that size; 0: another
// leaf, or one with more or larger items.
struct LeafShape {
  // A share of the way from the leaf's lower fence to the next leaf's, of 1 << kShareBits.
  static constexpr uint32_t kShareBits = 16;
  static constexpr uint32_t kBits = 20;
  static constexpr uint32_t kMax = (1 << kBits / 2) - 1;
  uint32_t bits = 0;
  static LeafShape Of(uint32_t items, uint32_t item_bytes) {
    return {items <= kMax && item_bytes <= kMax ? items | item_bytes << kBits / 2 : 0};
  }
  uint32_t items() const { return bits & kMax; }
  uint32_t item_bytes() const { return bits >> kBits / 2; }
  explicit operator bool() const { return bits != 0; }
  // Whether a guess by this shape is about as good as one by the other.
  bool IsNear(LeafShape other) const {
    constexpr uint32_t kItems = 4;
    return item_bytes() == other.item_bytes() && items() + kItems >= other.items() &&
           other.items() + kItems >= items();
  }
};

}  // namespace skep::btree

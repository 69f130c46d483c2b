// range_query.h: what a range query by parts reads (Fat-B+Tree, IV-C).
//
// A range is cut into parts of equally many numbers, each of which finds its first leaf by itself
// and then reads on from leaf to leaf. Parts are read side by side, what a part reads is read one
// after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "bench/fat_btree/model_tree.h"

namespace skep::bench {

// The paper's arithmetic: reads by parts / reads in one part, where finding a part's first key
// takes `index` reads and each key one.
double OverheadOf(uint32_t parts, uint32_t index, uint32_t keys);

struct RangeReads {
  uint64_t reads = 0;   // of all parts
  uint64_t rounds = 0;  // of the part that takes longest
};

// `address_of` tells where a query for a key begins, 0 for the root. The range begins at the key at
// a place and has `keys` keys, all of them there.
RangeReads CountRange(const ModelTree& tree, std::span<const uint64_t> sorted, uint64_t place,
                      uint32_t keys, uint32_t parts,
                      const std::function<uint64_t(uint64_t)>& address_of);

}  // namespace skep::bench

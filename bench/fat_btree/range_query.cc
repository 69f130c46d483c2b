#include "bench/fat_btree/range_query.h"

#include <algorithm>

namespace skep::bench {
namespace {

// The reads of the part that has the places [begin, end) and begins at a number, which is in the
// leaf of the place in front of `begin` or in that of `begin`.
uint64_t ReadsOfPart(const ModelTree& tree, std::span<const uint64_t> sorted, uint64_t number,
                     uint64_t begin, uint64_t end, uint64_t address) {
  const uint64_t levels = tree.LevelsFrom(address, number);
  const uint64_t to_leaf = std::max<uint64_t>(levels - tree.value_levels(), 1);
  const bool is_at_key = begin < end && sorted[begin] == number;
  const uint64_t first_leaf = (is_at_key || begin == 0 ? begin : begin - 1) / tree.leaf_keys();
  const uint64_t last_leaf = begin == end ? first_leaf : (end - 1) / tree.leaf_keys();
  return to_leaf + (last_leaf - first_leaf) + (end - begin) * tree.value_levels();
}

}  // namespace

double OverheadOf(uint32_t parts, uint32_t index, uint32_t keys) {
  return static_cast<double>(parts * index + keys) / static_cast<double>(index + keys);
}

RangeReads CountRange(const ModelTree& tree, std::span<const uint64_t> sorted, uint64_t place,
                      uint32_t keys, uint32_t parts,
                      const std::function<uint64_t(uint64_t)>& address_of) {
  const uint64_t first = sorted[place], width = sorted[place + keys - 1] - first + 1;
  const auto place_of = [&](uint64_t number) {
    return static_cast<uint64_t>(std::ranges::lower_bound(sorted, number) - sorted.begin());
  };
  RangeReads all;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t number = first + width / parts * part;
    const uint64_t next = part + 1 == parts ? first + width : number + width / parts;
    const uint64_t reads =
        ReadsOfPart(tree, sorted, number, place_of(number), place_of(next), address_of(number));
    all.reads += reads;
    all.rounds = std::max(all.rounds, reads);
  }
  return all;
}

}  // namespace skep::bench

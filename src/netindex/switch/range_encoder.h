// range_encoder.h: encodes ranges of wide numbers as tables that match a few bits (Fat-B+Tree,
// Algorithm 1).
//
// A table of stage s divides the numbers with the same first s chunks by their next chunk. Each
// value of that chunk is a block of numbers. If a block lies in one range, the range is its result;
// else a table of the next stage is. Neighbours with the same result are one entry. Blocks of the
// last stage are single numbers, so they always lie in one range.
//
// The algorithm of the paper visits every block. Here the blocks inside a range are skipped: only
// those with a border in them are visited, which are at most n a stage, and each is found by a
// binary search: n log n.
//
// Bounds, of n ranges. A stage has at most n tables (n - 1 borders, each in one block of the stage
// before), but stage 0 has one. In a table with b borders inside there are at most b blocks with a
// border, and b + 1 runs: at most 2 b + 1 entries, so 3 b in the middle stages; in stage 0 and the
// last one 2 n. (In the last one a border is between two blocks: b + 1 entries.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skep::netindex {

struct RangeEntry {
  uint32_t table;
  uint32_t low, high;  // chunks, both inclusive
  bool is_table;       // the result is a table of the next stage; else a range
  uint32_t result;     // from 0 on

  friend bool operator==(const RangeEntry&, const RangeEntry&) = default;
};
using RangeStage = std::vector<RangeEntry>;  // in the order of table and chunk

// The stages for numbers of stages * chunk_bits bits, at most 64. `uppers`: the greatest number of
// each range, rising; the last one is the greatest number of all.
std::vector<RangeStage> EncodeRanges(std::span<const uint64_t> uppers, uint32_t stages = 4,
                                     uint32_t chunk_bits = 16);

}  // namespace skep::netindex

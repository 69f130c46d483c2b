// figures.h: KV-Direct's tables 5 and 6 and figures 6, 9, 10, 11 and 12 as tables of numbers.
//
// The paper's figures tell little of their parameters. These were chosen here:
//   6   pairs of 5 to 50 B, each length equally likely; for each point the best index ratio
//   9   the same pairs, and pairs of 10 B; inline up to 25 B
//   10  pairs of one size; the better of inline and not
//   11  pairs of 10 B (key 5) and 62 B (key 8); the best setting of each structure; and the
//       engine's own table with the options of hash/tuning.h, and its utilisation
//   12  half of all slots are free, in random order
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "bench/figure_table.h"
#include "bench/kv_direct/dispatch_model.h"

namespace skep::bench {

struct KvDirectOptions {
  uint32_t table = 0;                        // 5 or 6; or
  uint32_t figure = 0;                       // 6, 9, 10, 11 or 12; one of the two is 0
  DispatchMode mode = DispatchMode::kExact;  // for the tables
  uint64_t bytes = uint64_t{1} << 20;        // memory of a model (6 to 11): at least 64 KiB
  uint64_t slots = uint64_t{1} << 25;        // slots of a store (12): 64 to 2^32, a power of two
  uint64_t seed = 1;
};

// A figure is absent if the model cannot hold so much.
struct KvDirectReport : FigureTable {
  KvDirectOptions options;
};

// Returns a report, or a line for people: no such table or figure, or a size out of range.
std::expected<KvDirectReport, std::string> RunKvDirect(const KvDirectOptions& options);

}  // namespace skep::bench

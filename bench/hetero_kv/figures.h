// figures.h: what HeteroKV's paper leaves open, measured on the engine `hashleaf` (its own figures,
// batch sizes and threads, are turns of `skep-bench compare`).
//
//   sorters  nanoseconds a key of the two ways of grouping a batch by leaf, by keys in the batch
//            and leaves in the map
//   scans    microseconds a scan of the three ways of reading a leaf, by items wanted, where keys
//            are next to each other (dense) and where they are not (sparse)
//   wait     latency by load of batches that leave at once (none), wait as it pays (adaptive), or
//            wait until they are full or their first operation has waited as long as allowed (full)
//
// The load of `wait` is a part of what batches of 8192 reach; operations come at random (Poisson),
// at instants drawn before, and one thread does everything: it looks which have come, and executes
// them. So an operation's latency is from its instant until its batch is done.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "bench/figure_table.h"

namespace skep::bench {

struct HeteroKvOptions {
  std::string figure;            // sorters, scans or wait
  uint64_t records = 1'000'000;  // scans, wait; at least 10'000
  uint32_t key_bytes = 4;        // 4, 8 or 16
  uint32_t value_bytes = 4;      // 4, 8 or 16
  int repeats = 5;               // of each measurement; the median counts
  double seconds = 0.2;          // wait: of a measurement
  uint32_t wanted = 256;         // wait, adaptive: operations that make a batch large enough
  uint32_t wait_us = 50;         // wait: the longest
  uint64_t seed = 1;
};

struct HeteroKvReport : FigureTable {
  HeteroKvOptions options;
};

// The error is a line for a person: no such figure, a number out of range, or what a wrong answer
// of the engine was.
std::expected<HeteroKvReport, std::string> RunHeteroKv(const HeteroKvOptions& options);

}  // namespace skep::bench

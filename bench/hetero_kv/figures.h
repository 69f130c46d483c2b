// figures.h: answers to questions that HeteroKV's paper leaves open, measured on the engine
// `hashleaf` (the paper's own figures, batch sizes and threads, are turns of `skep-bench compare`).
//
//   sorters  nanoseconds a key of the two ways of grouping a batch by leaf, by keys in the batch
//            and leaves in the map
//   scans    microseconds a scan of the three ways of reading a leaf, by number of items, where
//            keys are adjacent (dense) and where they are not (sparse)
//   wait     latency by load of batches that leave at once (none), wait as it pays (adaptive), or
//            wait until they are full or their first operation has waited as long as allowed (full)
//
// The load of `wait` is a share of the throughput of batches of 8192. Operations arrive at random
// (Poisson), at instants drawn before, and one thread does everything: it checks which have
// arrived, and executes them. An operation's latency is from its instant until its batch is done.
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
  double seconds = 0.2;          // wait: of one measurement
  uint32_t wanted = 256;  // wait, adaptive: number of operations that makes a batch large enough
  uint32_t wait_us = 50;  // wait: the longest time
  uint64_t seed = 1;
};

struct HeteroKvReport : FigureTable {
  HeteroKvOptions options;
};

// Returns a report, or a line for people: no such figure, a number out of range, or a wrong answer
// of the engine.
std::expected<HeteroKvReport, std::string> RunHeteroKv(const HeteroKvOptions& options);

}  // namespace skep::bench

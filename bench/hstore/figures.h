// figures.h: the experiments of HStore's paper (sections 2.4 and 5), on Skep's pool.
//
//   2a    accesses of a lookup one-sided, by items: levels of the tree, buckets of the table
//   7     throughput of PUT, GET and SCAN of 100, by clients
//   8     their latency
//   9     where the time of an operation goes
//   10    throughput of YCSB's load and workloads A to F
//   11a   recovery of each index from the other one, by items
//   11b   GETs over time while the hash server dies, and while the sorted server does (and 11c)
//   scan  a scan whose items are read one after the other, as the paper's, and side by side
//
// Columns of 7, 8 and 10. Each is a pool of figure_pool.h, with clients that remember no slots, as
// the paper's, if nothing else is said:
//
//   hstore   the pair
//   cached   the same with clients that remember `cache` slots: hash index and item in one round
//   serial   the same with scans that read one item after the other, as the paper's
//   sync     the pair whose sorted server applies before it answers: the paper's HStore (sync)
//   tree     tree-only mode, stands in for Sherman
//   hash     hash-only mode, stands in for Clover
//
// A figure over sim is modelled, and one over mem or tcp is measured; the title says which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "bench/figure_table.h"

namespace skep::bench {

// The times that the simulated fabric takes, as the options set them.
struct SimCosts {
  uint64_t round_trip_ns = 2'000;
  uint64_t bytes_per_us = 12'500;  // 100 Gbit/s
  uint64_t message_ns = 500;       // an index server's work on one message
  uint64_t apply_ns = 500;         // and on an entry, where it is applied before it is acknowledged
};

struct HStoreOptions {
  std::string figure;
  std::string fabric = "mem";     // mem, tcp or sim
  uint64_t items = 0;             // 0: 20 M over mem, 100,000 over tcp and sim
  uint64_t ops = 0;               // of each measurement, a twentieth of it if it scans; 0: 200,000
                                  // over mem, 20,000 over tcp and sim
  std::vector<uint32_t> clients;  // empty: as in the paper
  uint32_t depth = 1;             // operations that a client has under way at once
  uint64_t cache = 65'536;        // slots
  double seconds = 6;             // 11b: of all
  size_t key_bytes = 0;           // 0: as in the paper: 16, for 10 20
  size_t value_bytes = 0;         // 0: 32, for 10 200
  uint64_t seed = 1;
  SimCosts costs;  // sim
};

struct HStoreReport : FigureTable {
  HStoreOptions options;  // without zeros
};

// Returns a report, or a line for people: no such figure, an option that makes no sense, or an
// operation that failed.
std::expected<HStoreReport, std::string> RunHStore(const HStoreOptions& options);

}  // namespace skep::bench

// compare.h: indexes side by side in one process, each doing the same operations in turn.
//
//   together  for each workload:  for each repeat:  for each subject:  one turn
//   apart     for each repeat:  for each subject, alone in memory:  for each workload:  one turn
//
//   turn of load       an empty index; the clock runs while all items are inserted
//   turn of delete     the clock runs while `ops` items are deleted; then they are inserted again
//   turn of the others the clock runs for `ops` operations; then what they inserted is deleted
//
// So every turn begins with the same items, whatever ran before, and subjects are interleaved (A B
// A B): whatever the machine does meanwhile, it does to all of them. A ratio is the median of the
// ratios of one repeat.
//
// Every answer goes into a checksum (answer_checksum.h). Turns of one workload and repeat are of
// equal operations, so checksums that differ are a wrong answer of somebody. Where answers may
// depend on which of several operations came first (a batch's scans beside its own insertions,
// threads that read what others write), only the contents are compared: they are read back in the
// end, untimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "bench/limits.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

struct CompareOptions {
  std::vector<std::string> engines = {"btree"};  // engine_spec.h
  std::vector<std::string> peers = {"absl"};     // peer.h
  // ycsb_workload.h; a name may be followed by ':' and a distribution.
  std::vector<std::string> workloads = {"load",    "get",     "c",      "b",       "a", "d",
                                        "f",       "scan3",   "scan24", "scan100", "e", "cloud95",
                                        "cloud80", "cloud50", "update", "delete"};
  std::optional<Distribution> distribution;  // of the workloads that name none; else their own
  uint64_t items = 1'000'000;
  uint64_t ops = 1'000'000;  // in each turn but load's; of delete at most `items`
  uint32_t threads = 1;
  uint32_t batch = 64;
  int repeats = 5;
  size_t key_bytes = 16;
  size_t value_bytes = 16;
  uint64_t seed = 1;
  size_t limits_bytes = 0;  // 0: the machine's limits are not measured
  bool apart = false;
  bool show_progress = false;
};

struct CompareWorkload {
  Workload workload;
  Distribution distribution;
};

// One subject under one workload: all of its turns.
struct CompareRow {
  std::string engine;
  CompareWorkload what;
  std::vector<double> mops;     // of each repeat; empty: the subject has no scans
  std::optional<double> ratio;  // to the first subject: the median over the repeats
  Histogram latency_ns;         // PhaseReport's
  uint64_t checksum = 0;
  bool agrees = true;  // with the first subject, in every repeat
  uint64_t errors = 0;
  std::string first_error;
  // After the last turn: by the subject's own account, else what the process grew by.
  std::optional<double> bytes_per_item;

  std::optional<double> median_mops() const;
};

// One subject after all workloads.
struct CompareFootprint {
  std::string engine;
  std::optional<double> bytes_per_item;           // by its own account
  std::optional<double> resident_bytes_per_item;  // what the process grew by in its turns
  std::optional<double> huge_fraction;            // how much of that is on huge pages
  uint64_t contents_checksum = 0;                 // of what was read back
  bool agrees = true;                             // with the first subject
};

struct CompareReport {
  CompareOptions options;
  std::optional<LimitsReport> limits;
  bool pinned = true;  // every thread was kept on a core of its own choice
  std::vector<CompareRow> rows;
  std::vector<CompareFootprint> footprints;
  uint64_t errors = 0;  // of all rows and of reading back
  bool agrees = true;   // all checksums do

  bool sound() const { return errors == 0 && agrees; }
};

// The subjects are the peers, then the engines. A run that was possible, even if answers were
// wrong: see sound(). Otherwise a line for a person.
std::expected<CompareReport, std::string> RunCompare(const CompareOptions& options);

}  // namespace skep::bench

// compare.h: measures indexes side by side in one process, each doing the same operations in turn.
//
//   together  for each workload:  for each repeat:  for each setting:  for each subject:  one turn
//   apart     for each repeat:  for each subject, alone in memory:  for each workload:  for each
//             setting:  one turn
//
//   turn of load       an empty index; the clock runs while all items are inserted
//   turn of delete     the clock runs while `ops` items are deleted; then they are inserted again
//   turn of churn      the clock runs for `ops` changes; then the loaded items are restored
//   turn of any other  the clock runs for `ops` operations; then the keys they inserted are deleted
//
// A setting is one combination of: number of items, size of a batch, number of threads, snapshots
// held. So two threads beside one, or a held snapshot beside none, are turns of one run as well.
//
// Every turn begins with the same items, whatever ran before, and subjects are interleaved (A B A
// B): a disturbance of the machine affects all of them. A ratio is the median of the ratios of each
// repeat.
//
// Threads that share an index depend on where their cores are: two threads of one core, or two ends
// of a machine, and the system may move virtual cores. Around each turn of several threads the time
// a cache line takes between their cores is measured (core_round_trip.h), so that runs in different
// places are not compared unawares.
//
// Every answer goes into a checksum (answer_checksum.h). Turns of one workload and repeat do equal
// operations, so if checksums differ, some subject answered wrongly. Where answers may depend on
// which of several operations came first (a batch's scans beside its own insertions, threads that
// read what others write), only the contents are compared: they are read back in the end, untimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "bench/key_file.h"
#include "bench/limits.h"
#include "bench/record_format.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

struct CompareOptions {
  std::vector<std::string> engines = {"btree"};  // engine_spec.h
  std::vector<std::string> peers = {"absl"};     // peer.h
  // ycsb_workload.h; a name may be followed by ':' and a distribution.
  std::vector<std::string> workloads = {"load",    "get",     "c",      "b",       "a", "d",
                                        "f",       "scan3",   "scan24", "scan100", "e", "cloud95",
                                        "cloud80", "cloud50", "update", "delete"};
  std::optional<Distribution> distribution;  // for workloads that name none; nothing: their own
  // All combinations of these are the settings.
  std::vector<uint64_t> items = {1'000'000};  // one index for each
  std::vector<uint32_t> batches = {64};       // operations in one batch
  std::vector<uint32_t> threads = {1};
  std::vector<uint32_t> snapshots = {0};  // held while the clock runs; taken before the turn
  uint64_t ops = 1'000'000;  // in each turn but load's; a delete turn has at most the items
  int repeats = 5;
  KeyKind keys = KeyKind::kBinary;
  std::shared_ptr<const KeyFile> key_file;  // has the keys; null: they are of the kind `keys`
  size_t key_bytes = 16;                    // of binary keys
  size_t value_bytes = 16;
  bool mixed_sizes = false;  // instead of key and value bytes: 8, 16, 24 or 32, each equally often
  uint64_t seed = 1;
  size_t limits_bytes = 0;  // 0: the machine's limits are not measured
  bool apart = false;
  bool show_progress = false;
};

struct CompareWorkload {
  Workload workload;
  Distribution distribution;
};

struct CompareSetting {
  uint64_t items = 0;
  uint32_t batch = 0;
  uint32_t threads = 1;
  uint32_t snapshots = 0;
};

// Returns all combinations, the snapshots changing fastest, then threads, batches, items.
std::vector<CompareSetting> SettingsOf(const CompareOptions& options);

// One subject under one workload and setting, over all of its turns.
struct CompareRow {
  std::string engine;
  CompareWorkload what;
  CompareSetting setting;
  const char* lacks = nullptr;          // what the subject lacks for it; then there are no turns
  std::vector<double> mops;             // of each repeat
  std::optional<double> ratio;          // to the first subject: the median over the repeats
  std::optional<double> setting_ratio;  // to the first setting, of the same subject
  Histogram latency_ns;                 // PhaseReport's
  uint64_t checksum = 0;
  bool agrees = true;  // in every repeat, with the first subject that had the same turns
  uint64_t errors = 0;
  std::string first_error;
  // At the end of the last turn, once no snapshot is held: the subject's own account if it has one,
  // else the growth of the process.
  std::optional<double> bytes_per_item;
  // Memory that snapshots held at the end of a turn (compare_subject.h): the most of all turns.
  std::optional<double> pinned_bytes_per_item;
  // Nanoseconds between the first two cores, before and after each turn of several threads.
  std::vector<double> core_round_trip_ns;

  std::optional<double> median_mops() const;
  // Returns whether the cores were about as far from each other all the time.
  bool one_placement() const;
};

// One subject after all workloads.
struct CompareFootprint {
  std::string engine;
  uint64_t items = 0;
  std::optional<double> bytes_per_item;           // by its own account
  std::optional<double> resident_bytes_per_item;  // growth of the process in its turns
  std::optional<double> huge_fraction;            // share of that on huge pages
  uint64_t contents_checksum = 0;                 // of the contents read back
  bool agrees = true;                             // with the first subject that had the same turns
};

struct CompareReport {
  CompareOptions options;
  std::optional<LimitsReport> limits;
  bool pinned = true;  // every thread was kept on a core of its own choice
  std::vector<CompareRow> rows;
  std::vector<CompareFootprint> footprints;
  uint64_t errors = 0;  // of all rows and of reading back
  bool agrees = true;   // whether all checksums agree

  bool sound() const { return errors == 0 && agrees; }
};

// Runs the comparison; the subjects are the peers, then the engines. Returns a report if the run
// was possible, even if answers were wrong (see sound()); otherwise a line for people.
std::expected<CompareReport, std::string> RunCompare(const CompareOptions& options);

}  // namespace skep::bench

// ordered.h: ordered indexes side by side in one process, each doing the same operations in turn.
//
//   for each load:  for each repeat:  for each subject:  one turn
//
//   turn of insert   an empty index; the clock runs while all items are inserted
//   turn of delete   the clock runs while `ops` items are deleted; then they are inserted again
//   any other turn   the clock runs for `ops` operations; the index holds all items before and
//   after
//
// So subjects are interleaved (A B A B) and whatever the machine does meanwhile, it does to all of
// them; a ratio is the median of the ratios of turns that followed each other. All of them keep
// their items in memory at the same time.
//
// Every answer of every subject goes into a checksum (answer_checksum.h). Turns of one load and
// repeat are of equal operations, so checksums that differ are a wrong answer of somebody. After
// the last load the contents are read back once more, untimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "bench/limits.h"
#include "bench/ordered_load.h"

namespace skep::bench {

struct OrderedOptions {
  // Engines of Skep by their names, and kAbslName (absl_target.h). The first is what ratios are to.
  std::vector<std::string> engines = {"absl", "btree"};
  std::vector<std::string> loads = {"insert", "get",     "get_zipf", "scan3",
                                    "scan24", "scan100", "update",   "delete"};
  uint64_t items = 1'000'000;
  uint64_t ops = 1'000'000;  // in each turn but insert's; of delete at most `items`
  uint32_t threads = 1;
  uint32_t batch = 64;
  int repeats = 5;
  size_t key_bytes = 16;
  size_t value_bytes = 16;
  uint64_t seed = 1;
  size_t limits_bytes = 0;  // 0: the machine's limits are not measured
  bool show_progress = false;
};

// One subject under one load: all of its turns.
struct OrderedRow {
  std::string engine;
  OrderedLoad load;
  std::vector<double> mops;  // of each repeat
  double ratio = 1;          // to the first subject: the median over the repeats
  Histogram latency_ns;      // PhaseReport's
  uint64_t checksum = 0;
  bool agrees = true;  // with the first subject, in every repeat
  uint64_t errors = 0;
  std::string first_error;
  std::optional<double> bytes_per_item;  // after the load, by the subject's own account

  double median_mops() const;
};

// One subject after all loads.
struct OrderedFootprint {
  std::string engine;
  std::optional<double> bytes_per_item;           // by its own account
  std::optional<double> resident_bytes_per_item;  // what the process grew by in its turns
  std::optional<double> huge_fraction;            // how much of that is on huge pages
  uint64_t contents_checksum = 0;                 // of what was read back
  bool agrees = true;                             // with the first subject
};

struct OrderedReport {
  OrderedOptions options;
  std::optional<LimitsReport> limits;
  bool pinned = true;  // every thread was kept on a core of its own choice
  std::vector<OrderedRow> rows;
  std::vector<OrderedFootprint> footprints;
  uint64_t errors = 0;  // of all rows and of reading back
  bool agrees = true;   // all checksums do

  bool sound() const { return errors == 0 && agrees; }
};

// A run that was possible, even if answers were wrong: see sound(). Otherwise a line for a person.
std::expected<OrderedReport, std::string> RunOrdered(const OrderedOptions& options);

}  // namespace skep::bench

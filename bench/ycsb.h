// ycsb.h: one run of a YCSB workload: loads the records, does the operations, and reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "bench/phase.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

struct YcsbOptions {
  std::string engine = "btree";  // engine_spec.h; ignored if there is a host
  // A workload of ycsb_workload.h, except those for compare; or `scan`, of scan_length items, or
  // `cloud`, of read_percent.
  std::string workload = "a";
  uint32_t scan_length = 24;
  uint32_t read_percent = 95;
  std::optional<Distribution> distribution;  // nothing: the workload's own
  uint64_t records = 1'000'000;
  uint64_t ops = 1'000'000;
  uint32_t threads = 1;
  uint32_t batch = 64;
  size_t key_bytes = 23;
  size_t value_bytes = 100;
  uint64_t seed = 1;
  std::string host;  // empty: in this process
  uint16_t port = 6379;
  bool is_loaded = false;  // the server has the records already: they are not loaded
  double rate = 0;         // operations a second of all threads; 0: as fast as possible
  bool show_progress = false;
};

struct YcsbReport {
  YcsbOptions
      options;  // with the distribution filled in; `ops` are the records if that is the load
  PhaseReport load;
  PhaseReport run;      // of the workload `load` the same
  Footprint footprint;  // after the run
};

// Returns a report if the run was possible, even if operations failed (see run.tally); otherwise a
// line for people: a wrong option, a server that cannot be reached, records that could not be
// loaded.
std::expected<YcsbReport, std::string> RunYcsb(YcsbOptions options);

}  // namespace skep::bench

// limits.h: measures what this machine can do at most, so that every figure of Skep can be a ratio
// to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "skep/status.h"

namespace skep::bench {

struct LimitsOptions {
  size_t bytes = size_t{8} << 30;      // of memory; several times the last-level cache to mean DRAM
  uint64_t reads = uint64_t{1} << 22;  // at most, in one repetition of the fastest loop
  uint64_t round_trips = 2'000;        // in one repetition of the loopback, one in flight
  int repetitions = 7;                 // > 0; every figure is their median
};

// memory_limits.h and loopback_limit.h say how each is measured.
struct LimitsReport {
  LimitsOptions options;
  int core = 0;                 // everything but the echo thread ran on it
  bool pinned = false;          // whether the system kept it there
  double huge_fraction = 0;     // share of the region meant to be huge that really was
  double huge_fraction_4k = 0;  // the same of the region meant to be plain: 0

  double address_mops = 0;
  double random_read_mops = 0;
  double random_rmw_mops = 0;
  double random_read_4k_mops = 0;
  double random_start_3200b_mops = 0;
  double chase_ns = 0;
  double seq_read_gbs = 0;
  double loopback_rtt_us = 0;
  double loopback_64_mops = 0;
};

// Takes options.bytes of memory, one page size after the other.
//   kInvalidArgument  fewer bytes than a random-start read needs, or more lines than 2^32
//   kIo               no memory, no sockets: the errno
Result<LimitsReport> MeasureLimits(const LimitsOptions& options);

}  // namespace skep::bench

// phase.h: runs threads with prepared operations against sessions, with one clock for all.
//
//   every thread:  fill its stream | start | batches ... | end | fill its stream | start ...
//   the clock:                     runs ----------------> stops               runs ...
//
// Streams are made in rounds, so that their memory is bounded (kStreamBytesMax for all threads
// together) however many operations are asked for. Both edges of a round are barriers: the clock
// runs from the moment the last thread is ready until the last thread is done.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/histogram.h"
#include "bench/op_stream.h"
#include "bench/progress.h"
#include "bench/ycsb_target.h"

namespace skep::bench {

inline constexpr uint64_t kStreamBytesMax = 256 << 20;

// The work of one thread.
struct Lane {
  YcsbSession* session;
  OpSource* source;
  uint64_t ops;
  int core = -1;  // the core of the thread; negative: any
};

struct PhaseReport {
  uint64_t ops = 0;  // done
  double seconds = 0;
  // Latency of each operation: from the moment its batch was begun (requests built, submitted), or
  // with a rate was meant to begin, until all of the batch was answered and checked. The operations
  // of a batch have one latency.
  Histogram latency_ns;
  Tally tally;
  bool pinned = true;  // every lane that asked for a core was kept there
  Status status;       // of the first lane that failed: why it ended early

  double mops() const { return seconds > 0 ? static_cast<double>(ops) / seconds / 1e6 : 0; }
  // Returns the throughput of a lane if the benchmark itself cost nothing; nothing: the sessions
  // cannot tell.
  std::optional<double> target_mops() const {
    if (tally.target_ns == 0) return std::nullopt;
    return static_cast<double>(ops) * 1e3 / static_cast<double>(tally.target_ns);
  }
};

// Runs every lane on a thread of its own, `batch` (> 0) operations at a time: one batch after the
// other, or at `ops_per_second` (> 0) of all lanes together.
PhaseReport RunPhase(std::span<const Lane> lanes, KeyFormat format, uint32_t batch,
                     Progress& progress, double ops_per_second = 0);

}  // namespace skep::bench

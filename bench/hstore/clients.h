// clients.h: clients of a pool, each of its own connections, that run a workload in a closed loop.
#pragma once

#include <cstdint>

#include "base/histogram.h"
#include "bench/hstore/figure_pool.h"
#include "bench/op_generator.h"
#include "bench/record_format.h"
#include "bench/ycsb_target.h"
#include "pool/pool_engine.h"

namespace skep::bench {

// The keys and values of a figure.
struct Records {
  Records(size_t key_bytes, size_t value_bytes, uint64_t seed)
      : format(key_bytes), values(value_bytes, seed) {}
  // The bytes that one item takes in a memory server.
  uint64_t item_bytes() const;

  KeyFormat format;
  ValuePool values;
};

// The operations and bytes that a measurement has put on the fabric.
struct Traffic {
  uint64_t rounds = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t calls = 0;
};

struct ClientsRun {
  uint64_t ops = 0;
  uint64_t begin_ns = UINT64_MAX;  // of the first client, by the pool's clock
  uint64_t end_ns = 0;             // of the last one
  Histogram latency_ns;            // of each operation; those of a batch have one latency
  uint64_t sum_ns = 0;             // of all latencies
  Tally tally;
  Traffic traffic;
  TimeParts parts;  // with a stopwatch

  double kops() const { return static_cast<double>(ops) * 1e6 / Nonzero(end_ns - begin_ns); }
  double mean_us() const { return static_cast<double>(sum_ns) / Nonzero(ops) / 1e3; }
  double p99_us() const { return static_cast<double>(latency_ns.Quantile(0.99)) / 1e3; }

 private:
  static double Nonzero(uint64_t number) { return static_cast<double>(number == 0 ? 1 : number); }
};

struct ClientsPlan {
  WorkloadPlan workload;  // its threads are the clients
  uint32_t depth = 1;     // operations of a batch
  pool::PoolEngineOptions engine = {};
};

// Runs the operations of a workload. The pool has its records, and no others afterwards: what it
// inserts is deleted, unless it is InsertsOnly(). Connections are made, and operations drawn,
// before the first one begins.
ClientsRun RunClients(FigurePool& pool, const Records& records, const ClientsPlan& plan);

// A workload whose insertions stay.
Workload InsertsOnly();

// Inserts the records [0, count) in large batches.
Tally LoadRecords(FigurePool& pool, const Records& records, uint64_t count);

}  // namespace skep::bench

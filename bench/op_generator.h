// op_generator.h: chooses the operations of a thread, and their keys.
//
// Numbers of keys: 0 .. records-1 are loaded before the run. The i-th insertion of thread t of T
// makes number records + i * T + t, so threads need not communicate to insert different keys.
//
// Invariant G1: a thread reads, updates or scans only existing keys: the loaded ones and those that
// its own stream inserted earlier (operations of one thread on one key keep their order, also
// inside a batch). So a read that misses is an error of the store, never of the benchmark. With one
// thread this is YCSB; with more, each thread's `latest` refers to its own insertions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"
#include "bench/zipf.h"

namespace skep::bench {

struct WorkloadPlan {
  Workload workload;
  Distribution distribution;
  uint64_t records;  // > 0
  uint64_t ops;      // of all threads together
  uint32_t threads;  // > 0
  uint64_t seed;
  // Whether threads update keys of their own, so that the final contents do not depend on which
  // thread was faster; there must then be at least as many records as threads. YCSB's threads do
  // not.
  bool own_updates = false;
  // Number of operations in a row that are of one kind (> 0).
  uint32_t group = 1;

  // Returns as many as YCSB foresees: twice the expected number.
  uint64_t InsertsForeseen() const { return 2 * ops * workload.insert / 100; }
  // Returns how many of `total` pieces of work fall to a thread.
  uint64_t ShareOf(uint32_t thread, uint64_t total) const {
    return total / threads + (thread < total % threads ? 1 : 0);
  }
};

// Chooses numbers of existing keys, by the plan's distribution.
class KeyChooser {
 public:
  KeyChooser(const WorkloadPlan& plan, uint32_t thread);

  // `inserted`: how many keys this thread has inserted.
  uint64_t Draw(Random& random, uint64_t inserted);
  // Returns a key that only this thread updates: `number`, which must exist, or one near it.
  uint64_t Own(uint64_t number) const;
  // Returns the number of this thread's insertion `index` (from 0).
  uint64_t InsertedNumber(uint64_t index) const {
    return plan_.records + index * plan_.threads + thread_;
  }

 private:
  uint64_t DrawZipfian(Random& random, uint64_t inserted);
  uint64_t DrawLatest(Random& random, uint64_t inserted);
  bool Exists(uint64_t number, uint64_t inserted) const;

  WorkloadPlan plan_;
  uint32_t thread_;
  ScrambledZipf scrambled_;
  Zipf ages_;
};

// The operations of one thread. Equal plans and threads give equal operations.
class OpGenerator final : public OpSource {
 public:
  OpGenerator(const WorkloadPlan& plan, uint32_t thread);
  // `count` must be a multiple of the plan's group.
  void Fill(OpStream& stream, size_t count) override;

  uint64_t inserted() const { return inserted_; }

 private:
  OpKind DrawKind();
  void Add(OpKind kind, OpStream& stream);

  const Workload workload_;
  const bool own_updates_;
  const uint32_t group_;
  SeededRandom random_;
  KeyChooser keys_;
  uint64_t inserted_ = 0;
};

// The loading of the records: thread t inserts number t, t + T, t + 2T, ...
class LoadGenerator final : public OpSource {
 public:
  LoadGenerator(const WorkloadPlan& plan, uint32_t thread)
      : threads_(plan.threads), next_(thread) {}
  void Fill(OpStream& stream, size_t count) override;

 private:
  uint32_t threads_;
  uint64_t next_;
};

}  // namespace skep::bench

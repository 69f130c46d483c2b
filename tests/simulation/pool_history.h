// pool_history.h: one small history of a pool, wholly given by its seed: a few clients, a few keys,
// and what happens to servers, connections and clients meanwhile.
//
// Clients begin when each has a name, a lease and a chunk; then the faults of the plan
// (pool_plan.h) begin, too. A change of roles is learnt by each process at a time of its own; by a
// deposed server last of all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "pool/testing/sim_pool.h"
#include "tests/linearizability/history.h"
#include "tests/simulation/pool_plan.h"

namespace skep::simulation {

// What happened in some histories: tests see to it that all of it did.
struct PoolTally {
  uint64_t operations = 0;
  uint64_t unknown = 0;  // writes of which it is not known whether they were done
  uint64_t refused = 0;
  uint64_t cuts = 0;
  uint64_t kills = 0;
  uint64_t deposed = 0;
  uint64_t long_pauses = 0;
  uint64_t memory_losses = 0;  // memory servers that died
  uint64_t memory_drains = 0;  // that were drained and have ended
  uint64_t chunks_copied = 0;
  uint64_t items_moved = 0;  // by cleaners
  uint64_t chunks_cleaned = 0;
  pool::ClientStatistics clients;
};

// How a history differs from one of the right protocol.
struct PoolVariant {
  PoolPlan::Kind kind = PoolPlan::Kind::kAny;
  // What changes messages; null: nobody. The pool outlives it.
  std::function<std::unique_ptr<rma::SimTamper>(pool::SimPool&)> make_tamper;
  // Changes the times of an index server that the seed has drawn.
  std::function<void(uint32_t id, pool::PoolTimes&)> change_times;
};

struct PoolHistory {
  linearizability::History operations;
  uint64_t trace_hash = 0;
  // All clients have ended in time, and then the pool has answered reads of everything, which are
  // in the history, too.
  bool has_ended = false;
};

PoolHistory RunPoolHistory(uint64_t seed, const PoolVariant& variant, PoolTally& tally);

}  // namespace skep::simulation

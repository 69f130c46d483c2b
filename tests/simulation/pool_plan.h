// pool_plan.h: what the seed of a pool's history has drawn before it begins (pool_history.h).
#pragma once

#include <cstdint>

#include "base/random.h"
#include "pool/index_context.h"

namespace skep::simulation {

struct PoolPlan {
  enum class Fate : uint8_t {
    kNone,
    kKilled,
    kDeposed,  // taken for dead: it goes on, perhaps after a pause, until it is told
  };

  // What is more frequent than in any history.
  enum class Kind : uint8_t {
    kAny,
    kScans,        // scans of two keys while servers stall
    kDeposed,      // of the hash server
    kLostReplies,  // cuts of connections
    kUsedAgain,    // few chunks, clients that are forgotten, one that pauses in its reads
    kCleaned,      // the same, and cleaners that always work
    kMemoryLoss,  // two of three memory servers die, the second one when all has two replicas again
    kHundred,     // of a hundred memory servers some die, some are drained, and others come
  };

  PoolPlan(Kind kind, Random& random);

  uint32_t operations = 7;  // of each client, after two to begin with
  pool::PoolTimes times;
  uint64_t step_ns = 0;       // how long a message takes, at most, if it is not slow
  uint64_t slow_one_in = 0;   // messages; a slow one takes up to 40 steps
  uint64_t stall_one_in = 0;  // turns of a server; a stall takes up to 60 steps
  uint64_t think_ns_max = 0;  // between a client's operations
  uint64_t span_ns = 0;       // how long all operations take, about: faults are within it
  uint32_t chunks = 5;
  uint32_t memory_servers = 1;
  uint32_t memory_losses = 0;    // so many die, if there were copies of what the last one had
  uint32_t memory_drains = 0;    // so many are drained, and one comes for each
  bool has_agents = false;       // of the index servers
  uint32_t free_chunks_min = 0;  // that the pool wants: cleaners work if there are fewer
  uint32_t keys = 0;
  uint32_t ranges = 0;      // so many operations on ranges come with 6 points
  uint64_t cuts = 0;        // of connections, at any time
  uint64_t cut_one_in = 0;  // and at one of so many posts and messages; 0: at none
  Fate fate = Fate::kNone;
  uint32_t victim = 1;        // the index server that has it
  uint64_t fate_ns = 0;       // when
  uint64_t learn_ns_max = 0;  // until the map is another one, and again until each learns of it
  // One of so many waits of a client takes longer than a lease, or than the pool remembers it. 0:
  // none does.
  uint64_t pause_one_in = 0;
  uint32_t paused_clients = UINT32_MAX;  // so many clients, the first ones, pause at all
  bool pauses_servers = false;           // each once, for up to two leases

 private:
  void Emphasize(Kind kind);
  void TakeHundredServers();
};

}  // namespace skep::simulation

// pool_commands.h: what skep-pool does: runs one server of a pool, or looks at a whole pool.
#pragma once

#include <cstdint>
#include <string>

#include "skep/options.h"

namespace skep {

// The options of one server.
struct PoolServerOptions {
  PoolOptions pool;
  // Where it listens: "unix:PATH" over mem and ofi:shm, else "HOST:PORT".
  std::string listen;
  // What it tells others; empty: where it listens.
  std::string advertise;
  uint32_t session_ms = 1000;
};

// What is wrong with the name of a fabric, for a person; empty: nothing.
std::string WhyNoFabric(const std::string& name);

// Each returns an exit status; why it is not 0 is written to standard error.

// Serve until SIGTERM or SIGINT.
int RunMemoryServer(const PoolServerOptions& options, uint64_t bytes);
// What an index server does while it is the hash server.
struct PoolUpkeepOptions {
  uint32_t replicas = 2;  // of an item, where there are as many memory servers: 1 or 2
  // Whether keys whose items were lost with their memory servers are removed; else they are errors.
  bool removes_lost = false;
  bool evicts = false;  // where the pool is full and cleaning gains nothing, the oldest items go
};
// Where an index server keeps what it knows.
struct PoolDirectoryOptions {
  std::string directory;  // empty: nowhere
  LogSync sync = LogSync::kEverySecond;
};
int RunIndexServer(const PoolServerOptions& options, const PoolUpkeepOptions& upkeep,
                   const PoolDirectoryOptions& directory);

struct PoolLookOptions {
  PoolOptions pool;
  bool as_json = false;
};

// Prints who is there and what the pool holds. 1: ZooKeeper does not answer, or the pool cannot
// serve.
int PrintPoolStatus(const PoolLookOptions& options);
// Has the pool copy what memory server `id` has to others, and go on without it; waits until that
// is so. 1: there is no such server or no other one, or the time-out has passed, or the pool does
// not serve.
int DrainMemoryServer(const PoolLookOptions& options, uint32_t id);
// Compares the two indexes and the items, key by key, while others read and write. 1: something is
// wrong, or could not be looked at.
int VerifyPool(const PoolLookOptions& options);

}  // namespace skep

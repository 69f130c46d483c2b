// server_statistics.h: the counters of all workers together, since the start or since CONFIG
// RESETSTAT.
//
// A worker's counters only grow, since no other thread may write them. What a reset does is to note
// how large they were.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "server/command_statistics.h"

namespace skep {

struct WorkerStatistics;

// Sums over all workers.
struct ServerCounts {
  uint64_t commands = 0, connections = 0, rejected = 0, batches = 0, batch_requests = 0;
  uint64_t input_bytes = 0, output_bytes = 0, reads = 0, writes = 0, errors = 0;
  uint64_t hits = 0, misses = 0;
  uint64_t expired_keys = 0;              // of all databases
  uint64_t evicted_clients = 0;           // closed because of maxmemory-clients
  std::vector<uint64_t> turns_by_work;    // as in WorkerStatistics
  std::vector<CommandCounts> by_command;  // as in CountedCommands()
  std::vector<uint64_t> by_error;         // as in ErrorCodes()

  ServerCounts();
  void Add(const WorkerStatistics& worker);
  // What is counted on the thread beside a worker: batches, errors, commands of transactions.
  void AddBeside(const WorkerStatistics& beside);
  void Subtract(const ServerCounts& other);
  // What the turn with the most work had at most, within a factor of two; 0: there was no turn.
  uint64_t turn_bytes_max() const;
};

// Thread-safe.
class StatisticsBase {
 public:
  void Set(const ServerCounts& now) {
    const MutexLock lock(mutex_);
    base_ = now;
  }
  // What the counters have grown by since Set.
  ServerCounts Since(ServerCounts now) const {
    const MutexLock lock(mutex_);
    now.Subtract(base_);
    return now;
  }

 private:
  mutable Mutex mutex_;
  ServerCounts base_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep

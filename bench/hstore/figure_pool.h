// figure_pool.h: the pool that a figure measures: the pair of index servers, or one index alone.
//
//   kPair      a hash server and a sorted server; the log is shipped and applied later
//   kSyncPair  the same; the sorted server applies what is shipped before it answers: "HStore
//              (sync)" of the paper
//   kTreeOnly  one index server, which has the ordered index alone: it has taken over, and there
//              was no room for a table. Clients ask it for slots by calls. It stands in for
//              Sherman, whose clients walk the tree one-sided instead (figure 2a has how many reads
//              that is)
//   kHashOnly  one index server, which has the table alone, and answers no scans. It stands in for
//              Clover, whose clients also write the table one-sided
//
// All are the same code of servers and clients, and all keep items in one memory server, as in the
// paper. Over mem and tcp each server is a thread of this process, and time is the machine's. Over
// sim everything is one thread, and time is modelled, from these constants alone: how long a
// message or a read takes there and back, how long a byte takes on the wire, and how long an index
// server works on a message. What clients compute takes no time there, nor what the sorted server
// applies later, and the transfers of different connections do not wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "bench/hstore/figures.h"
#include "bench/hstore/stopwatch_fabric.h"
#include "pool/index_server.h"
#include "pool/pool_engine.h"

namespace skep::bench {

enum class PoolKind : uint8_t { kPair, kSyncPair, kTreeOnly, kHashOnly };
enum class PoolFabric : uint8_t { kMem, kTcp, kSim };

std::optional<PoolFabric> FindPoolFabric(std::string_view name);

struct FigurePoolOptions {
  PoolKind kind = PoolKind::kPair;
  PoolFabric fabric = PoolFabric::kMem;
  uint64_t items = 0;       // at most
  uint64_t item_bytes = 0;  // of all items that are ever written
  uint32_t clients = 0;     // that are ever opened
  SimCosts costs;
  bool has_stopwatch = false;  // over mem and tcp
};

class FigurePool {
 public:
  // The hash server, unless it is a kTreeOnly.
  static constexpr uint32_t kHashServer = 1;
  static constexpr uint32_t kSortedServer = 2;

  static std::unique_ptr<FigurePool> Open(const FigurePoolOptions& options);
  virtual ~FigurePool() = default;

  virtual Clock& clock() = 0;
  // A client.
  virtual std::unique_ptr<pool::PoolEngine> OpenEngine(const pool::PoolEngineOptions& options) = 0;
  // Runs body(0), body(1) and so on side by side, and returns when all have.
  virtual void RunSideBySide(uint32_t count, const std::function<void(uint32_t)>& body) = 0;
  // Ends an index server, as its crash would, and tells the other one at once.
  virtual void Kill(uint32_t index_server) = 0;
  // Runs between two turns of an index server.
  virtual void Do(uint32_t index_server, const std::function<void(pool::IndexServer&)>& work) = 0;
  // Where the time went so far, with a stopwatch.
  virtual TimeParts parts() const { return {}; }
  // Returns after so long, by clock().
  virtual void Sleep(uint64_t ns) = 0;

  // Returns when the condition holds between two turns of an index server.
  void Await(uint32_t index_server, const std::function<bool(pool::IndexServer&)>& condition);
};

}  // namespace skep::bench

// upkeep_agent.h: what an index server does for its pool as a client of it, beside its own loop:
// while it is the hash server, it cleans (cleaner.h) and repairs (repairer.h), by turns.
//
// Its endpoint, its name in the pool and its lease are its own; it has them only while the map says
// that its server is the hash server. A map that is late makes two agents work side by side for a
// while, which is as right as any two clients are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/repeating_thread.h"
#include "pool/cleaner.h"
#include "pool/client_session.h"
#include "pool/item_writer.h"
#include "pool/pool_map.h"
#include "pool/repairer.h"
#include "rma/fabric.h"

namespace skep::pool {

struct UpkeepOptions {
  uint32_t server = 0;  // the number of the index server
  Eviction eviction = Eviction::kNone;
};

class UpkeepAgent {
 public:
  // How long a turn may take.
  static constexpr uint64_t kTurnNs = 1'000'000'000;

  // `fabric` and `clock` outlive it.
  UpkeepAgent(rma::Fabric& fabric, Clock& clock, const UpkeepOptions& options)
      : fabric_(fabric), clock_(clock), options_(options) {}

  // Thread-safe. The turn that is under way ends soon, if it waits by another map.
  void SetMap(const PoolMap& map);
  // One turn, by one thread at a time. Returns whether there is more to be done; else the next one
  // comes after a pause.
  bool Turn();
  // Of all its work. Not while a turn is under way.
  const UpkeepFigures& figures() const { return figures_; }

 private:
  // What it has while it works.
  struct Work {
    Work(std::unique_ptr<ClientSession> the_session, Eviction eviction, UpkeepFigures& figures)
        : session(std::move(the_session)),
          writer(*session, LeaseFor::kCleaning),
          cleaner(*session, writer, eviction, figures),
          repairer(*session, writer, figures) {}
    const std::unique_ptr<ClientSession> session;
    ItemWriter writer;
    Cleaner cleaner;
    Repairer repairer;
  };

  PoolMap map() const;
  bool Open();

  rma::Fabric& fabric_;
  Clock& clock_;
  const UpkeepOptions options_;
  mutable Mutex mutex_;
  PoolMap map_ SKEP_GUARDED_BY(mutex_);
  UpkeepFigures figures_;
  std::unique_ptr<Work> work_;
};

// Calls Turn() until it is destroyed, which may take as long as a turn.
class UpkeepThread {
 public:
  static constexpr uint32_t kPauseMs = 50;

  // `agent` outlives it.
  explicit UpkeepThread(UpkeepAgent& agent)
      : agent_(agent), thread_(std::chrono::milliseconds(kPauseMs), [&] { return agent.Turn(); }) {}
  ~UpkeepThread() {
    thread_.RequestStop();
    agent_.SetMap({});
  }

 private:
  UpkeepAgent& agent_;
  RepeatingThread thread_;
};

}  // namespace skep::pool

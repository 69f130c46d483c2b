// store_client.h: a client of the checker's tests for a store in this process (skep/store.h).
//
// Half of its operations go through the store, whose clock is the machine's; the rest straight to
// its engine (engine/engine.h), with the time of the history. That time lies far in the future, so
// each call through the store comes with a clock that is late, which must not bring expired keys
// back.
#pragma once

#include <map>

#include "engine/engine.h"
#include "skep/store.h"
#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

// For Options: the two clocks differ by more than any smaller age would allow.
inline constexpr uint64_t kSnapshotAgeMsMax = uint64_t{1} << 50;

class StoreClient : public KvClient {
 public:
  // `engine` must be that of the store's keyspace 0. The store must outlive the client and have
  // kSnapshotAgeMsMax.
  StoreClient(Store& store, Engine& engine) : store_(store), engine_(engine) {}
  ~StoreClient() override;
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  bool Supports(const Operation& operation) const override;
  // One step is done by the store's own call where it has one, several as one atomic batch. Every
  // other point is a batch of one that takes a hint and gives one, often of another key; every
  // other range delete of everything is a delete-all.
  Reply Perform(Operation& operation) override;

 private:
  Reply PerformPoint(Step& step);
  Reply PerformHinted(Step& step);
  Reply PerformRange(Step& step, const Snapshot* at);
  Reply Scan(Step& step, const Snapshot* at);
  Reply DeleteAll(Step& step);
  Reply PerformBatch(Operation& operation);
  bool Add(Batch& batch, const Step& step) const;
  Reply Tick(uint64_t time);
  Reply Watch(Step& step);
  void Unwatch(uint32_t watch);
  Reply OpenSnapshot(uint32_t number, uint64_t now);
  Reply ReadSnapshot(Operation& operation);
  // `now` is 0: through the store.
  Status Execute(Batch& batch, uint64_t now = 0);

  Store& store_;
  Engine& engine_;
  std::map<uint32_t, Snapshot> snapshots_;
  std::map<uint32_t, uint64_t> watches_;  // the engine's numbers, by those of the history
  uint64_t latest_ = 0;                   // the latest time that a call has told
  uint64_t points_ = 0;                   // number of points asked
  uint64_t batches_ = 0;
  uint64_t ticks_ = 0;
  uint64_t clears_ = 0;                // range deletes of everything
  std::map<std::string, Hint> hints_;  // the latest of each key
  Batch unordered_;
  Batch atomic_{Batch::Kind::kAtomic};
};

}  // namespace skep::linearizability

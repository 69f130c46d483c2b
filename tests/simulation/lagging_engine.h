// lagging_engine.h: an engine that takes every liberty that engine.h and batch.h allow.
//
// The model engine performs a batch in slot order and releases every write at once, so a server
// that broke its promises would look right on it. Over the same store, this engine
//   - performs the points of an unordered batch in a random order, keeping the order of each key;
//   - lets a range read of such a batch see the released state, or the newest one at a random place
//     among the points;
//   - stops an unordered batch anywhere, if the batch limits its work;
//   - opens snapshots of the released state;
//   - releases writes only when Release() is called, some time later.
// Thread safety: none; for simulations.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "keyspace/factory.h"

namespace skep::simulation {

class LaggingEngine final : public ForwardingEngine {
 public:
  // `inner` must release its writes at once, as the model engine does.
  explicit LaggingEngine(std::unique_ptr<Engine> inner);
  ~LaggingEngine() override;

  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override { opened_.erase(snapshot.id); }

  bool has_unreleased() const { return inner().gate().released() > gate_.released(); }
  // Releases everything written so far.
  void Release() override;

 private:
  class Pin;  // a snapshot of the inner engine

  Version ExecuteAtSnapshot(Batch& batch);
  Version ExecuteShuffled(Batch& batch);
  std::vector<uint32_t> ShuffledSlots(const Batch& batch);
  Version ExecuteSlot(const Batch& batch, uint32_t slot, BatchWriter& writer);

  SeededRandom random_{1};
  uint64_t now_ms_ = 0;  // of the latest batch
  std::shared_ptr<Pin> released_;
  std::map<uint64_t, std::shared_ptr<Pin>> opened_;
  uint64_t last_snapshot_ = 0;
};

// Makes a LaggingEngine over the model engine.
extern const EngineInfo kLaggingEngine;

}  // namespace skep::simulation

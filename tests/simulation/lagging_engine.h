// lagging_engine.h: an engine that takes every liberty that engine.h and batch.h leave it.
//
// The model engine performs a batch in slot order and releases every write at once, so a server
// that forgot to keep its promises would look right on it. Over the same store, this one
//   - performs the points of an unordered batch in a random order, those of one key in theirs;
//   - lets a range read of such a batch see the released state, or the newest one at a random place
//     among the points;
//   - opens snapshots of the released state;
//   - releases writes only when Release() is called, some time later.
//
// Thread safety: none; for simulations.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/batch_writer.h"
#include "engine/engine.h"
#include "engine/factory.h"

namespace skep::simulation {

class LaggingEngine final : public Engine {
 public:
  // `inner` must release its writes at once, as the model engine does.
  explicit LaggingEngine(std::unique_ptr<Engine> inner);
  ~LaggingEngine() override;

  const EngineTraits& traits() const override { return inner_->traits(); }
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override { opened_.erase(snapshot.id); }
  Result<std::unique_ptr<PairWalk>> OpenWalk(uint64_t now_ms) override {
    return inner_->OpenWalk(now_ms);
  }
  void StartAfter(Version version, uint64_t now_ms) override {
    inner_->StartAfter(version, now_ms);
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    return inner_->Watch(key, now_ms);
  }
  void Unwatch(uint64_t watch) override { inner_->Unwatch(watch); }
  bool Maintain(uint64_t now_ms) override { return inner_->Maintain(now_ms); }
  EngineStatistics Statistics() const override { return inner_->Statistics(); }
  const char* Verify() const override { return inner_->Verify(); }

  bool has_unreleased() const { return inner_->gate().released() > gate_.released(); }
  // Everything written so far is released.
  void Release();

 private:
  class Pin;  // a snapshot of the inner engine

  Version ExecuteAtSnapshot(Batch& batch);
  Version ExecuteShuffled(Batch& batch);
  std::vector<uint32_t> ShuffledSlots(const Batch& batch);
  Version ExecuteSlot(const Batch& batch, uint32_t slot, BatchWriter& writer);

  std::unique_ptr<Engine> inner_;
  SeededRandom random_{1};
  uint64_t now_ms_ = 0;  // of the latest batch
  std::shared_ptr<Pin> released_;
  std::map<uint64_t, std::shared_ptr<Pin>> opened_;
  uint64_t last_snapshot_ = 0;
};

// Makes a LaggingEngine over the model engine.
extern const EngineInfo kLaggingEngine;

}  // namespace skep::simulation

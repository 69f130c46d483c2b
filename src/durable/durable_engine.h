// durable_engine.h: an engine whose writes are logged before they are answered.
//
// It is the engine it wraps, but for its gate: that one is released when what the version stands
// for is in the log, as far as the policy of the log says (log.h). A batch that may write enters
// the log, is executed, and leaves a record of what it has changed: for each write that was done
// what it stored, erased or was to do (change.h).
//
// While the log cannot be written, what may write is refused with the log's error: kIo, with the
// errno, or kUnavailable; the rest of its batch is executed.
#pragma once

#include <memory>
#include <string>

#include "durable/log.h"
#include "engine/engine.h"

namespace skep::durable {

class DurableEngine final : public Engine {
 public:
  // The log must outlive it. The inner engine has versions or numbers its writes.
  DurableEngine(std::unique_ptr<Engine> inner, uint32_t keyspace, Log& log);

  const EngineTraits& traits() const override { return inner_->traits(); }
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    return inner_->OpenSnapshot(now_ms);
  }
  void CloseSnapshot(SnapshotRef snapshot) override { inner_->CloseSnapshot(snapshot); }
  Result<std::unique_ptr<PairWalk>> OpenWalk(uint64_t now_ms) override {
    return inner_->OpenWalk(now_ms);
  }
  Version Latest() const override { return inner_->Latest(); }
  // All that it has then is in the log, or in a snapshot.
  void StartAfter(Version version, uint64_t now_ms) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    return inner_->Watch(key, now_ms);
  }
  void Unwatch(uint64_t watch) override { inner_->Unwatch(watch); }
  bool Maintain(uint64_t now_ms) override;
  EngineStatistics Statistics() const override { return inner_->Statistics(); }
  void Describe(uint64_t now_ms, const Teller& tell) const override {
    inner_->Describe(now_ms, tell);
  }
  const char* Verify() const override { return inner_->Verify(); }
  void Release() override;

  ReleaseGate& synced_gate() override { return synced_gate_; }
  void WantSync() override { log_.WantSync(); }

  Engine& inner() { return *inner_; }

 private:
  Version ExecuteLogged(Batch& batch);

  const std::unique_ptr<Engine> inner_;
  const uint32_t keyspace_;
  Log& log_;
  ReleaseGate synced_gate_;
};

}  // namespace skep::durable

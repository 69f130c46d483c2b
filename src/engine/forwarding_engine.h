// forwarding_engine.h: an engine that wraps another one and forwards all calls to it, except those
// for gates and bulk loads.
//
// The wrapper has gates of its own, and releases them: a version that the inner engine has released
// need not be released in the outer one. A wrapper has no bulk loads: they would bypass its
// Execute.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/expiry_observer.h"

namespace skep {

class ForwardingEngine : public Engine, public ExpirySource {
 public:
  const EngineTraits& traits() const override { return inner_.traits(); }
  std::string format() const override { return inner_.format(); }
  Version Execute(Batch& batch) override { return inner_.Execute(batch); }
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override { return inner_.OpenSnapshot(now_ms); }
  void CloseSnapshot(SnapshotRef snapshot) override { inner_.CloseSnapshot(snapshot); }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    return inner_.Watch(key, now_ms);
  }
  void Unwatch(uint64_t watch) override { inner_.Unwatch(watch); }
  bool Observe(WriteObserver* observer) override { return inner_.Observe(observer); }
  void ObserveExpiry(ExpiryObserver* observer) override { ObserveExpiryOf(inner_, observer); }
  bool Maintain(uint64_t now_ms) override { return inner_.Maintain(now_ms); }
  EngineStatistics Statistics() const override { return inner_.Statistics(); }
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override {
    inner_.Describe(now_ms, visit);
  }
  const char* Verify() const override { return inner_.Verify(); }
  Version Latest() const override { return inner_.Latest(); }
  void StartAfter(Version version, uint64_t now_ms) override { inner_.StartAfter(version, now_ms); }
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override {
    return inner_.OpenPairIterator(now_ms);
  }
  void Release() override { inner_.Release(); }
  void WantSync(Version ticket, bool here) override { inner_.WantSync(ticket, here); }
  bool syncs_to_release() const override { return inner_.syncs_to_release(); }

  Engine& inner() const { return inner_; }

 protected:
  explicit ForwardingEngine(std::unique_ptr<Engine> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}
  // `inner` must outlive the wrapper.
  explicit ForwardingEngine(Engine& inner) : inner_(inner) {}

 private:
  const std::unique_ptr<Engine> owned_;  // null: the wrapper does not own it
  Engine& inner_;
};

}  // namespace skep

// masked_engine.h: an engine that pretends to be able to do less, for tests.
//
// It shows what an engine does that declares something unsupported: it refuses that with
// kNotSupported and passes on the rest: the other slots, or, of an atomic batch, the other parts.
#pragma once

#include <memory>
#include <utility>

#include "engine/batch_writer.h"
#include "engine/engine.h"
#include "engine/partial_batch.h"

namespace skep {

class MaskedEngine final : public Engine {
 public:
  // `traits` may only take away from what `inner` has.
  MaskedEngine(std::unique_ptr<Engine> inner, const EngineTraits& traits)
      : inner_(std::move(inner)), traits_(traits) {}

  const EngineTraits& traits() const override { return traits_; }

  Version Execute(Batch& batch) override {
    const Version ticket = ExecuteSupported(batch);
    gate_.Release(inner_->gate().released());
    return ticket;
  }

  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    if (!traits_.snapshots) return Fail(Code::kNotSupported, "this engine has no snapshots");
    return inner_->OpenSnapshot(now_ms);
  }
  Result<std::unique_ptr<PairWalk>> OpenWalk(uint64_t now_ms) override {
    return inner_->OpenWalk(now_ms);
  }
  void StartAfter(Version version, uint64_t now_ms) override {
    inner_->StartAfter(version, now_ms);
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    if (!traits_.atomic) return Fail(Code::kNotSupported, "this engine has no atomic batches");
    return inner_->Watch(key, now_ms);
  }
  void Unwatch(uint64_t watch) override { inner_->Unwatch(watch); }
  void CloseSnapshot(SnapshotRef snapshot) override { inner_->CloseSnapshot(snapshot); }
  bool Maintain(uint64_t now_ms) override { return inner_->Maintain(now_ms); }
  EngineStatistics Statistics() const override { return inner_->Statistics(); }
  const char* Verify() const override { return inner_->Verify(); }

 private:
  Version ExecuteSupported(Batch& batch) {
    if (const Status status = CheckBatch(batch, traits_); !status.ok()) {
      BatchWriter(batch).RefuseAll(status);
      return gate_.released();
    }
    return ExecutePartly(*inner_, batch, [&](uint32_t slot) {
      const Status status = CheckRequest(batch.requests()[slot], batch, traits_);
      return status.code() == Code::kNotSupported ? status : Status();
    });
  }

  std::unique_ptr<Engine> inner_;
  const EngineTraits traits_;
};

}  // namespace skep

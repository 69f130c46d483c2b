// masked_engine.h: an engine that pretends to be able to do less, for tests.
//
// It behaves as an engine that declares something unsupported: it refuses that with kNotSupported
// and passes on the rest: the other slots, or, in an atomic batch, the other parts.
#pragma once

#include <memory>
#include <utility>

#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "engine/partial_batch.h"

namespace skep {

class MaskedEngine final : public ForwardingEngine {
 public:
  // `traits` may only take away features of `inner`.
  MaskedEngine(std::unique_ptr<Engine> inner, const EngineTraits& traits)
      : ForwardingEngine(std::move(inner)), traits_(traits) {}

  const EngineTraits& traits() const override { return traits_; }

  Version Execute(Batch& batch) override {
    const Version ticket = ExecuteSupported(batch);
    gate_.Release(inner().gate().released());
    return ticket;
  }

  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    if (!traits_.snapshots) return Fail(Code::kNotSupported, "this engine has no snapshots");
    return inner().OpenSnapshot(now_ms);
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    if (!traits_.atomic) return Fail(Code::kNotSupported, "this engine has no atomic batches");
    return inner().Watch(key, now_ms);
  }

 private:
  Version ExecuteSupported(Batch& batch) {
    if (const Status status = CheckBatch(batch, traits_); !status.ok()) {
      BatchWriter(batch).RefuseAll(status);
      return gate_.released();
    }
    return ExecutePartly(inner(), batch, [&](uint32_t slot) {
      const Status status = CheckRequest(batch.requests()[slot], batch, traits_);
      return status.code() == Code::kNotSupported ? status : Status();
    });
  }

  const EngineTraits traits_;
};

}  // namespace skep

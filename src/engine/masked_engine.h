// masked_engine.h: an engine that pretends to be able to do less, for tests.
//
// It shows what an engine does that declares something unsupported: it refuses that with
// kNotSupported and passes on the rest.
#pragma once

#include <memory>
#include <utility>

#include "engine/batch_writer.h"
#include "engine/engine.h"

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
    const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
    Batch supported(batch.kind());
    supported.set_snapshot(batch.snapshot());
    supported.set_now_ms(batch.now_ms());
    supported.set_scan_bytes_max(batch.scan_bytes_max());
    std::vector<std::pair<uint32_t, Status>> refused;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Request& request = batch.requests()[slot];
      const Status status = CheckRequest(request, batch, traits_);
      if (status.code() == Code::kNotSupported) {
        refused.emplace_back(slot, status);
      } else {
        supported.Add(request);
      }
    }
    if (refused.empty()) return inner_->Execute(batch);
    if (!is_atomic) return ExecuteRest(batch, supported, refused);
    BatchWriter writer(batch);
    writer.Refuse(refused[0].first, refused[0].second);
    writer.AbortAllBut(refused[0].first);
    return gate_.released();
  }

  Version ExecuteRest(Batch& batch, Batch& supported,
                      const std::vector<std::pair<uint32_t, Status>>& refused) {
    const Version ticket = supported.empty() ? gate_.released() : inner_->Execute(supported);
    BatchWriter writer(batch);
    for (const auto& [slot, status] : refused) writer.Refuse(slot, status);
    uint32_t from = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const bool is_refused = writer.outcome(slot).status.code() == Code::kNotSupported;
      if (!is_refused) Copy(supported, from++, writer, slot);
    }
    return ticket;
  }

  static void Copy(const Batch& from, uint32_t from_slot, BatchWriter& to, uint32_t to_slot) {
    to.outcome(to_slot) = from.outcome(from_slot);
    to.outcome(to_slot).value = to.scratch().Copy(from.outcome(from_slot).value);
    to.BeginItems(to_slot);
    for (const Item& item : from.items(from_slot)) {
      to.AddItem(to_slot,
                 {.key = to.scratch().Copy(item.key), .value = to.scratch().Copy(item.value)});
    }
  }

  std::unique_ptr<Engine> inner_;
  const EngineTraits traits_;
};

}  // namespace skep

// masked_engine.h: an engine that pretends to be able to do less, for tests.
//
// It shows what an engine does that declares something unsupported: it refuses that with
// kNotSupported and passes on the rest: the other slots, or, of an atomic batch, the other parts.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

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
  // What is not passed on, and the slot because of which.
  struct Left {
    Part part;
    uint32_t culprit;
    Status status;
  };

  Version ExecuteSupported(Batch& batch) {
    if (const Status status = CheckBatch(batch, traits_); !status.ok()) {
      BatchWriter(batch).RefuseAll(status);
      return gate_.released();
    }
    const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
    std::vector<Left> left_out;
    ForEachPart(batch, [&](const Part& part) {
      for (uint32_t slot = part.begin; slot < part.end; ++slot) {
        const Status status = CheckRequest(batch.requests()[slot], batch, traits_);
        if (status.code() != Code::kNotSupported) continue;
        const Part whole =
            is_atomic ? part : Part{.begin = slot, .end = slot + 1, .is_first = false};
        left_out.push_back({.part = whole, .culprit = slot, .status = status});
        if (is_atomic) break;
      }
      return true;
    });
    if (left_out.empty()) return inner_->Execute(batch);
    if (is_atomic && left_out[0].part.is_first) return AbortAll(batch, left_out[0]);
    return ExecuteRest(batch, left_out);
  }

  Version AbortAll(Batch& batch, const Left& because) {
    Batch nothing;
    nothing.set_now_ms(batch.now_ms());
    inner_->Execute(nothing);  // time passes also for what is refused
    BatchWriter writer(batch);
    writer.Refuse(because.culprit, because.status);
    writer.AbortAllBut(because.culprit);
    return gate_.released();
  }

  // All but the parts that are left out, which are ascending.
  Version ExecuteRest(Batch& batch, const std::vector<Left>& left_out) {
    Batch supported(batch.kind());
    supported.set_snapshot(batch.snapshot());
    supported.set_now_ms(batch.now_ms());
    supported.set_scan_bytes_max(batch.scan_bytes_max());
    supported.set_scan_visits_max(batch.scan_visits_max());
    const auto is_left_out = [&](uint32_t slot) {
      return std::ranges::any_of(left_out, [&](const Left& left) {
        return slot >= left.part.begin && slot < left.part.end;
      });
    };
    size_t parts = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      for (; parts < batch.part_begins().size() && batch.part_begins()[parts] == slot; ++parts) {
        supported.BeginPart();
      }
      if (!is_left_out(slot)) supported.Add(batch.requests()[slot]);
    }
    const Version ticket = inner_->Execute(supported);
    BatchWriter writer(batch);
    uint32_t from = 0;
    uint32_t culprit = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      if (is_left_out(slot)) continue;
      if (supported.outcome(from).verdict != Verdict::kAborted) culprit = slot;
      Copy(supported, from++, writer, slot);
    }
    if (!supported.applied()) {
      writer.AbortAllBut(culprit);
      return ticket;
    }
    for (const Left& left : left_out) {
      writer.Refuse(left.culprit, left.status);
      writer.AbortPart(left.part, left.culprit);
    }
    return ticket;
  }

  static void Copy(const Batch& from, uint32_t from_slot, BatchWriter& to, uint32_t to_slot) {
    to.outcome(to_slot) = from.outcome(from_slot);
    to.outcome(to_slot).value = to.scratch().Copy(from.outcome(from_slot).value);
    to.BeginItems(to_slot);
    for (const Item& item : from.items(from_slot)) {
      to.AddItem(to_slot, item);
    }
  }

  std::unique_ptr<Engine> inner_;
  const EngineTraits traits_;
};

}  // namespace skep

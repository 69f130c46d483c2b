// supported_client.h: a client that asks only for operations that an engine with certain traits
// promises to be linearizable.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/engine.h"
#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

class SupportedClient final : public KvClient {
 public:
  // The traits must outlive the client.
  SupportedClient(std::unique_ptr<KvClient> inner, const EngineTraits& traits)
      : inner_(std::move(inner)), traits_(traits) {}

  bool Supports(const Operation& operation) const override {
    if (operation.kind != Operation::Kind::kExecute && !traits_.snapshots) return false;
    if (operation.steps.size() > 1 && !HasWholeBatches() && !ChangesOneKey(operation)) return false;
    for (const Step& step : operation.steps) {
      if (IsRange(step.action) && !traits_.ordered) return false;
      if (step.action == Action::kDeleteRange && !traits_.range_writes) return false;
      if (step.action == Action::kAddDecimal && !traits_.functions) return false;
      const bool is_batch = step.action == Action::kRename || step.action == Action::kExpireRange;
      if (is_batch && !HasWholeBatches()) return false;
      if (step.action == Action::kWatch && !traits_.atomic) return false;
      const bool expires = step.action == Action::kExpire || step.action == Action::kExpireRange ||
                           (step.deadline != 0 && step.deadline != kKeep);
      if (expires && step.action != Action::kTick && !traits_.expiry) return false;
      const bool reads = step.action == Action::kCount || step.action == Action::kScan;
      if (reads && operation.steps.size() == 1 && !traits_.whole_ranges) return false;
    }
    return inner_->Supports(operation);
  }
  Reply Perform(Operation& operation) override { return inner_->Perform(operation); }

 private:
  bool HasWholeBatches() const { return traits_.atomic && traits_.whole_batches; }
  // Returns whether it changes one key: no reader can see a part of that, whatever its conditions.
  bool ChangesOneKey(const Operation& operation) const {
    const auto is_point = [](const Step& step) { return !IsRange(step.action); };
    const auto acts = [](const Step& step) { return !IsCondition(step.action); };
    return traits_.atomic && std::ranges::all_of(operation.steps, is_point) &&
           std::ranges::count_if(operation.steps, acts) == 1;
  }

  std::unique_ptr<KvClient> inner_;
  const EngineTraits& traits_;
};

}  // namespace skep::linearizability

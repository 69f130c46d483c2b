// pool_client.h: a client of a pool whose answers are to be checked.
#pragma once

#include "engine/engine.h"
#include "skep/batch.h"
#include "tests/linearizability/kv_client.h"

namespace skep::simulation {

// `engine` outlives it. Thread safety: one owner.
class PoolClient final : public linearizability::KvClient {
 public:
  explicit PoolClient(Engine& engine) : engine_(engine) {}

  // Single steps: points and reads of ranges.
  bool Supports(const linearizability::Operation& operation) const override;
  Reply Perform(linearizability::Operation& operation) override;

 private:
  Engine& engine_;
  Batch batch_;
};

}  // namespace skep::simulation

// execute_all.h: batches of which nothing may be refused.
#pragma once

#include "engine/engine.h"

namespace skep::durable {

// Executes the batch, which is empty then. Returns the status of the first request that was
// refused.
inline Status ExecuteAll(Engine& engine, Batch& batch) {
  if (batch.empty()) return {};
  engine.Execute(batch);
  Status status;
  for (uint32_t slot = 0; slot < batch.size() && status.ok(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict == Verdict::kRefused) status = out.status;
  }
  batch.Clear();
  return status;
}

}  // namespace skep::durable

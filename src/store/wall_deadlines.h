// wall_deadlines.h: a batch whose deadlines are instants of the wall clock, on an engine, whose are
// those of the store's time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/store_now.h"
#include "engine/engine.h"

namespace skep {

// Executes the batch at this moment. While the wall clock is behind, its requests have the engine's
// deadlines for as long as it takes, and its outcomes and effects have the wall clock's afterwards.
// Thread safety, errors and cost as of Engine::Execute.
inline Version ExecuteByWall(Engine& engine, Batch& batch, const StoreNow& now) {
  batch.set_now_ms(now.ms);
  if (now.behind_ms == 0) return engine.Execute(batch);
  // The batch is the caller's to change; it only shows its parts as constants.
  std::vector<uint64_t> deadlines;
  for (const Request& request : batch.requests()) {
    deadlines.push_back(request.deadline_ms);
    const_cast<Request&>(request).deadline_ms = now.FromWall(request.deadline_ms);
  }
  const Version ticket = engine.Execute(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const_cast<Request&>(batch.requests()[slot]).deadline_ms = deadlines[slot];
    auto& outcome = const_cast<Outcome&>(batch.outcome(slot));
    outcome.deadline_ms = now.ToWall(outcome.deadline_ms);
  }
  for (const Effect& effect : batch.effects()) {
    const_cast<Effect&>(effect).deadline_ms = now.ToWall(effect.deadline_ms);
  }
  return ticket;
}

// Begins the batch at this moment, which Engine::Finish ends; while the wall clock is behind, it is
// executed instead.
inline BegunBatch BeginByWall(Engine& engine, Batch& batch, const StoreNow& now) {
  if (now.behind_ms != 0)
    return {.ticket = ExecuteByWall(engine, batch, now), .under_way = nullptr};
  batch.set_now_ms(now.ms);
  return engine.Begin(batch);
}

}  // namespace skep

// wall_deadlines.h: executes a batch whose deadlines are instants of the wall clock, while those of
// the engine are instants of the store's time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/store_now.h"
#include "engine/engine.h"

namespace skep {

// Executes the batch at this moment. While the wall clock is behind the store's time, the deadlines
// of its requests are translated for the time of the call, and those of its outcomes and effects
// are translated back. Thread safety, errors and cost as of Engine::Execute.
inline Version ExecuteByWall(Engine& engine, Batch& batch, const StoreNow& now) {
  batch.set_now_ms(now.ms);
  if (now.behind_ms == 0) return engine.Execute(batch);
  // The requests may be changed: the batch is not const, but shows its parts as constants.
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

// Begins the batch at this moment; Engine::Finish ends it. While the wall clock is behind the
// store's time, the batch is executed instead.
inline BegunBatch BeginByWall(Engine& engine, Batch& batch, const StoreNow& now) {
  if (now.behind_ms != 0)
    return {.ticket = ExecuteByWall(engine, batch, now), .under_way = nullptr};
  batch.set_now_ms(now.ms);
  return engine.Begin(batch);
}

}  // namespace skep

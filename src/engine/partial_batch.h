// partial_batch.h: a batch of which an engine executes some requests, and the others are refused.
#pragma once

#include <functional>

#include "engine/engine.h"

namespace skep {

// Executes on `engine` the slots for which `why_not` returns kOk; the others are refused with the
// status that it returns. A part of an atomic batch is executed whole or not at all, and nothing is
// if the first part is not. Returns the ticket. Cost: a copy of the batch and its answers, if
// something is refused.
Version ExecutePartly(Engine& engine, Batch& batch,
                      const std::function<Status(uint32_t slot)>& why_not);

}  // namespace skep

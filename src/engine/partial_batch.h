// partial_batch.h: a batch of which an engine executes what it may, and the rest is refused.
#pragma once

#include <functional>

#include "engine/engine.h"

namespace skep {

// Executes on `engine` the slots for which `why_not` is kOk; the others are refused with what it
// says. Of an atomic batch a part is executed whole or not at all, and nothing if its first part is
// not. Returns the ticket. Cost: a copy of the batch and its answers, if something is refused.
Version ExecutePartly(Engine& engine, Batch& batch,
                      const std::function<Status(uint32_t slot)>& why_not);

}  // namespace skep

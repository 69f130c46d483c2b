// check.h: the invariants C1 to C6 of layout.h, for tests.
#pragma once

#include "engine/engine.h"

namespace skep::collections {

// Checks every large collection of the engine. Returns null, or a literal that names the broken
// invariant. Nothing else may run meanwhile. Cost: of all hidden items.
const char* CheckCollections(Engine& engine);

}  // namespace skep::collections

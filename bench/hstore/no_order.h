// no_order.h: an ordered index that keeps nothing, for an index server that has its table alone.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace skep::bench {

// Takes all writes, and refuses what reads. Thread-safe.
std::unique_ptr<Engine> MakeNoOrder();

}  // namespace skep::bench

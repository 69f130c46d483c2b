// sample_again.h: samples (Op::kSample) of a keyspace of whose items many are hidden.
#pragma once

#include "engine/engine.h"
#include "skep/batch.h"

namespace skep::collections {

// Draws again what samples of an executed batch have drawn and is hidden (layout.h), of the newest
// state: so the batch may not be atomic. A few draws find a key where not nearly all items are
// hidden; else the keys that are seen are few beside those, and are counted.
//
// Cost: 32 draws for each sample, or a count of all keys.
void SampleAgain(Engine& inner, Batch& batch);

}  // namespace skep::collections

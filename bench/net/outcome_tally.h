// outcome_tally.h: counts the outcomes of operations that were batches of Skep.
#pragma once

#include <cstddef>

#include "bench/net/protocol.h"
#include "skep/batch.h"

namespace skep::bench {

// Counts the outcome of one operation of that kind. Values are to have `value_bytes`.
inline void CountOutcome(OpKind kind, const Outcome& outcome, size_t value_bytes, NetTally& tally) {
  if (outcome.verdict == Verdict::kRefused) {
    tally.CountError(outcome.status.what());
  } else if (kind == OpKind::kScan) {
    ++tally.scans;
    tally.items += outcome.item_count;
  } else if (kind != OpKind::kRead) {
    ++tally.stored;
  } else if (outcome.verdict != Verdict::kDone) {
    ++tally.misses;
  } else if (outcome.value.size() == value_bytes) {
    ++tally.hits;
  } else {
    tally.CountError("a value has the wrong size");
  }
}

}  // namespace skep::bench

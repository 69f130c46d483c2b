// foreign_floor.h: scans from the floor of a key at a place that has other ranges, too.
#pragma once

#include <algorithm>
#include <string_view>

#include "engine/batch_writer.h"

namespace skep::ranges {

// Takes the floor out of an answer if it lies below `lower`, the beginning of the keys that count.
// There is no key between it and the key that the scan was to begin at.
inline void DropFloorBelow(Batch& batch, uint32_t slot, std::string_view lower) {
  BatchWriter writer(batch, BatchWriter::KeepOutcomes{});
  Outcome& outcome = writer.outcome(slot);
  const Request& request = batch.requests()[slot];
  if (request.op != Op::kScan || !request.has(Request::kSeekFloor)) return;
  if (outcome.item_count == 0 || batch.items(slot).front().key >= lower) return;
  writer.DropFirstItem(slot);
  if (outcome.more) outcome.value = writer.scratch().Copy(std::max(outcome.value, lower));
}

}  // namespace skep::ranges

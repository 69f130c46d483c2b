// single_get.h: executes a batch of one kGet.
//
// A single read has no other misses to overlap with, so it needs none of what a batch has: no
// windows of places, no rests, no floors. It enters an epoch, finds its leaf, asks for all lines of
// the leaf that its search may read as soon as the leaf's address is known, and fills in the
// outcome in place. reader.h says why what it reads is the newest state.
#pragma once

#include "btree/core.h"
#include "btree/reader.h"
#include "engine/batch_writer.h"

namespace skep::btree {

// Whether ExecuteSingleGet() can execute the batch: one kGet of the newest state, without a hint,
// that CheckBatch and CheckRequest have no objection to.
inline bool IsSingleGet(const Batch& batch, const EngineTraits& traits) {
  if (batch.size() != 1 || batch.kind() != Batch::Kind::kUnordered) return false;
  const Request& request = batch.requests().front();
  return request.op == Op::kGet && request.hint.bits == 0 && batch.snapshot().id == 0 &&
         batch.part_begins().empty() && IsSoundPoint(request, traits);
}

// Fills in the outcome of such a batch and returns its ticket. The thread is outside its epoch.
// Wait-free but for the memory of the answer.
template <class Layout>
Version ExecuteSingleGet(Core& core, ThreadState& thread, const EngineTraits& traits, Batch& batch);

}  // namespace skep::btree

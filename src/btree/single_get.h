// single_get.h: executes a batch of one kGet, and gets without a batch.
//
// A single read has no other misses to overlap with, so it needs none of what a batch has: no
// windows of places, no rests, no floors. It enters an epoch, finds its leaf, asks for all lines of
// the leaf that its search may read as soon as the leaf's address is known, and fills in the
// outcome, or the caller's string, in place. reader.h says why what it reads is the newest state.
//
// A get without a batch knows no time, so it answers only for keys without a deadline: what it
// tells of those is the same at every time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

// PlainGets::GetPlain of a key that the engine takes, but for the stamp of the ticket. The thread
// is outside its epoch. Wait-free but for the memory of the value. Values that lie outside their
// leaf are left to batches.
template <class Layout>
std::optional<Version> GetPlain(Core& core, ThreadState& thread, std::string_view key,
                                std::optional<std::string>* value);

}  // namespace skep::btree

// batch_writer.h: how an engine fills in a batch's outcomes.
#pragma once

#include "skep/batch.h"

namespace skep {

// Thread safety: the thread that executes the batch.
class BatchWriter {
 public:
  // Drops earlier outcomes and makes one for every request, kRefused until set.
  explicit BatchWriter(Batch& batch) : batch_(batch) {
    batch.outcomes_.assign(batch.requests_.size(), Outcome{});
    batch.items_.clear();
  }

  Outcome& outcome(uint32_t slot) { return batch_.outcomes_[slot]; }
  Scratch& scratch() { return batch_.scratch_; }

  void Refuse(uint32_t slot, Status status) {
    outcome(slot).verdict = Verdict::kRefused;
    outcome(slot).status = status;
  }
  // Every slot.
  void RefuseAll(Status status) {
    for (Outcome& o : batch_.outcomes_) o = {.verdict = Verdict::kRefused, .status = status};
  }
  // Every slot but `culprit`: the batch was not applied.
  void AbortAllBut(uint32_t culprit);

  // The items of one scan must be added one after the other: BeginItems, AddItem...
  void BeginItems(uint32_t slot) {
    outcome(slot).first_item = batch_.items_.size();
    outcome(slot).item_count = 0;
  }
  void AddItem(uint32_t slot, Item item) {
    batch_.items_.push_back(item);
    ++outcome(slot).item_count;
  }

 private:
  Batch& batch_;
};

// Whether the request is well-formed for an engine with these traits, in this batch: the checks
// that are the same for every engine. kOk, or why it must be refused.
struct EngineTraits;
Status CheckRequest(const Request& request, const Batch& batch, const EngineTraits& traits);

}  // namespace skep

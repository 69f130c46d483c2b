// read_run.h: executes runs of consecutive gets of an unordered batch.
//
//   window of up to 256 gets
//     hash, sort by partition
//     fetch the buckets
//     look, partition by partition    gets of inline pairs of these buckets are answered
//     fetch what buckets lead to      records, chained buckets
//     go on, partition by partition   gets of these are answered; so on, some steps along chains
//     finish, partition by partition  the rest, if any
//
// Each step locks a partition for as long as it needs it. If the table changes between two steps,
// the remaining gets are done by the last step, which relies on no earlier one. Gets change
// nothing, so their order does not matter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/batch_writer.h"
#include "hash/bucket_probe.h"
#include "hash/core.h"

namespace skep::hash {

// Does a get of the key. The partition must be locked.
void Get(Table& table, const Key& key, uint64_t now_ms, const Request& request, BatchWriter& out,
         uint32_t slot);

// Owner: one execution of one batch.
class ReadRun {
 public:
  // The memory of a window: too large to be made anew for each batch.
  struct Window {
    std::array<uint64_t, kWindow> heads;
    std::array<uint64_t, kWindow> hashes;
    LinesToFetch lines;
    BucketProbe bucket_probe;
  };

  // The groups and the window must not be in use.
  ReadRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out, Groups& groups,
          Window& window)
      : core_(core),
        traits_(traits),
        requests_(batch.requests()),
        out_(out),
        groups_(groups),
        window_(window) {}

  // Returns how many gets, up to a window, the run can take from this slot on; 0 if they are too
  // few to be worth a run and the batch has more requests after them.
  uint32_t Count(uint32_t slot) const;
  // Fills in the outcomes of `count` gets.
  void Do(uint32_t slot, uint32_t count);
  // Returns the ticket of all gets that are done.
  Version ticket() const { return ticket_; }

 private:
  Key KeyAt(uint32_t place) const {
    return {requests_[begin_ + place].key, window_.hashes[place], window_.heads[place]};
  }
  void Sort(uint32_t count);
  void Look(Table& table, Groups::Group& group);
  void GoOn(Table& table, Groups::Group& group);
  bool Follow(const Table& table, uint16_t place, uint64_t now_ms);
  void Finish(Table& table, const Groups::Group& group);
  void Note(const Partition& partition) {
    if (core_.numbers.wanted()) ticket_ = std::max(ticket_, partition.number);
  }

  Core& core_;
  const EngineTraits& traits_;
  const std::span<const Request> requests_;
  BatchWriter& out_;
  Groups& groups_;
  Window& window_;
  uint32_t begin_ = 0;  // the slot of the window's first request
  uint32_t left_ = 0;   // how many gets of the window are not answered yet
  Version ticket_ = 0;
};

}  // namespace skep::hash

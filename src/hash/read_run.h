// read_run.h: consecutive gets of an unordered batch.
//
//   window of up to 256 gets
//     hash, sort by partition
//     fetch the buckets
//     look, partition by partition    what its bucket has inline is answered
//     fetch what buckets lead to      records, chained buckets
//     go on, partition by partition   what is there is answered; so on along the chains, some way
//     finish, partition by partition  the rest, if any
//
// Each step locks a partition for as long as it needs it. If the table changes between two steps,
// what is left is done by the last step, which relies on nothing. Gets change nothing, so their
// order does not matter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/batch_writer.h"
#include "hash/bucket_probe.h"
#include "hash/core.h"

namespace skep::hash {

// Does a get of the key. The partition is locked.
void Get(Table& table, const Key& key, uint64_t now_ms, const Request& request, BatchWriter& out,
         uint32_t slot);

// Owner: one execution of one batch.
class ReadRun {
 public:
  // What a window is worked on in: too large to be made anew for each batch.
  struct Window {
    std::array<uint64_t, kWindow> heads;
    std::array<uint64_t, kWindow> hashes;
    LinesToFetch lines;
    BucketProbe bucket_probe;
  };

  // Groups and window are free to be used.
  ReadRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out, Groups& groups,
          Window& window)
      : core_(core),
        traits_(traits),
        requests_(batch.requests()),
        out_(out),
        groups_(groups),
        window_(window) {}

  // How many gets, up to a window, it can take from this slot on. Where the batch has more after
  // them, fewer than are worth a run count as none.
  uint32_t Count(uint32_t slot) const;
  // Fills in the outcomes of so many.
  void Do(uint32_t slot, uint32_t count);
  // Of all that is done.
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
  uint32_t left_ = 0;   // of the window, not answered yet
  Version ticket_ = 0;
};

}  // namespace skep::hash

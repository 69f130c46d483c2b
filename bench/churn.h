// churn.h: updates, inserts and deletes, mixed so that the number of items stays.
//
// A thread's keys are a queue. At first it holds the thread's share of the loaded keys, in the
// order of a sweep; a new key is put to its end, the key at its head is deleted, and any key in it
// may be updated. So it is known which keys are there without a list of them:
//
//   place    0            deleted        loaded            loaded + inserted
//            | deleted ...   | still there ... | inserted ...   |
//
// The bytes of keys are random, so the next one to be deleted lies anywhere in the order of keys.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "bench/key_sweep.h"
#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

// The changes of one thread. Equal arguments give equal changes. Threads share no keys.
class Churn final : public OpSource {
 public:
  // `items` >= `threads` > `thread`. Of the workload its shares of update, insert and remove count.
  Churn(const Workload& workload, uint64_t items, uint32_t thread, uint32_t threads, uint64_t seed);
  void Fill(OpStream& stream, size_t count) override;

  // What makes the thread's keys the loaded ones again. No more changes may be made meanwhile.
  class Undo final : public OpSource {
   public:
    explicit Undo(const Churn& churn);
    uint64_t ops() const { return deletes_end_ - next_delete_ + inserts_end_; }
    // No more than ops() in all.
    void Fill(OpStream& stream, size_t count) override;

   private:
    const Churn& churn_;
    uint64_t next_delete_;  // places: first inserted keys that are there are deleted,
    uint64_t deletes_end_;
    uint64_t next_insert_ = 0;  // then loaded keys that are not are inserted
    uint64_t inserts_end_;
  };

 private:
  OpKind DrawKind();
  uint64_t NumberAt(uint64_t place) const;
  uint64_t end() const { return loaded_ + inserted_; }

  const Workload workload_;
  const SweepOrder order_;
  const uint64_t items_;
  const uint32_t thread_;
  const uint32_t threads_;
  const uint64_t loaded_;  // of this thread
  SeededRandom random_;
  uint64_t inserted_ = 0;
  uint64_t deleted_ = 0;  // < end()
};

}  // namespace skep::bench

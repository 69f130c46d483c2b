// churn.h: updates, inserts and deletes, mixed so that the number of items stays.
//
// The keys of a thread are a queue. At first it holds the thread's share of the loaded keys, in the
// order of a sweep; a new key is put at its end, the key at its head is deleted, and any key in it
// may be updated. So it is known which keys exist without a list of them:
//
//   place    0            deleted        loaded            loaded + inserted
//            | deleted ...   | existing ...    | inserted ...   |
//
// The bytes of keys are random, so the next one to be deleted lies anywhere in the order of keys.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "bench/key_sweep.h"
#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

// The changes of one thread. Equal arguments give equal changes. No two threads share a key.
class Churn final : public OpSource {
 public:
  // `items` >= `threads` > `thread`. Uses the workload's shares of update, insert and remove.
  Churn(const Workload& workload, uint64_t items, uint32_t thread, uint32_t threads, uint64_t seed);
  void Fill(OpStream& stream, size_t count) override;

  // Makes the thread's keys the loaded ones again. No more changes may be made meanwhile.
  class Undo final : public OpSource {
   public:
    explicit Undo(const Churn& churn);
    uint64_t ops() const { return deletes_end_ - next_delete_ + inserts_end_; }
    // At most ops() operations in all.
    void Fill(OpStream& stream, size_t count) override;

   private:
    const Churn& churn_;
    uint64_t next_delete_;  // places: first the inserted keys that exist are deleted,
    uint64_t deletes_end_;
    uint64_t next_insert_ = 0;  // then the loaded keys that do not are inserted
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
  const uint64_t loaded_;  // number of this thread's loaded keys
  SeededRandom random_;
  uint64_t inserted_ = 0;
  uint64_t deleted_ = 0;  // < end()
};

}  // namespace skep::bench

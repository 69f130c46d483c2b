// store_client.h: a store in this process (skep/store.h) as a client of the checker's tests.
#pragma once

#include <map>

#include "skep/store.h"
#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

class StoreClient : public KvClient {
 public:
  // The store must outlive the client.
  explicit StoreClient(Store& store) : store_(store) {}

  bool Supports(const Operation& operation) const override;
  // One step is asked through the store's own call where it has one, more as one atomic batch.
  // Every other point is a batch of one that takes a hint and gives one, often of another key;
  // every other range-delete of everything is a delete-all. A rename is a compare-and-set loop of
  // batches: any of the batches may be its instant.
  Reply Perform(Operation& operation) override;

 private:
  Reply PerformPoint(Step& step);
  Reply PerformHinted(Step& step);
  Reply PerformRange(Step& step, const Snapshot* at);
  Reply Scan(Step& step, const Snapshot* at);
  Reply DeleteAll(Step& step);
  Reply PerformBatch(Operation& operation);
  Reply Rename(Step& step);
  Reply OpenSnapshot(uint32_t number);
  Reply ReadSnapshot(Operation& operation);

  Store& store_;
  std::map<uint32_t, Snapshot> snapshots_;
  uint64_t points_ = 0;                // asked
  uint64_t clears_ = 0;                // range deletes of everything asked
  std::map<std::string, Hint> hints_;  // the latest of each key
  Batch unordered_;
  Batch atomic_{Batch::Kind::kAtomic};
};

}  // namespace skep::linearizability

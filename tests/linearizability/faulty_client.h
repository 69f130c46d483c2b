// faulty_client.h: clients that falsify what they pass on, each in a way in which real stores have
// failed. They show that the checker finds such faults.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

enum class Fault : uint8_t {
  kReadsFromACache,    // every other get of a key is answered from the last one
  kSplitsBatches,      // an atomic batch goes out one step at a time
  kScansInTwoHalves,   // a scan is two scans
  kCountsByGets,       // a count is one get for each key of the alphabet
  kMovesItsSnapshots,  // a snapshot is read at the present
  kReadsThenWrites,    // an addition is a get and a put
  kForgetsWatches,     // every other batch does not need its watched keys to be unchanged
  kWatchesLate,        // a key is watched when the next batch goes out
  kJudgesFirst,        // conditions are sent as a batch of their own, before the rest
  kSeesThePast,        // a failed comparison returns what the last one of the key has seen
};
inline constexpr Fault kFaults[] = {Fault::kReadsFromACache,   Fault::kSplitsBatches,
                                    Fault::kScansInTwoHalves,  Fault::kCountsByGets,
                                    Fault::kMovesItsSnapshots, Fault::kReadsThenWrites,
                                    Fault::kForgetsWatches,    Fault::kWatchesLate,
                                    Fault::kJudgesFirst,       Fault::kSeesThePast};

// Returns whether an engine with these traits promises what a client with this fault falsifies.
bool Promises(const EngineTraits& traits, Fault fault);

class FaultyClient final : public KvClient {
 public:
  FaultyClient(std::unique_ptr<KvClient> inner, Fault fault)
      : inner_(std::move(inner)), fault_(fault) {}

  bool Supports(const Operation& operation) const override { return inner_->Supports(operation); }
  Reply Perform(Operation& operation) override;

 private:
  // Performs one step on its own, after other threads had time to run.
  Reply PerformAlone(Step& step);
  Reply Get(Step& step);
  Reply SplitBatch(Operation& operation);
  Reply ScanHalves(Step& step);
  Reply CountByGets(Step& step);
  Reply AddByPut(Step& step);
  Reply ForgetWatches(Operation& operation);
  Reply WatchLate(Operation& operation);
  Reply JudgeFirst(Operation& operation);
  Reply TellThePast(Operation& operation);

  std::unique_ptr<KvClient> inner_;
  const Fault fault_;
  std::map<std::string, std::optional<std::string>> cache_;
  std::vector<Operation> late_;  // watches
  uint64_t batches_ = 0;
};

}  // namespace skep::linearizability

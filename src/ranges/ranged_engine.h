// ranged_engine.h: an ordered keyspace over several engines, each of which has a range of its keys.
//
//   lower bounds   ""            "m"             "t"
//                  | engine 0    | engine 1      | engine 2 ...
//
// A batch whose keys and ranges lie in one part is executed there as it is. Of any other one each
// part gets its points as one batch: those of parts that can begin a batch (Engine::Begin), as
// servers, are under way at the same time, others execute one after the other. Then the batch's
// ranges go from part to part in their order, each part with what is left of the limits.
//
// What is promised. Each operation on one key is as its part's engine has it: linearizable, if that
//   one is. A range that crosses a border is of one state in each part, and of another one in the
//   next: of two writes to different parts it may see the later one only. A write of a range that
//   is refused in a part has been done in the parts before. An atomic batch that
//   lies in one part is that part's business; any other one is refused.
// Waiting. A batch takes as long as the slowest of the servers and all of the pools among its parts
//   together. One that does not answer makes its own operations fail, and ranges that reach it.
// Limits. Each part has all of the batch's limit of answers and of work; GETs whose values are
//   beyond it together are refused. What is left of a limit of the keys that a range visits
//   (Batch::set_scan_visits_max, the limit of a count) counts what was returned before: no part
//   tells how many keys it has visited in vain, so each may visit as many again.
//
// The parts' answers have to be final when they are given: the engine waits for their release.
// Versions and tickets of different parts mean nothing to each other, so this engine has none; nor
// has it snapshots, samples, walks and watches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/batch_writer.h"
#include "engine/engine.h"
#include "engine/expiry_observer.h"

namespace skep::ranges {

struct RangePart {
  std::string lower;  // the part has the keys from here to the next part's
  Engine* engine = nullptr;
};

class RangedEngine final : public Engine, public ExpirySource {
 public:
  // The first lower bound is empty, and they rise. Each engine is ordered, outlives this one, and
  // may have several parts, and keys that are no part's.
  explicit RangedEngine(std::vector<RangePart> parts);

  const EngineTraits& traits() const override { return traits_; }
  // Cost: over that of the parts, for a batch that lies in several a copy of requests and answers.
  Version Execute(Batch& batch) override;
  //   kNotSupported
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef) override {}
  //   kNotSupported
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  void ObserveExpiry(ExpiryObserver* observer) override;
  bool Maintain(uint64_t now_ms) override;
  // The sums.
  EngineStatistics Statistics() const override;
  // Each part's numbers, as "range0_..." and so on.
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  const char* Verify() const override;
  void StartAfter(Version version, uint64_t now_ms) override;
  //   kNotSupported
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;

  const std::vector<RangePart>& parts() const { return parts_; }
  size_t PartOf(std::string_view key) const;
  // The last part with keys of a range from `key` on.
  size_t LastPartOf(const Request& range) const;

 private:
  std::optional<size_t> OnlyPartOf(const Batch& batch) const;
  bool LiesIn(const Request& request, size_t part) const;
  void ExecuteWhole(size_t part, Batch& batch);
  void ExecutePoints(const Batch& batch, BatchWriter& out);
  void ExecuteRanges(const Batch& batch, BatchWriter& out);

  const std::vector<RangePart> parts_;
  const EngineTraits traits_;
};

}  // namespace skep::ranges

// hashleaf_engine.h: HeteroKV's tree of hash tables as an engine, for batches of pairs of one size.
//
//   Execute --+-- points of an unordered batch ---> PointRun: Sorter, leaves in turn --+
//             +-- ranges ------------------------> Ranges: leaves held together -------+--> Leaf
//             +-- atomic batches ----------------> AtomicRun: leaves held together ----+    Table
//                                                                                     SortedRun
// Phases. An unordered batch is cut where an operation changes many keys (kDeleteRange,
// kDeleteAll): what is before it in the batch is done before it. Between two cuts all points come
// first, in any order of keys, then the ranges that only read, by their first key. Each operation
// still takes effect at one instant of the call: so it is what an unordered batch allows (batch.h),
// scans are linearizable, and one of them may see the batch's own writes.
//
// Keys and values of one size each: others are refused with kTooLarge or kInvalidArgument. No
// deadlines, no old versions, no snapshots: what needs them is refused, and tickets are 0 unless
// writes are numbered. What has to be saved as it was at one instant is read by a SnapshotIterator.
#pragma once

#include <memory>
#include <string>

#include "engine/engine_info.h"
#include "hashleaf/core.h"

namespace skep {

class HashleafEngine {
 public:
  // Its map is flat: a keyspace that is hardly used is one leaf of 4 KiB.
  static constexpr uint32_t kKeyspacesMax = 64;
  static const EngineInfo kInfo;
  // Engine::format() of one with pairs of these sizes.
  static std::string FormatOf(uint32_t key_bytes, uint32_t value_bytes);

  // As options.index.hashleaf says, which kInfo.check has found good. Null: no memory.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);
  static std::unique_ptr<Engine> Make(const EngineOptions& options,
                                      const hashleaf::Settings& settings);
};

}  // namespace skep

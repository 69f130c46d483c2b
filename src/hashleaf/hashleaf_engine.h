// hashleaf_engine.h: HeteroKV's tree of hash tables as an engine, for batches of pairs of one size.
//
//   Execute --+-- unordered points --> PointRun: Dispatcher, leaves in turn -+
//             +-- ranges ------------> Ranges: leaves held together ---------+--> Leaf
//             +-- atomic batches ----> AtomicRun: leaves held together ------+    Table
//                                                                                 SortedRun
// Phases. An unordered batch is cut at each operation that changes many keys (kDeleteRange,
// kDeleteAll): requests before it in the batch are done before it. Between two cuts all points come
// first, in any order of keys, then the ranges that only read, by their first key. Each operation
// takes effect at one instant of the call, as an unordered batch allows (batch.h): scans are
// linearizable, and a scan may see the batch's own writes.
//
// All keys have one size, and all values: others are refused with kTooLarge or kInvalidArgument.
// There are no deadlines, no old versions and no snapshots: operations that need them are refused,
// and tickets are 0 unless writes are numbered. A SnapshotIterator reads all pairs as they were at
// one instant.
#pragma once

#include <memory>
#include <string>

#include "engine/engine_info.h"
#include "hashleaf/core.h"

namespace skep {

class HashleafEngine {
 public:
  // The leaf map is flat: a keyspace that is hardly used is one leaf of 4 KiB.
  static constexpr uint32_t kKeyspacesMax = 64;
  static const EngineInfo kInfo;
  // Returns Engine::format() of an engine with pairs of these sizes.
  static std::string FormatOf(uint32_t key_bytes, uint32_t value_bytes);

  // Makes an engine with the options options.index.hashleaf, which kInfo.check must have accepted.
  // Returns null if there is no memory.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);
  static std::unique_ptr<Engine> Make(const EngineOptions& options,
                                      const hashleaf::Settings& settings);
};

}  // namespace skep

// hash_engine.h: KV-Direct's hash table as an engine.
//
//   Execute --+-- runs of gets ------------------> ReadRun ----------------> Table
//             +-- points of an unordered batch ---> PointRun --+--> ReservationStation --> Table
//             +-- atomic batches -----------------> AtomicRun -+                      |
//             +-- kSample, kDeleteAll, kCount: all partitions locked            Slabs, Arena
//             +-- kWalk: a few chains at a time ----------------> CursorScanner --> Table
//   GetPlain ----- one partition locked ----------------------------------------> Table
//
// The engine has no order, no old versions and no snapshots: operations that need them are refused,
// and tickets are 0. Points and atomic batches, also those that only read, are linearizable all the
// same (partition.h). A SnapshotIterator reads all pairs as they were at one instant.
#pragma once

#include <memory>

#include "engine/engine_info.h"
#include "engine/expiry_observer.h"
#include "engine/plain_gets.h"
#include "hash/core.h"
#include "hash/snapshot_iterator.h"

namespace skep {

class BatchWriter;

class HashEngine final : public Engine, public ExpirySource, public PlainGets {
 public:
  // Each partition takes some mappings of the process, of which a system allows 65530
  // (vm.max_map_count).
  static constexpr uint32_t kKeyspacesMax = 64;
  static const EngineInfo kInfo;

  struct Options {
    uint32_t partitions = 0;  // a power of two up to hash::kPartitionsMax; 0: two for each CPU
    // Partitions share arenas, each of which addresses one region of its own. A power of two; 0: as
    // many as can address the machine's memory.
    uint32_t arenas = 0;
    uint64_t region_bytes = hash::Slabs::kAddressableBytes;
    hash::TableOptions table;
  };

  // Returns null if there is no address space.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);
  static std::unique_ptr<HashEngine> Make(const EngineOptions& options, const Options& own);

  const EngineTraits& traits() const override { return traits_; }
  Version Execute(Batch& batch) override;
  std::optional<Version> GetPlain(std::string_view key, std::optional<std::string>* value) override;
  Version GetManyPlain(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                       PlainValues values) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef) override {}
  Version Latest() const override { return core_.numbers.last(); }
  void StartAfter(Version version, uint64_t now_ms) override;
  // snapshot_iterator.h
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  // Of keys that are reclaimed; a key whose place a write takes is not told.
  void ObserveExpiry(ExpiryObserver* observer) override {
    expiry_observer_.store(observer, std::memory_order_release);
  }
  bool Maintain(uint64_t now_ms) override;
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  const char* Verify() const override;

 private:
  explicit HashEngine(const EngineOptions& options);

  Version ExecuteUnordered(Batch& batch, BatchWriter& out);
  void CountAll(BatchWriter& out, uint32_t slot);
  void DeleteAll(BatchWriter& out, uint32_t slot);
  void Sample(const Request& request, BatchWriter& out, uint32_t slot);

  const EngineOptions options_;
  const EngineTraits traits_;
  hash::Core core_;
  std::atomic<uint64_t> expired_keys_{0};
  std::atomic<ExpiryObserver*> expiry_observer_{nullptr};  // release and acquire: it is used
};

}  // namespace skep

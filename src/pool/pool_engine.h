// pool_engine.h: a pool as an engine: its clients are the threads that execute batches.
//
//   points     looked up one-sided, many side by side (lookup.h)
//   plain PUT, INSERT, UPDATE, DELETE
//              the item is written, then committed with its condition (item_writer.h)
//   what depends on the value (when, functions)
//              looked up, decided here by the rules of every engine (engine/point.h), written, and
//              committed on condition that the key's slot is still the one that was looked up; if
//              it is not, again
//   scans      asked of the sorted server, whose slots' items are then read (rule A)
//
// Rule A (H1). The sorted server says up to which index R of the log it has scanned. The reads of
//   the items are posted together with one of the hash server's word `epoch | applied`; the scan is
//   answered once the word has the same epoch and R is applied. Else the word is read again, and if
//   its epoch is another one the scan is made again. So whatever a scan has shown, a GET that
//   begins after it finds, too; and what a GET has found was acknowledged by the sorted server
//   before, so that a scan which begins after it has it.
// A scan's items may be read for longer than read_ns_max: an item that checks is the slot's, as a
//   slot comes again only after its chunk was recycled 256 times, which takes 512 times
//   read_ns_max; the scan is made again if one does not check, or after 256 times read_ns_max.
//
// Traits. Ordered, whole ranges, functions, conditional points. No snapshots, deadlines, atomic
//   batches, watches, samples, or deletes of ranges: refused with kNotSupported. A scan gives at
//   most 2^18 items.
//
// Progress. A write that depends on the value is made again only if another write of the key came
//   between; after kTriesMax times it is refused with kUnavailable. Every batch ends after
//   `timeout_ms` at the latest.
//
// Thread-safe. Each Execute takes a session that is free, or opens one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "pool/client_session.h"
#include "rma/fabric.h"

namespace skep::pool {

struct PoolEngineOptions {
  uint32_t timeout_ms = 10'000;
  size_t cache_entries = 64 * 1024;  // slots that a session remembers; 32 bytes each
  // Items that a scan reads side by side, at most; 1: one after the other, as in the paper.
  uint32_t scan_window = 1024;
};

class BatchWorker;

class PoolEngine final : public Engine {
 public:
  // `fabric` and `clock` outlive it. `source` is thread-safe.
  PoolEngine(rma::Fabric& fabric, Clock& clock, MapSource source, const PoolEngineOptions& options);
  ~PoolEngine() override;

  const EngineTraits& traits() const override;
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef) override {}
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  // Now and then asks for a lease in the name of each session that is idle, so that the pool does
  // not forget it; and whether a pool that was away answers again. May take a second. True: another
  // session is due.
  bool Maintain(uint64_t now_ms) override;
  // The hash server's items; 0 if it does not answer within a second.
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  const char* Verify() const override { return nullptr; }
  void StartAfter(Version, uint64_t) override {}
  //   kNotSupported
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;

  // The sum of all sessions' figures.
  ClientStatistics statistics() const;

 private:
  uint64_t DeadlineNs() const;
  // An index server that has answered this session since then shows that the pool is there.
  void Learn(const ClientSession& session, uint64_t began_ns);
  // A request that began then has waited for as long as it may.
  void NoteWait(uint64_t began_ns);
  // Nothing: the hash server does not answer within a second.
  std::optional<PoolStatus> AskForStatus() const;
  Result<std::unique_ptr<BatchWorker>> TakeWorker() const;
  void GiveBack(std::unique_ptr<BatchWorker> worker) const;

  rma::Fabric& fabric_;
  Clock& clock_;
  const MapSource source_;
  const PoolEngineOptions options_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<BatchWorker>> idle_ SKEP_GUARDED_BY(mutex_);
  uint64_t keep_alive_ns_ SKEP_GUARDED_BY(mutex_) = 0;  // when the next idle session is looked at
  mutable ClientStatistics total_ SKEP_GUARDED_BY(mutex_);
  mutable std::atomic<uint64_t> no_status_until_ns_{0};
  // A request has waited for as long as it may, and no index server has answered any session since
  // it began.
  bool is_away_ SKEP_GUARDED_BY(mutex_) = false;
  mutable uint64_t heard_ns_ SKEP_GUARDED_BY(mutex_) = 0;  // the latest of all sessions
};

}  // namespace skep::pool

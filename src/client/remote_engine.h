// remote_engine.h: a keyspace of a server, as an engine: Begin sends the batch, Finish waits for
// the reply, Execute does both. With ConnectOptions::datagrams, batches that are under way at the
// same time are in no order, not even on one key.
//
// A server cuts long ranges into pieces of a millisecond or so (packed_dispatch.cc). A range that
// it has cut although the batch did not ask for that is read here once more, piece by piece, at a
// snapshot that is opened within the call: so a range is of one state, as in any engine.
//
// With ConnectOptions::fat_root, each request of an unordered batch is sent with the hint that the
// fat root has for its key. A finished batch notes which hints were stale and does one step of the
// fat root's refresh (fat_root_refresh.h).
//
// With ConnectOptions::one_sided, Begin first answers what it can of a batch for keyspace 0 by
// reading the server's leaves, and sends the rest (one_sided_reads.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "client/fat_root.h"
#include "client/fat_root_refresh.h"
#include "client/one_sided_reads.h"
#include "client/remote.h"
#include "engine/batch_writer.h"
#include "engine/engine.h"

namespace skep::client {

// An error of the whole batch is the status of every slot; batch.h and client.h list the codes.
// Tickets are all 0, because the versions of an answer are released. Thread-safe, as engines are.
class RemoteEngine final : public Engine {
 public:
  // `remote` must outlive the engine.
  RemoteEngine(Remote& remote, uint32_t keyspace);

  // The traits of the server's engine; until the server can be asked, all features.
  const EngineTraits& traits() const override;
  Version Execute(Batch& batch) override;
  // Finish throws nothing: if there is no memory for the answers, every slot says so.
  BegunBatch Begin(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  void Unwatch(uint64_t watch) override;
  // Other clients write to the server, too.
  bool Observe(WriteObserver*) override { return false; }
  // Does nothing: the server does it.
  bool Maintain(uint64_t) override { return false; }
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  // Does nothing: the server's engine is not checked from here.
  const char* Verify() const override { return nullptr; }
  Version Latest() const override;
  void StartAfter(Version, uint64_t) override {}
  //   kNotSupported  always
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;

 private:
  class SentBatch;
  class PartlySentBatch;

  packed::KeyspaceStatistics Ask() const;
  void CompleteRanges(Batch& batch);
  bool WasCut(const Batch& batch, uint32_t slot) const;
  void Complete(const Request& request, SnapshotRef at, BatchWriter& writer, uint32_t slot);

  Remote& remote_;
  const uint32_t keyspace_;
  mutable Mutex mutex_;
  mutable EngineTraits traits_ = {.name = "remote"};  // written once, under mutex_
  mutable std::string name_;
  mutable std::atomic<bool> knows_traits_{false};
  const std::unique_ptr<FatRoot> fat_root_;         // null: without
  const std::unique_ptr<FatRootRefresh> refresh_;   // of fat_root_
  const std::unique_ptr<OneSidedReads> one_sided_;  // null: without
};

}  // namespace skep::client

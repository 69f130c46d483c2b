// remote_engine.h: a keyspace of a server, as an engine: Begin sends the batch, Finish waits for
// the reply, Execute does both. With ConnectOptions::datagrams, batches that are under way at the
// same time are in no order, not even on one key.
//
// A server cuts long ranges into pieces of a millisecond or so (packed_dispatch.cc). What it cut
// although the batch did not ask for that is read here once more, piece by piece, at a snapshot
// that is opened within the call: so a range is of one state, as of any engine.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "client/remote.h"
#include "engine/batch_writer.h"
#include "engine/engine.h"

namespace skep::client {

// What is refused for the whole batch, every slot says; batch.h and client.h list it. Tickets are
// all 0: what is answered is released. Thread-safe, as engines are.
class RemoteEngine final : public Engine {
 public:
  // `remote` must outlive it.
  RemoteEngine(Remote& remote, uint32_t keyspace) : remote_(remote), keyspace_(keyspace) {}

  // What the engine behind can do. While the server cannot be asked: everything.
  const EngineTraits& traits() const override;
  Version Execute(Batch& batch) override;
  // Finish throws nothing: where there is no memory for the answers, every slot says so.
  BegunBatch Begin(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  void Unwatch(uint64_t watch) override;
  // Nothing: the server does it.
  bool Maintain(uint64_t) override { return false; }
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  // The server's business.
  const char* Verify() const override { return nullptr; }
  Version Latest() const override;
  void StartAfter(Version, uint64_t) override {}
  //   kNotSupported
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;

 private:
  class SentBatch;

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
};

}  // namespace skep::client

// server_state.h: the state that the workers of a server share: keyspaces and their persistence,
// clients and the replies they were sent, options, log.
//
// It knows neither workers nor commands, which are built on it.
//
// Thread-safe from Open() on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/siphash.h"
#include "base/store_time.h"
#include "durable/persistence.h"
#include "keyspace/keyspaces.h"
#include "ranges/served_ranges.h"
#include "server/client_pause.h"
#include "server/client_registry.h"
#include "server/current_options.h"
#include "server/cursor_table.h"
#include "server/key_events.h"
#include "server/key_waiters.h"
#include "server/reply_memory.h"
#include "server/server_log.h"
#include "server/slow_log.h"
#include "server/subscriptions.h"
#include "server/unused_options.h"
#include "skep/store.h"

namespace skep {

class HotGets;
namespace leaves {
class LeafShare;
}

// The state of a SCAN between two calls.
struct ScanCursor {
  std::string next_key;
  uint32_t keyspace;
};

// What the databases have in all.
struct Dataset {
  uint64_t keys = 0;
  uint64_t bytes = 0;
};

class ServerState {
 public:
  // `engine`, if given, is used instead of the one that options.engine names.
  ServerState(const ServerOptions& options, const Environment& environment,
              const EngineInfo* engine);
  ~ServerState();
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  // Opens the log and the keyspaces. If that fails, *problem is a line for a person that names the
  // path.
  //   kInvalidArgument  CheckOptions() says why
  //   kIo               the errno of a file
  //   kCorrupt, ...     the directory cannot be recovered: recovery.h
  Status Open(std::string* problem);

  const Environment& environment() const { return environment_; }
  // A number and a name that differ in each process.
  uint64_t instance() const { return instance_; }
  const std::string& run_id() const { return run_id_; }
  uint64_t start_monotonic_ms() const { return start_ms_; }
  uint64_t start_unix_s() const { return start_unix_s_; }

  ServerLog& log() { return log_; }
  CurrentOptions& options() { return options_; }
  const CurrentOptions& options() const { return options_; }
  // As CurrentOptions::Set; applies the new options to the parts of this state.
  std::string SetOptions(std::span<const OptionChange> changes);
  UnusedOptions& unused_options() { return unused_options_; }

  Keyspaces& keyspaces() { return *keyspaces_; }
  // Null if the store is only in memory.
  durable::Persistence* persistence() { return persistence_.get(); }
  // Null: the server has all keys of keyspace 0.
  ranges::RangeOwner* range_owner() { return ranges_ != nullptr ? &ranges_->owner() : nullptr; }
  // No batch is executed any more: what is done for ranges ends, before the log does.
  void StopRanges() { ranges_.reset(); }
  // The time by which keys expire.
  StoreTime& time() { return persistence_ != nullptr ? persistence_->time() : time_; }

  ClientRegistry& clients() { return clients_; }
  // The state of scans that clients may go on with; for KSCAN only the pins of the versions, by the
  // scans' numbers.
  CursorTable<std::shared_ptr<const ScanCursor>>& cursors() { return cursors_; }
  CursorTable<std::shared_ptr<const Snapshot>>& key_scans() { return key_scans_; }
  const SipKey& token_secret() const { return token_secret_; }
  ReplyMemory& replies() { return *replies_; }
  // The most bytes that memory has been seen to take; workers look at it now and then.
  void NoteMemory();
  uint64_t memory_peak() const { return memory_peak_.load(std::memory_order_relaxed); }
  // Cost: that of Engine::Statistics() of each database.
  Dataset DatasetNow();
  ClientPause& pause() { return pause_; }
  KeyWaiters& waiters() { return waiters_; }
  Subscriptions& subscriptions() { return subscriptions_; }
  KeyEvents& key_events() { return key_events_; }
  SlowLog& slow_log() { return slow_log_; }
  LatencyMonitor& latency() { return latency_; }
  // Null without the option xdp.
  HotGets* hot_gets() { return hot_gets_.get(); }
  // Null without the option share-leaves.
  leaves::LeafShare* leaf_share() { return leaf_share_.get(); }
  // No batch is executed any more, and no other server has the address or the directory yet.
  void StopSharing();

 private:
  Status OpenKeyspaces(const ServerOptions& options, std::string* problem);
  Status OpenRanges(const ServerOptions& options, std::string* problem);
  Status OpenShare(const ServerOptions& options, std::string* problem);
  void ConfigureEvents(const ServerOptions& options);
  void ApplyToPersistence(const ServerOptions& options);

  const Environment environment_;
  const EngineInfo* const engine_;
  CurrentOptions options_;
  UnusedOptions unused_options_;
  ServerLog log_;
  const uint64_t start_ms_;
  const uint64_t start_unix_s_;
  const std::string run_id_;
  const uint64_t instance_;
  StoreTime time_;  // used by a store in memory

  // Declared in the order in which they must outlive each other.
  Subscriptions subscriptions_;
  KeyEvents key_events_;               // engines tell it of keys that have expired
  std::unique_ptr<HotGets> hot_gets_;  // engines tell it of writes
  std::unique_ptr<durable::Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::unique_ptr<leaves::LeafShare> leaf_share_;
  std::unique_ptr<ranges::ServedRanges> ranges_;
  ClientRegistry clients_;
  CursorTable<std::shared_ptr<const ScanCursor>> cursors_;
  CursorTable<std::shared_ptr<const Snapshot>> key_scans_;
  const SipKey token_secret_;
  std::unique_ptr<ReplyMemory> replies_;
  ClientPause pause_;
  KeyWaiters waiters_;
  SlowLog slow_log_;
  LatencyMonitor latency_;
  std::atomic<uint64_t> memory_peak_{0};  // relaxed: nothing else is read because of it
};

}  // namespace skep

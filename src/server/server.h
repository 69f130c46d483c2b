// server.h: one store, its workers and what they share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/siphash.h"
#include "base/store_time.h"
#include "durable/persistence.h"
#include "keyspace/keyspaces.h"
#include "server/client_registry.h"
#include "server/cursor_table.h"
#include "server/incidents.h"
#include "server/options.h"
#include "server/reply_memory.h"
#include "server/worker.h"
#include "skep/store.h"

namespace spdlog {
class logger;
}

namespace skep {

// Where a SCAN goes on.
struct ScanCursor {
  std::string next_key;
  uint32_t keyspace;
};

class Server {
 public:
  // `engine`, if given, is used instead of the one that options.engine names.
  Server(const ServerOptions& options, const Environment& environment,
         const EngineInfo* engine = nullptr);
  ~Server();

  // Opens the store and listens. Starts no thread: either call Run(), or turn the workers.
  //   kInvalidArgument  CheckOptions() says why
  //   kIo               the errno of the address that could not be listened on, or of a file
  //   kCorrupt, ...     the directory cannot be recovered: persistence.h
  Status Start();
  // Why Start() failed, in a line for a person that names the address or the path. If there is a
  // log file, it has the line too.
  const std::string& problem() const { return problem_; }
  // Serves with a thread a worker until Stop() is called, then ends the log, if there is one, and
  // returns when all have ended.
  //   kIo  the log could not be written or synced to its end: what was acknowledged without a sync
  //        may be lost
  Status Run();
  // Asks for the end: replies that are encoded are sent, long ones in progress are cut, connections
  // closed. Any thread, any time.
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  size_t worker_count() const { return workers_.size(); }
  Worker& worker(size_t index) { return *workers_[index]; }
  // Where it listens, with the port the system chose if it was asked to.
  std::vector<Address> addresses() const;

  // What the workers share. All thread-safe.
  const Environment& environment() const { return environment_; }
  Keyspaces& keyspaces() { return *keyspaces_; }
  // What keys expire by. Once Start() was called.
  StoreTime& time() { return persistence_ != nullptr ? persistence_->time() : time_; }
  // Writes to the log when the wall clock is found to be behind, or not any more.
  void NoteClock(const StoreNow& now);
  // Null: in memory only.
  durable::Persistence* persistence() { return persistence_.get(); }
  ClientRegistry& clients() { return clients_; }
  CursorTable<std::shared_ptr<const ScanCursor>>& cursors() { return cursors_; }
  // The pins of the versions that KSCANs read, by the scans' numbers.
  CursorTable<std::shared_ptr<const Snapshot>>& key_scans() { return key_scans_; }
  const SipKey& token_secret() const { return token_secret_; }
  ReplyMemory& replies() { return *replies_; }
  // Another one in each process.
  uint64_t instance() const { return instance_; }
  spdlog::logger& log() { return *log_; }
  // Logs what may happen any number of times.
  void Tell(Incident what, std::string_view text);
  // Logs what is over, and what became of snapshots. For workers, now and then.
  void WatchIncidents();
  uint64_t start_monotonic_ms() const { return start_ms_; }
  const std::string& run_id() const { return run_id_; }

  // Ends the clients that match, all but `self`; returns how many they are, with it.
  size_t EndClients(const ClientFilter& filter, const ClientInfo& self, bool* ends_self);
  // Ends the largest clients, until all together have at most so many bytes. Returns how many.
  size_t EndLargestClients(uint64_t bytes_max);
  void WakeWorkers();
  // Changes whenever clients were marked to be ended.
  uint64_t ended_version() const { return ended_version_.load(std::memory_order_acquire); }
  // The memory of all clients.
  void ChargeClients(uint64_t more, uint64_t less) {
    client_bytes_.fetch_add(more - less, std::memory_order_relaxed);
  }
  uint64_t client_bytes() const { return client_bytes_.load(std::memory_order_relaxed); }
  uint64_t evicted_clients() const { return evicted_clients_.load(std::memory_order_relaxed); }

  // Opens the log file anew, which somebody may have moved away.
  void ReopenLog();

  // The options now. `version` changes whenever they do.
  ServerOptions options() const;
  uint64_t options_version() const { return options_version_.load(std::memory_order_acquire); }
  // Sets options by name, all or none. Why not, as CONFIG SET says it; empty if it was done.
  using OptionChange = std::pair<std::string_view, std::string_view>;
  std::string SetOptions(std::span<const OptionChange> changes);
  // Brings the file that the options were read from up to date (config_file.h), at once or not at
  // all. Why not, as CONFIG REWRITE says it; empty if it was done.
  std::string RewriteConfigFile();

  // Tells the server's log when the disk begins to refuse writes, and when it takes them again. For
  // workers, now and then.
  void WatchDisk();

  // Gives a new connection to the worker with the fewest.
  void Place(std::unique_ptr<Stream> stream);
  size_t connections() const;

 private:
  Environment environment_;
  const EngineInfo* engine_;
  mutable std::mutex options_mutex_;
  ServerOptions options_;  // guarded by options_mutex_
  std::atomic<uint64_t> options_version_{0};
  std::mutex config_file_mutex_;  // held by the thread that rewrites the file
  std::shared_ptr<spdlog::logger> log_;
  Incidents incidents_;
  std::mutex snapshots_mutex_;
  bool snapshots_fail_ = false;  // as the log was told; guarded by snapshots_mutex_
  uint64_t start_ms_;
  std::string run_id_;
  uint64_t instance_;
  std::atomic<bool> stopping_{false};
  StoreTime time_;  // of a store in memory
  std::atomic<uint64_t> noted_behind_ms_{0};

  std::atomic<uint64_t> ended_version_{0};
  // Relaxed, both: sums that nothing else is read because of.
  std::atomic<uint64_t> client_bytes_{0};
  std::atomic<uint64_t> evicted_clients_{0};
  std::mutex disk_mutex_;
  Status disk_status_;  // that the log was told of; guarded by disk_mutex_

  std::string problem_;  // written by Start() alone

  // Remembers why Start() fails; returns `status`.
  Status FailStart(const Status& status, std::string problem);
  Status OpenKeyspaces();
  void ApplyToPersistence(const ServerOptions& options);
  Status ServeDatagrams(const Address& address);

  // Declared in the order in which they must outlive each other.
  std::unique_ptr<durable::Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
  ClientRegistry clients_;
  CursorTable<std::shared_ptr<const ScanCursor>> cursors_;
  CursorTable<std::shared_ptr<const Snapshot>> key_scans_;
  SipKey token_secret_;
  std::unique_ptr<ReplyMemory> replies_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace skep

// server.h: one store, its workers, and the addresses they listen on.
//
//   Server ---- administration.h, worker_pool.h: its interfaces for commands and workers
//     | makes
//   Worker      worker.h: one event loop each
//     | share
//   ServerState server_state.h: keyspaces, clients, options, log
//
// Includes point down; code below uses the server only through these two interfaces.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "server/administration.h"
#include "server/options.h"
#include "server/server_state.h"
#include "server/worker.h"
#include "server/worker_pool.h"

namespace skep {

class Server final : public Administration, private WorkerPool {
 public:
  // `engine`, if given, is used instead of the one that options.engine names.
  Server(const ServerOptions& options, const Environment& environment,
         const EngineInfo* engine = nullptr);

  // Opens the store and listens. Starts no thread: either call Run(), or turn the workers.
  //   kInvalidArgument  CheckOptions() says why
  //   kIo               the errno of the address that could not be listened on, or of a file
  //   kCorrupt, ...     the directory cannot be recovered: recovery.h
  Status Start();
  // Why Start() failed: a line for a person that names the address or the path. The log file, if
  // there is one, has the line too.
  const std::string& problem() const { return problem_; }
  // Serves with a thread for each worker until Stop() is called, then ends the log, if there is
  // one, and returns when all threads have ended.
  //   kIo  the log could not be written or synced to its end: writes acknowledged without a sync
  //        may be lost
  Status Run();
  // May be called at any time.
  void Stop() override;
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  size_t worker_count() const { return workers_.size(); }
  Worker& worker(size_t index) { return *workers_[index]; }
  // The addresses it listens on, with the port that the system chose if it was asked to.
  std::vector<Address> addresses() const;
  size_t connections() const override;

  // The state that the workers share. Requires that Start() was called.
  ServerState& state() { return state_; }
  Keyspaces& keyspaces() { return state_.keyspaces(); }
  durable::Persistence* persistence() override { return state_.persistence(); }

  ServerCounts Counts() override { return counts_base_.Since(CountAll()); }
  void ResetCounts() override { counts_base_.Set(CountAll()); }
  std::string Describe(std::span<const std::string_view> sections) override;
  ServerOptions options() const override { return state_.options().Get(); }
  std::string SetOptions(std::span<const OptionChange> changes) override;
  std::string RewriteConfigFile() override;
  ClientRegistry& clients() override { return state_.clients(); }
  size_t EndClients(const ClientFilter& filter, const ClientInfo& self, bool* ends_self) override;

 private:
  void Place(std::unique_ptr<Stream> stream) override;
  void WakeAll() override;

  ServerCounts CountAll();
  // Remembers why Start() fails; returns `status`.
  Status FailStart(const Status& status, std::string problem);
  Status Listen(const ServerOptions& options, const Address& address);
  Status ServeDatagrams(const Address& address);
  void StartHotGets(HotGets& hot);

  std::string problem_;  // written by Start() alone
  std::atomic<bool> stopping_{false};
  StatisticsBase counts_base_;

  // Declared in the order in which they must outlive each other.
  ServerState state_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace skep

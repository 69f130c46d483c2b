// The servers of a pool as processes.
#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <expected>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/network_address.h"
#include "base/random.h"
#include "keyspace/factory.h"
#include "pool/connected_pool.h"
#include "pool/disk/disk_index_log.h"
#include "pool/index_server.h"
#include "pool/memory_keeper.h"
#include "pool/memory_server.h"
#include "pool/role_keeper.h"
#include "pool/upkeep_agent.h"
#include "rma/fabrics.h"
#include "tools/pool/pool_commands.h"
#include "tools/pool/role_name.h"

namespace skep {
namespace {

// How long a turn waits for something to do.
constexpr int kTurnMs = 10;

template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
  std::fflush(stdout);
}

int Complain(const std::string& why) {
  fmt::print(stderr, "skep-pool: {}\n", why);
  return 1;
}

// The signals that end a server. From now on only EndSignal receives them: called before any thread
// starts. What a server says may have no reader any more: that does not end it.
sigset_t BlockEndSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// A thread that waits for one of them. Whoever serves asks it each turn.
class EndSignal {
 public:
  explicit EndSignal(const sigset_t& signals) : signals_(signals), thread_([this] { Await(); }) {}
  ~EndSignal() {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  bool has_come() const { return has_come_.load(std::memory_order_acquire); }

 private:
  void Await() {
    int signal = 0;
    sigwait(&signals_, &signal);
    has_come_.store(true, std::memory_order_release);
  }

  const sigset_t signals_;
  std::atomic<bool> has_come_{false};
  std::thread thread_;
};

// Says once that a server waits for ZooKeeper.
class Patience {
 public:
  explicit Patience(const PoolServerOptions& options) : options_(options) {}
  void Wait() {
    if (has_said_ || SystemClock().MonotonicMs() < until_ms_) return;
    has_said_ = true;
    Say("ZooKeeper does not answer at {}: the server waits for it", options_.pool.zookeeper);
  }

 private:
  static constexpr uint64_t kWaitMs = 5000;
  const PoolServerOptions& options_;
  const uint64_t until_ms_ = SystemClock().MonotonicMs() + kWaitMs;
  bool has_said_ = false;
};

uint32_t NewId() {
  uint32_t id = 0;
  while (id == 0) id = static_cast<uint32_t>(SystemRandom().Next());
  return id;
}

Address AdvertisedAddress(const PoolServerOptions& options, const Address& listening) {
  return options.advertise.empty() ? listening : options.advertise;
}

// Why others cannot connect there; empty: they may.
std::string WhyUnreachable(const PoolServerOptions& options) {
  const Address& address = options.advertise.empty() ? options.listen : options.advertise;
  const auto parsed = ParseAddress(address);
  if (!options.advertise.empty() && !parsed) {
    return fmt::format("--advertise {}: {}", address, parsed.error().ToString());
  }
  const bool is_path = address.starts_with("unix:");
  if (!options.advertise.empty() && is_path != rma::ListensAtPaths(options.pool.fabric)) {
    return fmt::format("--advertise {}: the fabric {} has other addresses", address,
                       options.pool.fabric);
  }
  if (!address.starts_with("0.0.0.0:") && !address.starts_with("[::]:")) return {};
  return fmt::format("others cannot connect to {}: --advertise an address", address);
}

// What both kinds of servers need. An error is for a person.
std::expected<pool::PoolSurroundings, std::string> Reach(const PoolServerOptions& options) {
  std::string problem;
  auto reached = pool::ReachPool(options.pool, &problem);
  if (!reached) return std::unexpected(problem);
  problem = WhyUnreachable(options);
  if (!problem.empty()) return std::unexpected(problem);
  return std::move(*reached);
}

std::string CannotOpen(const PoolServerOptions& options, const Status& status) {
  return fmt::format("cannot serve at {}: {}", options.listen, status.ToString());
}

std::unique_ptr<Engine> MakeTree() {
  static MemoryBudget unlimited;
  EngineOptions options;
  options.budget = &unlimited;
  return FindEngine("btree")->make(options);
}

}  // namespace

std::string WhyNoFabric(const std::string& name) {
  return rma::IsFabricName(name) ? "" : rma::kFabricNames;
}

namespace {

// One memory server from its start until the pool goes on without it, or the process is to end.
// Returns the exit status; nothing: another one may begin in its place.
std::optional<int> ServeMemory(const PoolServerOptions& options, uint32_t frames,
                               const pool::PoolSurroundings& around, const EndSignal& end) {
  using Standing = pool::MemoryServer::Standing;
  const uint32_t id = NewId();
  auto server = pool::MemoryServer::Open(*around.fabric, options.listen, id, frames);
  if (!server) return Complain(CannotOpen(options, server.error()));
  const Address address = AdvertisedAddress(options, (*server)->address());
  const auto wake = [&] { (*server)->Wake(); };
  Patience patience(options);
  pool::MemoryKeeper keeper(*around.coordinator, SystemClock(),
                            {.pool = options.pool.name,
                             .id = id,
                             .address = address,
                             .session_ms = options.session_ms,
                             .wake = wake});
  Say("memory server {} of pool {}: {} bytes at {}", id, options.pool.name,
      uint64_t{frames} * pool::kChunkBytes, address);
  bool was_registered = false;
  while (!end.has_come() && (*server)->standing() == Standing::kServing) {
    (*server)->Turn(kTurnMs);
    keeper.Turn();
    if (!keeper.is_registered()) patience.Wait();
    if (keeper.is_registered() == was_registered) continue;
    was_registered = keeper.is_registered();
    Say("{}", was_registered ? "registered" : "not registered: the session has ended");
  }
  if (end.has_come()) return 0;
  if ((*server)->standing() == Standing::kDrained) {
    Say("drained: the pool has all items elsewhere");
    return 0;
  }
  Say("the pool has taken it for dead and goes on without what it had: begins anew");
  return std::nullopt;
}

}  // namespace

int RunMemoryServer(const PoolServerOptions& options, uint64_t bytes) {
  const sigset_t signals = BlockEndSignals();
  const auto around = Reach(options);
  if (!around) return Complain(around.error());
  const uint64_t frames = bytes / pool::kChunkBytes;
  if (frames == 0 || frames > pool::kFramesMax) {
    return Complain(fmt::format("{} bytes: a memory server has {} to {}", bytes, pool::kChunkBytes,
                                uint64_t{pool::kFramesMax} * pool::kChunkBytes));
  }
  const EndSignal end(signals);
  for (;;) {
    const auto status = ServeMemory(options, static_cast<uint32_t>(frames), *around, end);
    if (status) return *status;
  }
}

namespace {

// The log of an index server, if it has a directory, and whom the log's thread wakes.
class ServerLog {
 public:
  // Why there is none although there is to be one, for a person; empty: all is well.
  std::string Open(const PoolDirectoryOptions& options) {
    if (options.directory.empty()) return {};
    std::string problem;
    auto opened = pool::DiskIndexLog::Open(PosixFileSystem(), SystemClock(),
                                           {.directory = options.directory,
                                            .sync = options.sync,
                                            .make_tree = MakeTree,
                                            .wake = [this] { Wake(); }},
                                           &problem);
    if (!opened) return problem;
    log_ = std::move(*opened);
    return {};
  }
  pool::DiskIndexLog* get() const { return log_.get(); }
  void Serve(pool::IndexServer& server) {
    const MutexLock lock(mutex_);
    server_ = &server;
  }
  // Nobody is woken any more, and the log ends in good order, if it can.
  void End() {
    {
      const MutexLock lock(mutex_);
      server_ = nullptr;
    }
    if (log_ == nullptr) return;
    const Status ended = log_->Close();
    if (!ended.ok()) Say("the log cannot be ended: {}", ended.ToString());
  }

 private:
  void Wake() {
    const MutexLock lock(mutex_);
    if (server_ != nullptr) server_->Wake();
  }

  Mutex mutex_;
  pool::IndexServer* server_ SKEP_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<pool::DiskIndexLog> log_;
};

// Says when the log takes nothing any more, and when it does again.
class LogNews {
 public:
  explicit LogNews(const pool::IndexLog* log) : log_(log) {}
  void Look() {
    if (log_ == nullptr) return;
    const Status status = log_->status();
    if (status.ok() == was_ok_) return;
    was_ok_ = status.ok();
    Say("{}", was_ok_ ? "the log can be written again"
                      : fmt::format("writes are refused: the log cannot be written: {}",
                                    status.ToString()));
  }

 private:
  const pool::IndexLog* const log_;
  bool was_ok_ = true;
};

// One index server from its start until it has lost its role, or the process is to end. Returns the
// exit status; nothing: another one may begin in its place.
std::optional<int> ServeIndex(const PoolServerOptions& options, const PoolUpkeepOptions& upkeep,
                              const PoolDirectoryOptions& directory,
                              const pool::PoolSurroundings& around, const EndSignal& end) {
  const uint32_t id = NewId();
  ServerLog log;
  if (const std::string problem = log.Open(directory); !problem.empty()) return Complain(problem);
  auto server = pool::IndexServer::Open(*around.fabric, SystemClock(),
                                        {.id = id,
                                         .listen = options.listen,
                                         .times = {},
                                         .make_tree = MakeTree,
                                         .replicas = upkeep.replicas,
                                         .removes_lost = upkeep.removes_lost,
                                         .log = log.get()});
  if (!server) return Complain(CannotOpen(options, server.error()));
  log.Serve(**server);
  const Address address = AdvertisedAddress(options, (*server)->address());
  const auto wake = [&] { (*server)->Wake(); };
  Patience patience(options);
  pool::RoleKeeper keeper(*around.coordinator, SystemClock(), SystemRandom(),
                          {.pool = options.pool.name,
                           .id = id,
                           .address = address,
                           .session_ms = options.session_ms,
                           .wake = wake});
  pool::UpkeepAgent agent(
      *around.fabric, SystemClock(),
      {.server = id, .eviction = upkeep.evicts ? pool::Eviction::kOldest : pool::Eviction::kNone});
  const pool::UpkeepThread agent_thread(agent);
  Say("index server {} of pool {} at {}", id, options.pool.name, address);
  LogNews news(log.get());
  const auto goes_on = [&] {
    return !end.has_come() && !(*server)->is_retired() && (*server)->problem().empty();
  };
  for (uint64_t epoch = 0; goes_on();) {
    (*server)->Turn(kTurnMs);
    news.Look();
    keeper.Want((*server)->wanted_roles());
    const bool is_new_map = keeper.Turn();
    if (!keeper.is_registered()) patience.Wait();
    if (!is_new_map) continue;
    (*server)->SetMap(keeper.map());
    agent.SetMap(keeper.map());
    if (keeper.map().epoch == epoch) continue;
    epoch = keeper.map().epoch;
    Say("epoch {}: {}", epoch, RoleName(keeper.map(), id));
  }
  log.End();
  if (!(*server)->problem().empty()) {
    return Complain(fmt::format("{}: {}", directory.directory, (*server)->problem()));
  }
  if (end.has_come()) return 0;
  Say("another server has taken its place: begins anew");
  return std::nullopt;
}

}  // namespace

int RunIndexServer(const PoolServerOptions& options, const PoolUpkeepOptions& upkeep,
                   const PoolDirectoryOptions& directory) {
  const sigset_t signals = BlockEndSignals();
  const auto around = Reach(options);
  if (!around) return Complain(around.error());
  const EndSignal end(signals);
  for (;;) {
    if (const auto status = ServeIndex(options, upkeep, directory, *around, end)) return *status;
  }
}

}  // namespace skep

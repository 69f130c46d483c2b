#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/network_address.h"
#include "server/config_file.h"
#include "server/log.h"
#include "server/open_files.h"

namespace skep {
namespace {

constexpr CursorLimits kCursors{.entries_max = 64 * 1024, .bytes_max = 16 << 20};
// Each keeps a version pinned.
constexpr CursorLimits kKeyScans{
    .entries_max = 4096, .bytes_max = SIZE_MAX, .owner_entries_max = 64};

const std::string kUnixPrefix = "unix:";

std::vector<Address> ListenAddresses(const ServerOptions& options) {
  std::vector<Address> addresses;
  for (const std::string& host : options.bind) addresses.push_back(AddressOf(host, options.port));
  if (!options.unixsocket.empty()) addresses.push_back(kUnixPrefix + options.unixsocket);
  return addresses;
}

uint32_t WorkersOf(const ServerOptions& options) {
  return options.workers != 0 ? options.workers : std::max(1u, std::thread::hardware_concurrency());
}

std::vector<durable::Persistence::SavePoint> PersistencePoints(const ServerOptions& options) {
  const std::vector<uint64_t> numbers = SavePointsOf(options);
  std::vector<durable::Persistence::SavePoint> points;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    points.push_back({.seconds = numbers[i], .changes = std::max<uint64_t>(numbers[i + 1], 1)});
  }
  return points;
}

void LogRecovery(spdlog::logger& log, const durable::RecoveryReport& report) {
  constexpr double kSecond = 1e9;
  if (!report.snapshot.empty()) {
    log.info("{}: {} items in {:.2f} s", report.snapshot, report.snapshot_items,
             static_cast<double>(report.snapshot_ns) / kSecond);
  }
  log.info("log: {} changes of {} records in {:.2f} s", report.log_changes, report.log_records,
           static_cast<double>(report.log_ns) / kSecond);
  if (report.lacks_log) {
    log.warn("{}: the log is gone or ends before it: what was written since then is not there",
             report.snapshot);
  }
  if (!report.torn_file.empty()) {
    log.warn("{}: the end of the log was torn, and is cut at its byte {}", report.torn_file,
             report.torn_offset);
  }
  if (report.log_dropped > 0) {
    log.warn("log: {} changes that nobody was told of are dropped", report.log_dropped);
  }
}

}  // namespace

Server::Server(const ServerOptions& options, const Environment& environment,
               const EngineInfo* engine)
    : environment_(environment),
      engine_(engine),
      options_(options),
      start_ms_(environment.clock.MonotonicMs()),
      run_id_(fmt::format("{:016x}{:016x}{:08x}", environment.random.Next(),
                          environment.random.Next(),
                          static_cast<uint32_t>(environment.random.Next()))),
      instance_(environment.random.Next()),
      time_(environment.clock),
      cursors_(kCursors, options.cursor_ttl_ms, environment.random),
      key_scans_(kKeyScans, options.cursor_ttl_ms, environment.random),
      token_secret_{environment.random.Next(), environment.random.Next()} {}

// The threads look at the engines.
Server::~Server() {
  if (persistence_ != nullptr) persistence_->StopThreads();
}

Status Server::Start() {
  auto log = MakeLog(options_, environment_.files, environment_.clock);
  if (!log) {
    return FailStart(log.error(), fmt::format("{}: {}", options_.logfile, log.error().ToString()));
  }
  log_ = *log;
  std::string why;
  if (const Status s = CheckOptions(options_, &why); !s.ok()) return FailStart(s, why);
  if (const Status s = OpenKeyspaces(); !s.ok()) return s;
  for (uint32_t i = 0; i < WorkersOf(options_); ++i) {
    workers_.push_back(std::make_unique<Worker>(*this));
  }
  for (const Address& address : ListenAddresses(options_)) {
    auto listener = environment_.network.Listen(address);
    const auto fail = [&](const Status& s) {
      return FailStart(s, fmt::format("cannot listen on {}: {}", address, s.ToString()));
    };
    if (!listener) return fail(listener.error());
    listeners_.push_back(std::move(*listener));
    if (const Status s = workers_[0]->Listen(*listeners_.back()); !s.ok()) return fail(s);
    if (!options_.udp || address.starts_with(kUnixPrefix)) continue;
    if (Status s = ServeDatagrams(listeners_.back()->address()); !s.ok()) return s;
  }
  return {};
}

// Without a log file the log is what the process prints, and so would be told twice.
Status Server::FailStart(const Status& status, std::string problem) {
  problem_ = std::move(problem);
  if (log_ != nullptr && !options_.logfile.empty()) log_->error("{}", problem_);
  return status;
}

// The system spreads the peers over the workers' sockets.
Status Server::ServeDatagrams(const Address& address) {
  for (auto& worker : workers_) {
    auto socket = environment_.network.BindDatagrams(address);
    const Status s = socket ? worker->Serve(std::move(*socket)) : socket.error();
    if (!s.ok()) {
      return FailStart(s, fmt::format("cannot take datagrams on {}: {}", address, s.ToString()));
    }
  }
  return {};
}

Status Server::OpenKeyspaces() {
  const Options store = StoreOptions(options_);
  std::string problem;
  if (!options_.dir.empty()) {
    auto persistence =
        durable::Persistence::Open(environment_.files, environment_.clock, store, &problem);
    if (!persistence) return FailStart(persistence.error(), std::move(problem));
    persistence_ = std::move(*persistence);
  }
  auto keyspaces = Keyspaces::Make(store, engine_, persistence_.get());
  if (!keyspaces) return FailStart(keyspaces.error(), keyspaces.error().ToString());
  keyspaces_ = std::move(*keyspaces);
  replies_ = std::make_unique<ReplyMemory>(keyspaces_->budget());
  if (persistence_ == nullptr) return {};
  durable::RecoveryReport report;
  if (const Status s = persistence_->Recover(*keyspaces_, &report, &problem); !s.ok()) {
    return FailStart(s, std::move(problem));
  }
  LogRecovery(*log_, report);
  NoteClock(time().Now());
  ApplyToPersistence(options_);
  WatchDisk();
  return {};
}

void Server::ApplyToPersistence(const ServerOptions& options) {
  persistence_->log().set_policy(StoreOptions(options).log_sync);
  persistence_->log().set_unsynced_ms_max(options.appendfsync_age_ms);
  persistence_->SetSavePoints(PersistencePoints(options));
  persistence_->SetAutoSnapshot({.percentage = options.auto_snapshot_percentage,
                                 .log_bytes_min = options.auto_snapshot_min_size});
}

void Server::WatchDisk() {
  if (persistence_ == nullptr) return;
  const std::unique_lock lock(disk_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another worker looks
  const Status now = persistence_->log().status();
  if (now == disk_status_) return;
  disk_status_ = now;
  if (now.ok()) {
    Tell(Incident::kLogIsMended, "the log is written again: writes are accepted");
  } else {
    Tell(Incident::kLogFails,
         fmt::format("the log cannot be written, so writes are refused: {}", now.ToString()));
  }
}

Status Server::Run() {
  if (persistence_ != nullptr) persistence_->StartThreads();
  std::vector<std::thread> threads;
  for (auto& worker : workers_) {
    threads.emplace_back([this, &worker] {
      while (!worker->drained()) {
        if (stopping()) worker->Drain();
        worker->Turn(-1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (persistence_ == nullptr) return {};
  const Status closed = persistence_->Close();
  if (!closed.ok()) log_->error("the log could not be ended: {}", closed.ToString());
  return closed;
}

void Server::NoteClock(const StoreNow& now) {
  constexpr uint64_t kToldMs = 1000;  // less is not worth a line
  uint64_t noted_ms = noted_behind_ms_.load(std::memory_order_relaxed);
  const uint64_t behind_ms = now.behind_ms < kToldMs ? 0 : now.behind_ms;
  if (behind_ms == noted_ms ||
      !noted_behind_ms_.compare_exchange_strong(noted_ms, behind_ms, std::memory_order_relaxed)) {
    return;
  }
  if (behind_ms == 0) {
    log_->warn("the clock has caught up: keys expire by it again");
  } else {
    log_->warn(
        "the clock is {:.3f} s behind the time that keys expire by; that goes on at its pace, and "
        "deadlines come late, until the clock has caught up",
        static_cast<double>(behind_ms) / 1000);
  }
}

void Server::Stop() {
  stopping_.store(true, std::memory_order_relaxed);
  WakeWorkers();
}

void Server::WakeWorkers() {
  for (auto& worker : workers_) worker->Wake();
}

size_t Server::EndClients(const ClientFilter& filter, const ClientInfo& self, bool* ends_self) {
  const size_t count = clients_.EndMatching(filter, self, ends_self);
  if (count > 0) {
    ended_version_.fetch_add(1, std::memory_order_release);
    WakeWorkers();
  }
  return count;
}

size_t Server::EndLargestClients(uint64_t bytes_max) {
  const size_t count = clients_.EndLargest(bytes_max);
  if (count == 0) return 0;
  evicted_clients_.fetch_add(count, std::memory_order_relaxed);
  Tell(Incident::kClientsEvicted,
       fmt::format("{} clients closed: all together exceed maxmemory-clients", count));
  ended_version_.fetch_add(1, std::memory_order_release);
  WakeWorkers();
  return count;
}

std::vector<Address> Server::addresses() const {
  std::vector<Address> all;
  for (const auto& listener : listeners_) all.push_back(listener->address());
  return all;
}

ServerOptions Server::options() const {
  std::lock_guard lock(options_mutex_);
  return options_;
}

std::string Server::SetOptions(std::span<const OptionChange> changes) {
  std::lock_guard lock(options_mutex_);
  ServerOptions changed = options_;
  std::string why;
  for (const auto& [name, value] : changes) {
    Status s = SetOption(changed, name, value);
    if (s.ok() && changed.maxclients > std::max(options_.maxclients, ClientsPossible(changed))) {
      why = fmt::format(
          "The operating system is not able to handle the specified number of clients, try with {}",
          ClientsPossible(changed));
      s = {Code::kInvalidArgument, "too few descriptors"};
    } else if (s.ok()) {
      s = CheckOptions(changed, &why);
    } else {
      why = s.what();
    }
    if (!s.ok()) {
      return fmt::format("CONFIG SET failed (possibly related to argument '{}') - {}", name, why);
    }
  }
  options_ = changed;
  keyspaces_->budget().set_limit(changed.maxmemory);
  cursors_.set_ttl_ms(changed.cursor_ttl_ms);
  key_scans_.set_ttl_ms(changed.cursor_ttl_ms);
  SetLogLevel(*log_, changed);
  if (persistence_ != nullptr) ApplyToPersistence(changed);
  options_version_.fetch_add(1, std::memory_order_release);
  return {};
}

void Server::Tell(Incident what, std::string_view text) {
  incidents_.Tell(what, environment_.clock.MonotonicMs(), *log_, text);
}

std::string Server::RewriteConfigFile() {
  std::lock_guard lock(config_file_mutex_);
  // As of now: another thread that waited for the lock writes what is newer.
  const ServerOptions options = this->options();
  if (options.config_file.empty()) return "The server is running without a config file";
  FileSystem& files = environment_.files;
  const auto refuse = [](const Status& s) {
    return fmt::format("Rewriting config file: {}", s.ToString());
  };
  const auto text = files.ReadAll(options.config_file);
  if (!text) return refuse(text.error());
  const auto rewritten = RewriteConfig(*text, options);
  if (!rewritten) return refuse(rewritten.error());
  // Another file takes the name when it is whole and on the disk.
  const std::string temporary = options.config_file + ".tmp";
  auto file = files.Open(temporary, FileSystem::Mode::kCreate);
  Status s = file ? (*file)->Append(*rewritten) : file.error();
  if (s.ok()) s = (*file)->Sync();
  if (s.ok()) s = files.Rename(temporary, options.config_file);
  if (!s.ok()) {
    static_cast<void>(files.Remove(temporary));
    return refuse(s);
  }
  const size_t slash = options.config_file.rfind('/');
  s = files.SyncDirectory(slash == std::string::npos ? "."
                                                     : options.config_file.substr(0, slash + 1));
  return s.ok() ? std::string() : refuse(s);
}

void Server::WatchIncidents() {
  incidents_.TellWhatIsOver(environment_.clock.MonotonicMs(), *log_);
  if (persistence_ == nullptr) return;
  const Status last = persistence_->snapshots().last_status;
  std::lock_guard lock(snapshots_mutex_);
  if (std::exchange(snapshots_fail_, !last.ok()) == !last.ok()) return;
  if (last.ok()) {
    log_->warn("snapshots are written again");
  } else {
    log_->error("a snapshot could not be written, and is tried again: {}", last.ToString());
  }
}

void Server::ReopenLog() {
  log_->info("the log file is opened anew");
  if (const Status s = skep::ReopenLog(*log_); !s.ok()) {
    log_->error("the log file cannot be opened anew, and the old one is kept: {}", s.ToString());
  }
}

void Server::Place(std::unique_ptr<Stream> stream) {
  const auto least = std::ranges::min_element(
      workers_, {}, [](const auto& worker) { return worker->connections(); });
  (*least)->Adopt(std::move(stream));
}

size_t Server::connections() const {
  size_t all = 0;
  for (const auto& worker : workers_) all += worker->connections();
  return all;
}

}  // namespace skep

#include "server/server_state.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "durable/open_keyspaces.h"
#include "netindex/leaves/leaf_share.h"
#include "server/hot_gets.h"
#include "server/log.h"

namespace skep {
namespace {

constexpr CursorLimits kCursors{.entries_max = 64 * 1024, .bytes_max = 16 << 20};
// Each KSCAN keeps a version pinned.
constexpr CursorLimits kKeyScans{
    .entries_max = 4096, .bytes_max = SIZE_MAX, .owner_entries_max = 64};

std::vector<durable::Saver::SavePoint> PersistencePoints(const ServerOptions& options) {
  const std::vector<uint64_t> numbers = SavePointsOf(options);
  std::vector<durable::Saver::SavePoint> points;
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

ServerState::ServerState(const ServerOptions& options, const Environment& environment,
                         const EngineInfo* engine)
    : environment_(environment),
      engine_(engine),
      options_(options),
      log_(environment),
      start_ms_(environment.clock.MonotonicMs()),
      start_unix_s_(environment.clock.WallMs() / 1000),
      run_id_(fmt::format("{:016x}{:016x}{:08x}", environment.random.Next(),
                          environment.random.Next(),
                          static_cast<uint32_t>(environment.random.Next()))),
      instance_(environment.random.Next()),
      time_(environment.clock),
      key_events_(subscriptions_, environment.clock, options.databases),
      cursors_(kCursors, options.cursor_ttl_ms, environment.random),
      key_scans_(kKeyScans, options.cursor_ttl_ms, environment.random),
      token_secret_{environment.random.Next(), environment.random.Next()} {}

// The threads use the engines.
ServerState::~ServerState() {
  StopRanges();
  if (persistence_ != nullptr) persistence_->StopThreads();
}

Status ServerState::Open(std::string* problem) {
  const ServerOptions options = options_.Get();
  if (const Status s = log_.Open(options); !s.ok()) {
    *problem = fmt::format("{}: {}", options.logfile, s.ToString());
    return s;
  }
  if (const Status s = CheckOptions(options, problem); !s.ok()) return s;
  if (!options.xdp.empty()) {
    auto hot_gets = HotGets::Open(options, instance_, environment_.random, problem);
    if (!hot_gets) return hot_gets.error();
    hot_gets_ = std::move(*hot_gets);
  }
  if (const Status s = OpenKeyspaces(options, problem); !s.ok()) return s;
  if (const Status s = OpenShare(options, problem); !s.ok()) return s;
  return OpenRanges(options, problem);
}

Status ServerState::OpenShare(const ServerOptions& options, std::string* problem) {
  if (options.share_leaves.empty()) return {};
  auto share = leaves::LeafShare::Open(options.share_leaves, keyspaces_->at(0), instance_, problem);
  if (!share) return share.error();
  leaf_share_ = std::move(*share);
  log_.logger().info("leaves are shared at {}", leaf_share_->place());
  return {};
}

void ServerState::StopSharing() { leaf_share_.reset(); }

Status ServerState::OpenRanges(const ServerOptions& options, std::string* problem) {
  if (options.ranges.empty()) return {};
  const auto read = ranges::ReadServedRanges(options.ranges);
  if (!read) return read.error();
  auto ranges = ranges::ServedRanges::Open(
      *read, keyspaces_->at(0),
      {.password = options.requirepass, .now = [this] { return time().Now(); }}, problem);
  if (!ranges) return ranges.error();
  ranges_ = std::move(*ranges);
  return {};
}

Status ServerState::OpenKeyspaces(const ServerOptions& options, std::string* problem) {
  auto opened =
      durable::OpenKeyspaces(environment_.files, environment_.clock, StoreOptions(options), problem,
                             durable::OpenMode::kStart, engine_);
  if (!opened) return opened.error();
  persistence_ = std::move(opened->persistence);
  keyspaces_ = std::move(opened->keyspaces);
  replies_ = std::make_unique<ReplyMemory>(keyspaces_->budget());
  ConfigureEvents(options);
  keyspaces_->VisitEach([this](uint32_t index, Engine& engine) {
    ObserveExpiryOf(engine, key_events_.ExpiryOf(index));
  });
  if (persistence_ == nullptr) return {};
  LogRecovery(log_.logger(), opened->report);
  log_.WatchClock(time().Now());
  ApplyToPersistence(options);
  log_.WatchDisk(*persistence_);
  return {};
}

void ServerState::ConfigureEvents(const ServerOptions& options) {
  key_events_.Configure(options.notify_keyspace_events,
                        options.client_output_buffer_limit.pubsub.hard_bytes);
}

void ServerState::ApplyToPersistence(const ServerOptions& options) {
  persistence_->log().set_policy(StoreOptions(options).log_sync);
  persistence_->log().set_unsynced_ms_max(options.appendfsync_age_ms);
  persistence_->saver().SetSavePoints(PersistencePoints(options));
  persistence_->saver().SetAutoSnapshot({.percentage = options.auto_snapshot_percentage,
                                         .log_bytes_min = options.auto_snapshot_min_size});
}

std::string ServerState::SetOptions(std::span<const OptionChange> changes) {
  return options_.Set(changes, [this](const ServerOptions& options) {
    keyspaces_->budget().set_limit(options.maxmemory);
    cursors_.set_ttl_ms(options.cursor_ttl_ms);
    key_scans_.set_ttl_ms(options.cursor_ttl_ms);
    SetLogLevel(log_.logger(), options);
    ConfigureEvents(options);
    if (persistence_ != nullptr) ApplyToPersistence(options);
    if (hot_gets_ != nullptr) hot_gets_->NoteOptions();
    if (leaf_share_ != nullptr) leaf_share_->NoteOptions();
  });
}

Dataset ServerState::DatasetNow() {
  Dataset all;
  for (uint32_t i = 0; i < keyspaces_->count(); ++i) {
    const Engine* const engine = keyspaces_->if_used(i);
    if (engine == nullptr) continue;
    const EngineStatistics statistics = engine->Statistics();
    all.keys += statistics.items;
    all.bytes += statistics.bytes;
  }
  return all;
}

void ServerState::NoteMemory() {
  const uint64_t used = keyspaces_->budget().used();
  uint64_t peak = memory_peak();
  while (used > peak &&
         !memory_peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
}

}  // namespace skep

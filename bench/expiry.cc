#include "bench/expiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "bench/op_generator.h"
#include "bench/progress.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kSpreadMs = 1000;      // between the first deadline and the last
constexpr uint64_t kPollNs = 50'000'000;  // between two questions to the server
constexpr uint64_t kWarmUpNs = 500'000'000;
constexpr uint64_t kReclaimPatienceNs = 120'000'000'000;
constexpr uint64_t kOpsMax = 1 << 20;  // different operations; then they repeat
constexpr double kLeadFactor = 2;      // times the expected duration of storing
constexpr double kSecondsPerKeyMin = 4e-6;

uint64_t NowNs() { return SystemClock().MonotonicNs(); }

void SleepNs(uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

uint64_t ToNs(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

// Returns what is wrong with the options, or nothing.
std::string Complaint(const ExpiryOptions& options) {
  if (options.items == 0) return "--items must be at least 1";
  if (options.stay == 0) return "--stay must be at least 1: they are what is measured";
  if (options.connections == 0) return "--connections must be at least 1";
  if (options.depth == 0 || options.depth > ExpiryClient::kInFlightMax) {
    return fmt::format("--depth must be 1 to {}", ExpiryClient::kInFlightMax);
  }
  if (options.rate != 0 && options.depth != 1) return "--depth is of a closed loop: without --rate";
  if (!(options.seconds > 0)) return "--seconds must be more than 0";
  if (!(options.lead_seconds >= 0)) return "--lead must not be negative";
  if (options.repeats <= 0) return "--repeats must be at least 1";
  if (options.key_bytes < KeyFormat::kBytesMin) return "--key-size must be at least 8";
  return {};
}

// Makes GETs and SETs, half and half, on the keys that stay, each equally often.
OpStream MakeOps(const ExpiryOptions& options) {
  const WorkloadPlan plan = {.workload = *FindWorkload("a"),
                             .distribution = Distribution::kUniform,
                             .records = options.stay,
                             .ops = kOpsMax,
                             .threads = 1,
                             .seed = options.seed};
  OpStream stream{KeyFormat(options.key_bytes)};
  OpGenerator(plan, 0).Fill(stream, kOpsMax);
  return stream;
}

class ExpiryRun {
 public:
  ExpiryRun(const ExpiryOptions& options, ExpiryServer server)
      : format_(options.key_bytes),
        values_(options.value_bytes, options.seed),
        ops_(MakeOps(options)),
        server_(std::move(server)),
        report_{.options = options} {}

  std::expected<ExpiryReport, std::string> Run() {
    if (std::string problem = Begin(); !problem.empty()) return Problem(std::move(problem));
    Progress progress("repeats", static_cast<uint64_t>(options().repeats), 1,
                      options().show_progress);
    for (int repeat = 0; repeat < options().repeats; ++repeat) {
      report_.turns.emplace_back();
      ExpiryTurn& turn = report_.turns.back();
      if (std::string problem = Turn(turn); !problem.empty()) return Problem(std::move(problem));
      if (report_.errors == 0) report_.first_error = turn.tally.first_error;
      report_.errors += turn.tally.errors;
      progress.Add(0, 1);
    }
    return std::move(report_);
  }

 private:
  const ExpiryOptions& options() const { return report_.options; }

  // The functions that return a text return what went wrong, or nothing.

  std::string Begin() {
    auto name = server_.Name();
    if (!name) return name.error().ToString();
    report_.server = std::move(*name);
    const auto keys = server_.CountKeys();
    if (!keys) return keys.error().ToString();
    if (keys->with_deadline != 0) return "the server has keys with a deadline already";
    const uint64_t begin_ns = NowNs();
    const Status status = server_.Load(format_, values_, 0, options().stay, std::nullopt);
    if (!status.ok()) return status.ToString();
    seconds_per_key_ =
        static_cast<double>(NowNs() - begin_ns) * 1e-9 / static_cast<double>(options().stay);
    return {};
  }

  std::string Turn(ExpiryTurn& turn) {
    const auto keys = server_.CountKeys();
    if (!keys) return keys.error().ToString();
    keys_before_ = keys->all;
    if (std::string problem = ReadMemory(turn.memory_before); !problem.empty()) return problem;
    const auto lead_ns = server_.ClockLeadNs();
    if (!lead_ns) return lead_ns.error().ToString();
    const uint64_t first_ms = FirstDeadlineMs(*lead_ns);
    const auto first_ns =
        static_cast<uint64_t>(static_cast<int64_t>(first_ms * kNsPerMs) - *lead_ns);
    ExpiryTimeline timeline(first_ns, ToNs(options().seconds));
    if (std::string problem = LoadExpiring(first_ms, timeline); !problem.empty()) return problem;
    if (std::string problem = ReadMemory(turn.memory_loaded); !problem.empty()) return problem;
    if (std::string problem = Measure(timeline, turn); !problem.empty()) return problem;
    return ReadMemory(turn.memory_after);
  }

  // Returns the first deadline by the server's clock.
  uint64_t FirstDeadlineMs(int64_t lead_ns) const {
    double load_seconds = options().lead_seconds;
    if (load_seconds == 0) {
      load_seconds = kLeadFactor * static_cast<double>(options().items) *
                     std::max(seconds_per_key_, kSecondsPerKeyMin);
    }
    const uint64_t ns =
        NowNs() + ToNs(load_seconds) + kWarmUpNs + ToNs(options().seconds) + ExpiryTimeline::kGapNs;
    return static_cast<uint64_t>(static_cast<int64_t>(ns) + lead_ns) / kNsPerMs + 1;
  }

  std::string LoadExpiring(uint64_t first_ms, const ExpiryTimeline& timeline) {
    const Status status =
        server_.Load(format_, values_, options().stay, options().items,
                     ExpiryServer::Deadlines{.first_ms = first_ms, .spread_ms = kSpreadMs});
    if (!status.ok()) return status.ToString();
    if (NowNs() + kWarmUpNs / 2 <= timeline.before_begins_ns()) return {};
    return "storing the keys that expire took longer than foreseen: --lead must be more seconds";
  }

  std::string ReadMemory(ExpiryServer::Memory& memory) {
    const auto read = server_.MeasureMemory();
    if (!read) return read.error().ToString();
    memory = *read;
    return {};
  }

  std::string Measure(ExpiryTimeline& timeline, ExpiryTurn& turn) {
    const ExpiryClient::Pace pace = {
        .connections = options().connections, .depth = options().depth, .rate = options().rate};
    auto client = ExpiryClient::Connect(options().host, options().port, pace, ops_, values_);
    if (!client) return client.error().ToString();
    auto measured = std::make_unique<ExpiryMeasured>();
    Status client_status;
    std::atomic<bool> client_ended = false;
    std::jthread thread([&] {
      client_status = client->Run(timeline, *measured);
      client_ended.store(true, std::memory_order_relaxed);
    });
    std::string problem = WatchServer(timeline, client_ended, turn);
    if (!problem.empty()) timeline.Stop();
    thread.join();
    if (!client_status.ok()) return client_status.ToString();
    if (!problem.empty()) return problem;
    for (size_t i = 0; i < kExpiryParts; ++i) {
      turn.parts[i] = {.seconds = timeline.SecondsOf(static_cast<ExpiryPart>(i)),
                       .latency_ns = measured->latency_ns[i]};
    }
    turn.late_ns = measured->late_ns;
    turn.tally = measured->tally;
    return {};
  }

  // Asks the server how many keys it has until the timeline ends, and sets that end.
  std::string WatchServer(ExpiryTimeline& timeline, const std::atomic<bool>& client_ended,
                          ExpiryTurn& turn) {
    const uint64_t last_ns = timeline.first_deadline_ns() + kSpreadMs * kNsPerMs;
    bool reclaimed = false;
    while (NowNs() < timeline.end_ns() && !client_ended.load(std::memory_order_relaxed)) {
      const auto keys = server_.CountKeys();
      const uint64_t now_ns = NowNs();
      if (!keys) return keys.error().ToString();
      if (!reclaimed && now_ns > last_ns && keys->all <= keys_before_) {
        reclaimed = true;
        turn.reclaim_seconds = static_cast<double>(now_ns - last_ns) * 1e-9;
        timeline.MarkReclaimed(now_ns);
      }
      if (!reclaimed && now_ns > last_ns + kReclaimPatienceNs) {
        return fmt::format("{} keys are left long after their deadline", keys->all - keys_before_);
      }
      SleepNs(kPollNs);
    }
    return {};
  }

  const KeyFormat format_;
  const ValuePool values_;
  const OpStream ops_;
  ExpiryServer server_;
  double seconds_per_key_ = 0;
  uint64_t keys_before_ = 0;
  ExpiryReport report_;
};

double MedianOf(const std::vector<ExpiryTurn>& turns, double (*figure)(const ExpiryTurn&)) {
  std::vector<double> figures;
  for (const ExpiryTurn& turn : turns) figures.push_back(figure(turn));
  return figures.empty() ? 0 : Median(std::move(figures));
}

}  // namespace

double ExpiryTurn::p99_ratio() const {
  return static_cast<double>(part(ExpiryPart::kDuring).latency_ns.Quantile(0.99)) /
         static_cast<double>(part(ExpiryPart::kBefore).latency_ns.Quantile(0.99));
}

double ExpiryReport::median_p99_ratio() const {
  return MedianOf(turns, [](const ExpiryTurn& turn) { return turn.p99_ratio(); });
}

double ExpiryReport::median_reclaim_seconds() const {
  return MedianOf(turns, [](const ExpiryTurn& turn) { return turn.reclaim_seconds; });
}

std::expected<ExpiryReport, std::string> RunExpiry(const ExpiryOptions& options) {
  if (std::string complaint = Complaint(options); !complaint.empty()) {
    return Problem(std::move(complaint));
  }
  auto server = ExpiryServer::Connect(options.host, options.port);
  if (!server) return Problem(server.error().ToString());
  return ExpiryRun(options, std::move(*server)).Run();
}

}  // namespace skep::bench

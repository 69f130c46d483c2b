#include "bench/net/net.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/cpu.h"
#include "base/network_address.h"
#include "bench/net/protocols.h"
#include "bench/op_generator.h"

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

constexpr uint64_t kStreamBytesMax = 256 << 20;  // on all connections together
constexpr double kOpsPerSecondMax = 10e6;        // more need not be made before the clock starts
constexpr uint64_t kInsertedRecordsMax = 10;     // times the loaded records
constexpr uint32_t kLoadGroup = 32;
constexpr uint64_t kLoadRound = 1 << 20;  // records made at a time
constexpr uint32_t kDepthMax = 1 << 16;
constexpr uint64_t kFatRootMessages = 4096;  // pages of up to 1024 leaves

// Returns what is wrong with the options, or nothing.
std::string Complaint(const NetOptions& options) {
  if (options.connections == 0) return "--connections must be at least 1";
  if (options.depth == 0 || options.depth > kDepthMax) {
    return fmt::format("--depth must be 1 to {}", kDepthMax);
  }
  if (options.group == 0 || options.group > kDepthMax) {
    return fmt::format("--group must be 1 to {}", kDepthMax);
  }
  if (options.get_percent > 100) return "--get-percent must be 0 to 100";
  if (options.scan_items > kScanItemsMax) {
    return fmt::format("--scan must be 0 to {}", kScanItemsMax);
  }
  if (options.records == 0) return "--records must be at least 1";
  if (options.key_bytes < KeyFormat::kBytesMin) return "--key-size must be at least 8";
  if (!(options.seconds >= 0)) return "--seconds must not be negative";
  if (!(options.warm_up_seconds >= 0)) return "--warm-up must not be negative";
  if (options.seconds == 0 && options.ops == 0 && !options.load) {
    return "--seconds or --ops must be more than 0, or --load is all there is to do";
  }
  const auto is_percent = [](uint32_t percent) { return percent >= 1 && percent <= 1000; };
  if (!std::ranges::all_of(options.curve, is_percent))
    return "--curve must be of 1 to 1000 per cent";
  if (options.udp && options.load) return "--load is for connections: a datagram may get lost";
  if (options.udp && !options.unix_path.empty()) return "--udp is not for unix sockets";
  if (options.fat_root && options.protocol != "packed")
    return "--fat-root is for --protocol packed";
  if (!options.one_sided.empty() &&
      (options.protocol != "packed" || options.udp || options.fat_root ||
       options.connections != 1 || options.depth != 1 || options.rate != 0 ||
       !options.curve.empty())) {
    return "--one-sided is a closed loop of --protocol packed with --connections 1 and --depth 1";
  }
  if (options.curve.empty()) return {};
  if (options.rate != 0) return "--curve finds its rates: without --rate";
  if (options.seconds == 0) return "--curve is measured for --seconds";
  return {};
}

std::optional<Workload> WorkloadOf(const NetOptions& options) {
  if (options.scan_items != 0) return FindWorkload(fmt::format("scan{}", options.scan_items));
  if (options.workload.empty()) {
    const int reads = static_cast<int>(options.get_percent);
    return Workload{.name = fmt::format("get{}", reads), .read = reads, .update = 100 - reads};
  }
  const auto workload = FindWorkload(options.workload);
  if (workload && (workload->is_for_compare() || workload->sweep)) return std::nullopt;
  return workload;
}

// Returns why the protocol cannot do the workload in groups of that size, or nothing.
std::string Complaint(const NetOptions& options, const Workload& workload,
                      const NetProtocol& protocol) {
  const int alone = workload.read_modify_write + (protocol.GroupsScans() ? 0 : workload.scan);
  if (options.group > 1 && alone > 0) {
    return "--group is for reads and writes: scans and read-modify-writes go alone";
  }
  const std::pair<int, OpKind> kinds[] = {{workload.read, OpKind::kRead},
                                          {workload.update, OpKind::kUpdate},
                                          {workload.insert, OpKind::kInsert},
                                          {workload.scan, OpKind::kScan},
                                          {workload.read_modify_write, OpKind::kReadModifyWrite}};
  if (options.udp && !protocol.DoesDatagrams()) {
    return fmt::format("{} does not go by datagrams", options.protocol);
  }
  for (const auto& [share, kind] : kinds) {
    if (share > 0 && !protocol.Does(kind)) {
      return fmt::format("{} has no command for all operations of the workload {}",
                         options.protocol, workload.name);
    }
  }
  return {};
}

Address AddressOfServer(const NetOptions& options) {
  if (options.unix_path.empty()) return AddressOf(options.host, options.port);
  return "unix:" + options.unix_path;
}

Result<StreamConnection> Connect(const NetOptions& options) {
  return StreamConnection::Connect(AddressOfServer(options));
}

NetFormat FormatOf(const NetOptions& options, client::FatRoot* fat_root) {
  return {.key_bytes = options.key_bytes,
          .value_bytes = options.value_bytes,
          .scan_command = options.scan_command,
          .datagrams = options.udp,
          .fat_root = fat_root};
}

Result<NetGenerator> MakeGenerator(const NetOptions& options, const NetFormat& format) {
  std::vector<NetLane> lanes;
  for (uint32_t i = 0; i < options.connections; ++i) {
    if (options.udp) {
      auto socket = SocketNetwork().ConnectDatagrams(AddressOf(options.host, options.port));
      if (!socket) return Fail(socket.error());
      lanes.emplace_back(std::move(*socket), MakeNetProtocol(options.protocol, format),
                         options.depth);
      continue;
    }
    auto connection = Connect(options);
    if (!connection) return Fail(connection.error());
    lanes.emplace_back(std::move(*connection), MakeNetProtocol(options.protocol, format),
                       options.depth);
  }
  return NetGenerator::Make(std::move(lanes));
}

class Session {
 public:
  // `one_sided`: null, or what makes the requests that are measured.
  Session(const NetOptions& options, const Workload& workload, NetGenerator generator,
          OneSidedLoop* one_sided)
      : options_(options),
        workload_(workload),
        format_(KeyFormat::Text(options.key_bytes)),
        values_(options.value_bytes, options.seed),
        generator_(std::move(generator)),
        one_sided_(one_sided),
        streams_(options.connections, OpStream(format_)) {}

  std::expected<NetReport, std::string> Run() {
    NetReport report = {.options = options_, .workload = workload_.name};
    if (options_.load) {
      const auto mops = Load();
      if (!mops) return Problem(mops.error());
      report.load_mops = *mops;
    }
    if (options_.seconds > 0 || options_.ops > 0) {
      MakeOperations();
      auto run = Measure(0, options_.rate);
      if (!run) return Problem(run.error());
      report.run = std::move(*run);
    }
    for (const uint32_t percent : options_.curve) {
      const double rate = report.run->figures.mops() * 1e4 * percent;
      auto run = Measure(percent, std::max<uint64_t>(1, static_cast<uint64_t>(rate)));
      if (!run) return Problem(run.error());
      report.curve.push_back(std::move(*run));
    }
    const auto usage = options_.server_pid ? UsageOfProcess(*options_.server_pid) : std::nullopt;
    if (usage) report.server_rss_bytes = usage->rss_bytes;
    return report;
  }

 private:
  WorkloadPlan PlanOf(uint64_t ops) const {
    return {.workload = workload_,
            .distribution = *options_.distribution,
            .records = options_.records,
            .ops = ops,
            .threads = options_.connections,
            .seed = options_.seed,
            .group = options_.group};
  }

  // Returns million records a second.
  std::expected<double, std::string> Load() {
    const WorkloadPlan plan = PlanOf(options_.records);
    std::vector<LoadGenerator> sources;
    for (uint32_t i = 0; i < options_.connections; ++i) sources.emplace_back(plan, i);
    double seconds = 0;
    for (uint64_t done = 0; done < options_.records; done += kLoadRound) {
      const uint64_t round = std::min(kLoadRound, options_.records - done);
      // Record n belongs to connection n modulo their number, whichever round it is in.
      const auto figures = LoadRound(sources, done, round);
      if (!figures) return Problem(figures.error());
      seconds += figures->seconds;
    }
    return static_cast<double>(options_.records) / seconds / 1e6;
  }

  NetGenerator::Outcome LoadRound(std::vector<LoadGenerator>& sources, uint64_t first,
                                  uint64_t count) {
    for (size_t i = 0; i < sources.size(); ++i) {
      streams_[i].Clear();
      sources[i].Fill(streams_[i], NumbersOf(i, first + count) - NumbersOf(i, first));
      generator_.lanes()[i].Take(streams_[i], values_, kLoadGroup, /*again=*/false);
    }
    return generator_.Run({.group = kLoadGroup, .ops_max = count});
  }

  // Returns how many of the records below `end` are the connection's.
  uint64_t NumbersOf(size_t connection, uint64_t end) const {
    const uint64_t all = options_.connections;
    return end / all + (connection < end % all ? 1 : 0);
  }

  // Returns how many operations are made before the clock starts; they repeat.
  uint64_t OpsMade() const {
    const double rate = options_.rate != 0 ? static_cast<double>(options_.rate) : kOpsPerSecondMax;
    const double seconds = options_.seconds + options_.warm_up_seconds;
    uint64_t ops = options_.ops != 0 ? options_.ops : static_cast<uint64_t>(rate * seconds);
    ops = std::min(ops, kStreamBytesMax / OpStream::BytesPerOp(format_));
    // YCSB draws a key again until it is one that exists: with more inserts that would take for
    // ever.
    if (workload_.insert > 0) ops = std::min(ops, options_.records * kInsertedRecordsMax);
    return ops;
  }

  // Each connection has operations of its own, in groups, and at least one group.
  void MakeOperations() {
    const uint64_t groups = OpsMade() / options_.connections / options_.group;
    const uint64_t ops = std::max<uint64_t>(1, groups) * options_.group;
    const WorkloadPlan plan = PlanOf(ops * options_.connections);
    for (uint32_t i = 0; i < options_.connections; ++i) {
      streams_[i] = OpStream(format_);
      OpGenerator(plan, i).Fill(streams_[i], ops);
      generator_.lanes()[i].Take(streams_[i], values_, options_.group, /*again=*/true);
    }
  }

  std::expected<NetRun, std::string> Measure(uint32_t percent, uint64_t rate) {
    const NetPace pace{.rate = rate,
                       .group = options_.group,
                       .warm_up_seconds = options_.warm_up_seconds,
                       .seconds = options_.seconds,
                       .ops_max = options_.ops,
                       .server_pid = options_.server_pid,
                       .allow_errors = options_.allow_errors};
    auto figures =
        one_sided_ != nullptr ? one_sided_->Run(streams_[0], values_, pace) : generator_.Run(pace);
    if (!figures) return Problem(figures.error());
    return NetRun{.percent = percent, .rate = rate, .figures = std::move(*figures)};
  }

  const NetOptions& options_;
  const Workload& workload_;
  const KeyFormat format_;
  const ValuePool values_;
  NetGenerator generator_;
  OneSidedLoop* const one_sided_;
  std::vector<OpStream> streams_;  // one for each lane
};

// Asks for the pages of the fat root over a connection, one with each message, since datagrams
// bring none. Returns what is wrong, or nothing.
std::string FillFatRoot(const NetOptions& options, client::FatRoot& fat_root) {
  NetOptions asked = {.protocol = options.protocol, .host = options.host, .port = options.port};
  asked.distribution = Distribution::kUniform;
  asked.records = options.records;
  asked.key_bytes = options.key_bytes;
  asked.connections = 1;
  asked.ops = kFatRootMessages * asked.group;
  asked.seconds = 0;
  asked.warm_up_seconds = 0;
  auto generator = MakeGenerator(asked, FormatOf(asked, &fat_root));
  if (!generator) return generator.error().ToString();
  const auto workload = *WorkloadOf(asked);
  const auto report = Session(asked, workload, std::move(*generator), nullptr).Run();
  return report ? std::string() : report.error();
}

}  // namespace

std::expected<NetReport, std::string> RunNet(NetOptions options) {
  if (std::string complaint = Complaint(options); !complaint.empty()) {
    return Problem(std::move(complaint));
  }
  const auto workload = WorkloadOf(options);
  if (!workload) return Problem("--workload must be one of a, b, c, d, e, f, get, update, cloudP");
  options.distribution = options.distribution.value_or(workload->distribution);
  std::optional<client::FatRoot> fat_root;
  if (options.fat_root) fat_root.emplace();
  const NetFormat format = FormatOf(options, fat_root ? &*fat_root : nullptr);
  const auto protocol = MakeNetProtocol(options.protocol, format);
  if (protocol == nullptr) {
    return Problem(
        fmt::format("--protocol must be one of {}", fmt::join(NetProtocolNames(), ", ")));
  }
  if (std::string complaint = Complaint(options, *workload, *protocol); !complaint.empty()) {
    return Problem(std::move(complaint));
  }
  std::optional<ScopedPin> pin;
  if (options.cpu && !pin.emplace(*options.cpu).pinned()) {
    return Problem(fmt::format("--cpu: this process may not use core {}", *options.cpu));
  }
  if (fat_root && options.udp) {
    if (std::string problem = FillFatRoot(options, *fat_root); !problem.empty()) {
      return Problem("--fat-root: " + problem);
    }
  }
  auto generator = MakeGenerator(options, format);
  if (!generator) return Problem(generator.error().ToString());
  std::optional<OneSidedLoop> one_sided;
  if (!options.one_sided.empty()) {
    auto store =
        Store::Connect({.address = AddressOfServer(options), .one_sided = options.one_sided});
    if (!store) return Problem("--one-sided: " + store.error().ToString());
    one_sided.emplace(std::move(*store), options.value_bytes);
  }
  auto report =
      Session(options, *workload, std::move(*generator), one_sided ? &*one_sided : nullptr).Run();
  if (report && fat_root) report->fat_root = fat_root->Statistics();
  if (report && one_sided) report->one_sided = one_sided->Counts();
  return report;
}

}  // namespace skep::bench

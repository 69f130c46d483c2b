#include "server/info.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "netindex/leaves/leaf_share.h"
#include "server/command.h"
#include "server/hot_gets.h"
#include "server/server.h"
#include "server/version.h"

namespace skep {
namespace {

using Out = std::back_insert_iterator<std::string>;

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string Human(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "K", "M", "G", "T"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return fmt::format("{:.{}f}{}", amount, unit == 0 ? 0 : 2, kUnits[unit]);
}

std::string SystemName() {
  utsname name{};
  uname(&name);
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string Executable() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

void ServerSection(Server& server, Out out) {
  const uint64_t now_ms = server.state().environment().clock.MonotonicMs();
  const uint64_t up_s = (now_ms - server.state().start_monotonic_ms()) / 1000;
  const ServerOptions options = server.options();
  const std::vector<Address> addresses = server.addresses();
  const size_t colon = addresses.empty() ? std::string::npos : addresses[0].rfind(':');
  // The port in use, not the option, where 0 may stand for any. A unix socket has none.
  const std::string port = colon == std::string::npos || addresses[0].starts_with("unix:")
                               ? "0"
                               : addresses[0].substr(colon + 1);
  // Clients infer the features of the server from redis_version.
  fmt::format_to(out,
                 "skep_version:{}\r\nredis_version:{}\r\nredis_mode:standalone\r\nos:{}\r\n"
                 "arch_bits:64\r\nmultiplexing_api:epoll\r\nprocess_id:{}\r\nrun_id:{}\r\n"
                 "tcp_port:{}\r\nserver_time_usec:{}\r\nuptime_in_seconds:{}\r\n"
                 "uptime_in_days:{}\r\nconfig_file:{}\r\nclock_behind_ms:{}\r\nworkers:{}\r\n"
                 "engine:{}\r\nexecutable:{}\r\nio_threads_active:0\r\n",
                 kVersion, kRedisVersion, SystemName(), getpid(), server.state().run_id(), port,
                 server.state().environment().clock.WallUs(), up_s, up_s / 86400,
                 options.config_file, server.state().time().Now().behind_ms, server.worker_count(),
                 options.engine, Executable());
}

void ClientsSection(Server& server, Out out) {
  fmt::format_to(
      out,
      "connected_clients:{}\r\ncluster_connections:0\r\nmaxclients:{}\r\n"
      "blocked_clients:{}\r\ntracking_clients:0\r\nclients_in_timeout_table:0\r\n"
      "scan_cursors:{}\r\nkscan_tokens:{}\r\n",
      server.connections(), server.options().maxclients,
      server.state().pause().waiting() + static_cast<int64_t>(server.state().waiters().size()),
      server.state().cursors().size(), server.state().key_scans().size());
}

uint64_t SystemMemoryBytes() {
  struct sysinfo info{};
  return sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : 0;
}

double Ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

constexpr std::string_view kNoScripts =
    "used_memory_vm_eval:0\r\nused_memory_vm_functions:0\r\nused_memory_scripts_eval:0\r\n"
    "used_memory_functions:0\r\nnumber_of_cached_scripts:0\r\nnumber_of_functions:0\r\n"
    "number_of_libraries:0\r\n";

// What Redis counts and there is none of here (scripts, replicas, a cluster, defragmentation) is 0.
void MemorySection(Server& server, Out out) {
  server.state().NoteMemory();
  const MemoryBudget& budget = server.keyspaces().budget();
  const uint64_t used = budget.used();
  const uint64_t peak = server.state().memory_peak();
  const uint64_t resident = ResidentBytes();
  const uint64_t system = SystemMemoryBytes();
  const auto tell = [&](std::string_view name, uint64_t bytes) {
    fmt::format_to(out, "{}:{}\r\n{}_human:{}\r\n", name, bytes, name, Human(bytes));
  };
  tell("used_memory", used);
  tell("used_memory_rss", resident);
  tell("used_memory_peak", peak);
  fmt::format_to(out, "used_memory_peak_perc:{:.2f}%\r\n", 100 * Ratio(used, peak));
  tell("total_system_memory", system);
  const uint64_t dataset = std::min(server.state().DatasetNow().bytes, used);
  fmt::format_to(out,
                 "used_memory_dataset:{}\r\nused_memory_dataset_perc:{:.2f}%\r\n"
                 "used_memory_overhead:{}\r\n",
                 dataset, 100 * Ratio(dataset, used), used - dataset);
  tell("used_memory_lua", 0);
  tell("used_memory_vm_total", 0);
  tell("used_memory_scripts", 0);
  fmt::format_to(out, kNoScripts);
  tell("maxmemory", budget.limit());
  fmt::format_to(out,
                 "maxmemory_policy:{}\r\nmem_fragmentation_ratio:{:.2f}\r\n"
                 "mem_fragmentation_bytes:{}\r\nmem_not_counted_for_evict:0\r\n"
                 "mem_replication_backlog:0\r\nmem_clients_slaves:0\r\nmem_clients_normal:{}\r\n"
                 "mem_total_replication_buffers:0\r\nmem_cluster_links:0\r\n"
                 "mem_allocator:libc\r\nactive_defrag_running:0\r\n"
                 "lazyfree_pending_objects:0\r\nlazyfreed_objects:0\r\n",
                 server.options().maxmemory_policy, Ratio(resident, used),
                 static_cast<int64_t>(resident - used), server.clients().bytes());
}

// The log is never rewritten, and no process is forked.
constexpr std::string_view kNoForks =
    "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:-1\r\n"
    "aof_current_rewrite_time_sec:-1\r\naof_last_bgrewrite_status:ok\r\n"
    "rdb_last_cow_size:0\r\naof_last_cow_size:0\r\nmodule_fork_in_progress:0\r\n"
    "module_fork_last_cow_size:0\r\n";

// As in Redis, a server that has saved nothing tells when it was started.
uint64_t LastSaveSeconds(ServerState& state, const durable::SnapshotStatistics& snapshot) {
  return snapshot.last_ms == 0 ? state.start_unix_s() : snapshot.last_ms / 1000;
}

void PersistenceSection(Server& server, Out out) {
  durable::Persistence* const persistence = server.persistence();
  if (persistence == nullptr) {
    fmt::format_to(out,
                   "loading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\n"
                   "rdb_last_save_time:{}\r\nrdb_last_bgsave_status:ok\r\n"
                   "rdb_last_bgsave_time_sec:-1\r\nrdb_saves:0\r\naof_enabled:0\r\n"
                   "aof_last_write_status:ok\r\n{}",
                   server.state().start_unix_s(), kNoForks);
    return;
  }
  const durable::SnapshotStatistics snapshot = persistence->saver().statistics();
  const durable::LogStatistics log = persistence->log().statistics();
  const Status status = persistence->log().status();
  const uint64_t to_replay = std::max(log.position, snapshot.log_position) - snapshot.log_position;
  fmt::format_to(
      out,
      "loading:0\r\nasync_loading:0\r\naof_enabled:1\r\naof_last_write_status:{}\r\n"
      "aof_current_size:{}\r\naof_base_size:{}\r\n{}log_position:{}\r\n"
      "log_synced_position:{}\r\nlog_bytes_to_replay:{}\r\nlog_records:{}\r\nlog_changes:{}\r\n"
      "log_writes:{}\r\nlog_syncs:{}\r\nlog_sync_usec_max:{}\r\nlog_unsynced_ms:{}\r\n"
      "log_problem:{}\r\nlog_free_bytes:{}\r\n"
      "rdb_changes_since_last_save:{}\r\nrdb_bgsave_in_progress:{}\r\n"
      "rdb_current_bgsave_time_sec:{}\r\nrdb_last_save_time:{}\r\nrdb_last_bgsave_status:{}\r\n"
      "rdb_last_bgsave_time_sec:{}\r\nrdb_saves:{}\r\nsnapshot_items:{}\r\nsnapshot_bytes:{}\r\n"
      "snapshots_for_space:{}\r\n",
      status.ok() ? "ok" : "err", to_replay, snapshot.last_bytes, kNoForks, log.position,
      log.synced_position, to_replay, log.records, log.changes, log.writes, log.syncs,
      log.sync_ns_max / 1000, log.unsynced_ms, status.ok() ? "" : status.ToString(),
      persistence->saver().free_bytes(), snapshot.changes_since, snapshot.is_saving ? 1 : 0,
      snapshot.is_saving ? static_cast<int64_t>(snapshot.saving_ms / 1000) : -1,
      LastSaveSeconds(server.state(), snapshot), snapshot.last_status.ok() ? "ok" : "err",
      snapshot.finished == 0 ? -1 : static_cast<int64_t>(snapshot.last_took_ms / 1000),
      snapshot.finished, snapshot.last_items, snapshot.last_bytes, snapshot.for_space);
}

// What Redis counts and there is none of here (replicas, evictions, forks) is 0.
constexpr std::string_view kNeverCounted =
    "total_net_repl_input_bytes:0\r\ntotal_net_repl_output_bytes:0\r\nsync_full:0\r\n"
    "sync_partial_ok:0\r\nsync_partial_err:0\r\nevicted_keys:0\r\n"
    "total_eviction_exceeded_time:0\r\ncurrent_eviction_exceeded_time:0\r\n"
    "latest_fork_usec:0\r\ntotal_forks:0\r\nmigrate_cached_sockets:0\r\n"
    "slave_expires_tracked_keys:0\r\nactive_defrag_hits:0\r\nactive_defrag_misses:0\r\n"
    "active_defrag_key_hits:0\r\nactive_defrag_key_misses:0\r\ntracking_total_keys:0\r\n"
    "tracking_total_items:0\r\ntracking_total_prefixes:0\r\nunexpected_error_replies:0\r\n"
    "dump_payload_sanitizations:0\r\ninstantaneous_input_repl_kbps:0.00\r\n"
    "instantaneous_output_repl_kbps:0.00\r\nexpired_stale_perc:0.00\r\n"
    "expired_time_cap_reached_count:0\r\ntotal_active_defrag_time:0\r\n"
    "current_active_defrag_time:0\r\nreply_buffer_shrinks:0\r\nreply_buffer_expands:0\r\n"
    "io_threaded_reads_processed:0\r\n"
    "io_threaded_writes_processed:0\r\n";

void StatsSection(Server& server, Out out) {
  const ServerCounts all = server.Counts();
  uint64_t commands = 0, input = 0, output = 0;
  for (size_t i = 0; i < server.worker_count(); ++i) {
    const WorkerStatistics& worker = server.worker(i).statistics();
    commands += worker.command_rate.per_second();
    input += worker.input_rate.per_second();
    output += worker.output_rate.per_second();
  }
  constexpr double kKilo = 1024;
  const Subscriptions& messages = server.state().subscriptions();
  fmt::format_to(
      out,
      "total_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
      "instantaneous_ops_per_sec:{}\r\ntotal_net_input_bytes:{}\r\n"
      "total_net_output_bytes:{}\r\ninstantaneous_input_kbps:{:.2f}\r\n"
      "instantaneous_output_kbps:{:.2f}\r\nrejected_connections:{}\r\nexpired_keys:{}\r\n"
      "evicted_clients:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\n"
      "total_error_replies:{}\r\ntotal_reads_processed:{}\r\ntotal_writes_processed:{}\r\n"
      "total_batches:{}\r\ntotal_batch_requests:{}\r\nturn_bytes_max:{}\r\npubsub_channels:{}\r\n"
      "pubsub_patterns:{}\r\npubsubshard_channels:{}\r\n{}",
      all.connections, all.commands, commands, all.input_bytes, all.output_bytes,
      static_cast<double>(input) / kKilo, static_cast<double>(output) / kKilo, all.rejected,
      all.expired_keys, all.evicted_clients, all.hits, all.misses, all.errors, all.reads,
      all.writes, all.batches, all.batch_requests, all.turn_bytes_max(),
      messages.NameCount(ChannelKind::kChannel), messages.NameCount(ChannelKind::kPattern),
      messages.NameCount(ChannelKind::kShard), kNeverCounted);
}

void CommandStatsSection(Server& server, Out out) {
  const ServerCounts all = server.Counts();
  for (size_t i = 0; i < all.by_command.size(); ++i) {
    const CommandCounts& c = all.by_command[i];
    if (c.empty()) continue;
    constexpr uint64_t kNsPerUs = 1000;
    fmt::format_to(out,
                   "cmdstat_{}:calls={},usec={},usec_per_call={:.2f},rejected_calls={},"
                   "failed_calls={}\r\n",
                   CountedCommands()[i].name, c.calls, c.ns / kNsPerUs,
                   Ratio(c.ns, c.calls) / static_cast<double>(kNsPerUs), c.rejected, c.failed);
  }
}

void ErrorStatsSection(Server& server, Out out) {
  const ServerCounts all = server.Counts();
  for (size_t i = 0; i < all.by_error.size(); ++i) {
    if (all.by_error[i] == 0) continue;
    fmt::format_to(out, "errorstat_{}:count={}\r\n", ErrorCodes()[i], all.by_error[i]);
  }
}

// The upper bound, in microseconds, of the bucket that has the call of this rank.
double LatencyOf(const CommandCounts& counts, double part) {
  const auto rank = static_cast<uint64_t>(part * static_cast<double>(counts.calls));
  uint64_t passed = 0;
  size_t bucket = 0;
  for (; bucket + 1 < kLatencyBuckets; ++bucket) {
    passed += counts.latency[bucket];
    if (passed > rank || passed == counts.calls) break;
  }
  return static_cast<double>(LatencyBoundNs(bucket)) / 1000;
}

void LatencyStatsSection(Server& server, Out out) {
  const ServerCounts all = server.Counts();
  for (size_t i = 0; i < all.by_command.size(); ++i) {
    const CommandCounts& c = all.by_command[i];
    if (c.calls == 0) continue;
    fmt::format_to(out, "latency_percentiles_usec_{}:p50={:.3f},p99={:.3f},p99.9={:.3f}\r\n",
                   CountedCommands()[i].name, LatencyOf(c, 0.5), LatencyOf(c, 0.99),
                   LatencyOf(c, 0.999));
  }
}

void ClusterSection(Server&, Out out) { fmt::format_to(out, "cluster_enabled:0\r\n"); }

// The identity of the data is that of the run, as for a master that never had a replica.
void ReplicationSection(Server& server, Out out) {
  fmt::format_to(out,
                 "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
                 "master_replid:{}\r\nmaster_replid2:{:0>40}\r\nmaster_repl_offset:0\r\n"
                 "second_repl_offset:-1\r\nrepl_backlog_active:0\r\n"
                 "repl_backlog_first_byte_offset:0\r\nrepl_backlog_histlen:0\r\n",
                 server.state().run_id(), "");
}

void CpuSection(Server&, Out out) {
  const auto tell = [&](int whose, std::string_view suffix) {
    rusage usage{};
    getrusage(whose, &usage);
    fmt::format_to(out, "used_cpu_sys{}:{}.{:06}\r\nused_cpu_user{}:{}.{:06}\r\n", suffix,
                   usage.ru_stime.tv_sec, usage.ru_stime.tv_usec, suffix, usage.ru_utime.tv_sec,
                   usage.ru_utime.tv_usec);
  };
  tell(RUSAGE_SELF, "");
  tell(RUSAGE_CHILDREN, "_children");
}

void KeyspaceSection(Server& server, Out out) {
  for (uint32_t i = 0; i < server.keyspaces().count(); ++i) {
    Engine* const engine = server.keyspaces().if_used(i);
    if (engine == nullptr) continue;
    const EngineStatistics s = engine->Statistics();
    if (s.items == 0 && s.snapshots == 0) continue;
    // Exporters know three fields of a database, and take no line that has more.
    if (s.items > 0) {
      fmt::format_to(out, "db{}:keys={},expires={},avg_ttl=0\r\n", i, s.items, s.deadlines);
    }
    fmt::format_to(out,
                   "keyspace{}:engine={},bytes={},old_versions={},snapshots={},released={},"
                   "versions={}\r\n",
                   i, engine->traits().name, s.bytes, s.old_versions, s.snapshots, engine->told(),
                   engine->traits().snapshots ? "many" : "one");
  }
}

// A line for each number an engine tells of itself: "db0_leaves:12".
void DescribeEngines(Server& server, bool are_pools, Out out) {
  const uint64_t now_ms = server.state().time().Now().ms;
  for (uint32_t i = 0; i < server.keyspaces().count(); ++i) {
    const Engine* const engine = server.keyspaces().if_used(i);
    if (engine == nullptr || (engine->traits().name == "pool") != are_pools) continue;
    engine->Describe(now_ms, [&](std::string_view name, uint64_t value) {
      fmt::format_to(out, "db{}_{}:{}\r\n", i, name, value);
    });
  }
}

void EngineSection(Server& server, Out out) { DescribeEngines(server, false, out); }
void PoolSection(Server& server, Out out) { DescribeEngines(server, true, out); }

void RangesSection(Server& server, Out out) {
  const ranges::RangeOwner* const owner = server.state().range_owner();
  if (owner == nullptr) return;
  owner->Describe([&](std::string_view name, uint64_t value) {
    fmt::format_to(out, "ranges_{}:{}\r\n", name, value);
  });
}

void XdpSection(Server& server, Out out) {
  HotGets* const hot = server.state().hot_gets();
  if (hot == nullptr) return;
  const xdp::HotMap::Statistics s = hot->map().statistics();
  const std::string interface = hot->interface();
  fmt::format_to(out,
                 "xdp_interface:{}\r\nxdp_mode:{}\r\nxdp_hits:{}\r\nxdp_misses:{}\r\n"
                 "xdp_fills:{}\r\nxdp_fills_in_vain:{}\r\nxdp_invalidations:{}\r\n"
                 "xdp_epoch:{}\r\n",
                 interface,
                 interface.empty()  ? "detached"
                 : hot->is_native() ? "native"
                                    : "generic",
                 s.hits, s.misses, s.fills, s.fills_in_vain, s.invalidations, s.epoch);
}

void LeavesSection(Server& server, Out out) {
  const leaves::LeafShare* const share = server.state().leaf_share();
  if (share == nullptr) return;
  fmt::format_to(out, "leaves_shared_at:{}\r\nleaves_peers:{}\r\n", share->place(), share->peers());
}

// How many bytes of the process are on huge pages, as far as the system tells.
void HugePagesSection(Server&, Out out) {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    unsigned long kib = 0;
    if (std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) != 1) continue;
    fmt::format_to(out, "used_memory_huge:{}\r\n", uint64_t{kib} * 1024);
  }
}

struct Section {
  std::string_view name;  // lower case
  std::string_view title;
  void (*write)(Server& server, Out out);
  // Without a name: the sections that are short and cheap.
  enum class Wanted : uint8_t { kAlways, kWithAll, kWithEverything } wanted = Wanted::kAlways;
};

constexpr Section kSections[] = {
    {"server", "Server", ServerSection},
    {"clients", "Clients", ClientsSection},
    {"memory", "Memory", MemorySection},
    {"persistence", "Persistence", PersistenceSection},
    {"stats", "Stats", StatsSection},
    {"replication", "Replication", ReplicationSection},
    {"cpu", "CPU", CpuSection},
    {"commandstats", "Commandstats", CommandStatsSection, Section::Wanted::kWithAll},
    {"errorstats", "Errorstats", ErrorStatsSection},
    {"latencystats", "Latencystats", LatencyStatsSection, Section::Wanted::kWithAll},
    {"cluster", "Cluster", ClusterSection},
    {"engine", "Engine", EngineSection},
    {"pool", "Pool", PoolSection},
    {"ranges", "Ranges", RangesSection},
    {"xdp", "XDP", XdpSection},
    {"leaves", "Leaves", LeavesSection},
    {"keyspace", "Keyspace", KeyspaceSection},
    // The system needs milliseconds for it.
    {"hugepages", "HugePages", HugePagesSection, Section::Wanted::kWithEverything},
};

bool IsWanted(const Section& section, std::span<const std::string_view> sections) {
  using enum Section::Wanted;
  const auto names_it = [&](std::string_view wanted) {
    if (EqualsIgnoringCase(wanted, section.name)) return true;
    if (EqualsIgnoringCase(wanted, "everything")) return true;
    if (EqualsIgnoringCase(wanted, "all")) return section.wanted != kWithEverything;
    return EqualsIgnoringCase(wanted, "default") && section.wanted == kAlways;
  };
  if (sections.empty()) return section.wanted == kAlways;
  return std::ranges::any_of(sections, names_it);
}

}  // namespace

std::string DescribeServer(Server& server, std::span<const std::string_view> sections) {
  std::string text;
  for (const Section& section : kSections) {
    if (!IsWanted(section, sections)) continue;
    if (!text.empty()) text += "\r\n";
    fmt::format_to(std::back_inserter(text), "# {}\r\n", section.title);
    section.write(server, std::back_inserter(text));
  }
  return text;
}

}  // namespace skep

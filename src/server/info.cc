#include "server/info.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "server/command.h"
#include "server/hot_gets.h"
#include "server/server.h"
#include "server/version.h"

namespace skep {
namespace {

using Out = std::back_insert_iterator<std::string>;

struct Totals {
  uint64_t commands = 0, connections = 0, rejected = 0, batches = 0, batch_requests = 0;
  uint64_t input_bytes = 0, output_bytes = 0, errors = 0;
};

Totals Sum(Server& server) {
  Totals all;
  const auto load = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  for (size_t i = 0; i < server.worker_count(); ++i) {
    const WorkerStatistics& s = server.worker(i).statistics();
    all.commands += load(s.commands);
    all.connections += load(s.connections);
    all.rejected += load(s.rejected);
    all.batches += load(s.batches);
    all.batch_requests += load(s.batch_requests);
    all.input_bytes += load(s.input_bytes);
    all.output_bytes += load(s.output_bytes);
    all.errors += load(s.errors);
  }
  return all;
}

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
                 "skep_version:{}\r\nredis_version:{}\r\nredis_mode:standalone\r\narch_bits:64\r\n"
                 "process_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n"
                 "uptime_in_days:{}\r\nclock_behind_ms:{}\r\nworkers:{}\r\nengine:{}\r\n",
                 kVersion, kRedisVersion, getpid(), server.state().run_id(), port, up_s,
                 up_s / 86400, server.state().time().Now().behind_ms, server.worker_count(),
                 options.engine);
}

void ClientsSection(Server& server, Out out) {
  fmt::format_to(out,
                 "connected_clients:{}\r\nmaxclients:{}\r\nscan_cursors:{}\r\nkscan_tokens:{}\r\n",
                 server.connections(), server.options().maxclients, server.state().cursors().size(),
                 server.state().key_scans().size());
}

void MemorySection(Server& server, Out out) {
  const MemoryBudget& budget = server.keyspaces().budget();
  const uint64_t resident = ResidentBytes();
  fmt::format_to(out,
                 "used_memory:{}\r\nused_memory_human:{}\r\nused_memory_rss:{}\r\n"
                 "used_memory_rss_human:{}\r\nmaxmemory:{}\r\nmaxmemory_human:{}\r\n"
                 "maxmemory_policy:{}\r\nmem_clients_normal:{}\r\n",
                 budget.used(), Human(budget.used()), resident, Human(resident), budget.limit(),
                 Human(budget.limit()), server.options().maxmemory_policy,
                 server.clients().bytes());
}

void PersistenceSection(Server& server, Out out) {
  durable::Persistence* const persistence = server.persistence();
  if (persistence == nullptr) {
    fmt::format_to(out, "loading:0\r\naof_enabled:0\r\n");
    return;
  }
  const durable::SnapshotStatistics snapshot = persistence->saver().statistics();
  const durable::LogStatistics log = persistence->log().statistics();
  const Status status = persistence->log().status();
  const uint64_t to_replay = std::max(log.position, snapshot.log_position) - snapshot.log_position;
  fmt::format_to(
      out,
      "loading:0\r\naof_enabled:1\r\naof_last_write_status:{}\r\nlog_position:{}\r\n"
      "log_synced_position:{}\r\nlog_bytes_to_replay:{}\r\nlog_records:{}\r\nlog_changes:{}\r\n"
      "log_writes:{}\r\nlog_syncs:{}\r\nlog_sync_usec_max:{}\r\nlog_unsynced_ms:{}\r\n"
      "log_problem:{}\r\nlog_free_bytes:{}\r\n"
      "rdb_bgsave_in_progress:{}\r\nrdb_last_save_time:{}\r\nrdb_last_bgsave_status:{}\r\n"
      "rdb_last_bgsave_time_sec:{}\r\nsnapshot_items:{}\r\nsnapshot_bytes:{}\r\n"
      "snapshots_for_space:{}\r\n",
      status.ok() ? "ok" : "err", log.position, log.synced_position, to_replay, log.records,
      log.changes, log.writes, log.syncs, log.sync_ns_max / 1000, log.unsynced_ms,
      status.ok() ? "" : status.ToString(), persistence->saver().free_bytes(),
      snapshot.is_saving ? 1 : 0, snapshot.last_ms / 1000, snapshot.last_status.ok() ? "ok" : "err",
      snapshot.last_took_ms / 1000, snapshot.last_items, snapshot.last_bytes, snapshot.for_space);
}

// Expired keys of all databases, since the start.
uint64_t ExpiredKeys(Server& server) {
  uint64_t keys = 0;
  for (uint32_t i = 0; i < server.keyspaces().count(); ++i) {
    const Engine* const engine = server.keyspaces().if_used(i);
    if (engine != nullptr) keys += engine->Statistics().expired_keys;
  }
  return keys;
}

void StatsSection(Server& server, Out out) {
  const Totals all = Sum(server);
  fmt::format_to(out,
                 "total_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
                 "rejected_connections:{}\r\ntotal_net_input_bytes:{}\r\n"
                 "total_net_output_bytes:{}\r\ntotal_error_replies:{}\r\ntotal_batches:{}\r\n"
                 "total_batch_requests:{}\r\nexpired_keys:{}\r\nevicted_clients:{}\r\n",
                 all.connections, all.commands, all.rejected, all.input_bytes, all.output_bytes,
                 all.errors, all.batches, all.batch_requests, ExpiredKeys(server),
                 server.clients().evicted());
}

void ReplicationSection(Server&, Out out) {
  fmt::format_to(out, "role:master\r\nconnected_slaves:0\r\n");
}

void CpuSection(Server&, Out out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::format_to(out, "used_cpu_sys:{}.{:06}\r\nused_cpu_user:{}.{:06}\r\n", usage.ru_stime.tv_sec,
                 usage.ru_stime.tv_usec, usage.ru_utime.tv_sec, usage.ru_utime.tv_usec);
}

void KeyspaceSection(Server& server, Out out) {
  for (uint32_t i = 0; i < server.keyspaces().count(); ++i) {
    Engine* const engine = server.keyspaces().if_used(i);
    if (engine == nullptr) continue;
    const EngineStatistics s = engine->Statistics();
    if (s.items == 0 && s.snapshots == 0) continue;
    fmt::format_to(out,
                   "db{}:keys={},expires={},avg_ttl=0,engine={},bytes={},old_versions={},"
                   "snapshots={},released={},versions={}\r\n",
                   i, s.items, s.deadlines, engine->traits().name, s.bytes, s.old_versions,
                   s.snapshots, engine->told(), engine->traits().snapshots ? "many" : "one");
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
  bool only_if_named = false;  // the system needs milliseconds for it
};

constexpr Section kSections[] = {
    {"server", "Server", ServerSection},
    {"clients", "Clients", ClientsSection},
    {"memory", "Memory", MemorySection},
    {"persistence", "Persistence", PersistenceSection},
    {"stats", "Stats", StatsSection},
    {"replication", "Replication", ReplicationSection},
    {"cpu", "CPU", CpuSection},
    {"engine", "Engine", EngineSection},
    {"pool", "Pool", PoolSection},
    {"ranges", "Ranges", RangesSection},
    {"xdp", "XDP", XdpSection},
    {"keyspace", "Keyspace", KeyspaceSection},
    {"hugepages", "HugePages", HugePagesSection, true},
};

bool IsWanted(const Section& section, std::span<const std::string_view> sections) {
  const auto names_it = [&](std::string_view wanted) {
    if (EqualsIgnoringCase(wanted, section.name) || EqualsIgnoringCase(wanted, "everything")) {
      return true;
    }
    return !section.only_if_named &&
           (EqualsIgnoringCase(wanted, "all") || EqualsIgnoringCase(wanted, "default"));
  };
  if (sections.empty()) return !section.only_if_named;
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

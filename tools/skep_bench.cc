// skep-bench: measures what the machine can do (limits), what Skep does (ycsb), indexes side by
// side (compare), servers over the network (net), the effect on clients when very many keys expire
// at once (expiry), the models of KV-Direct (kv-direct), open questions of the HeteroKV paper
// (hetero-kv), and the experiments of the papers of HStore (hstore) and Fat-B+Tree (fat-btree).
// bench/README.md has more.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/compare.h"
#include "bench/engine_spec.h"
#include "bench/expiry.h"
#include "bench/fat_btree/figures.h"
#include "bench/hetero_kv/figures.h"
#include "bench/hstore/figures.h"
#include "bench/kv_direct/figures.h"
#include "bench/limits.h"
#include "bench/net/net.h"
#include "bench/net/protocols.h"
#include "bench/progress.h"
#include "bench/report.h"
#include "bench/resident_memory.h"
#include "bench/ycsb.h"

namespace {

using namespace skep::bench;

constexpr int kFailed = 1;
constexpr const char* kNone = "none";

template <typename Report>
void Print(const Report& report, bool json) {
  fmt::print("{}", json ? JsonOf(report) : TableOf(report));
}

int RunLimits(const LimitsOptions& options, bool json) {
  const auto report = MeasureLimits(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error().ToString());
    return kFailed;
  }
  Print(*report, json);
  return 0;
}

int RunWorkload(const YcsbOptions& options, bool json) {
  const auto report = RunYcsb(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->run.tally.errors == 0) return 0;
  fmt::print(stderr, "skep-bench: {} operations failed, the first: {}\n", report->run.tally.errors,
             report->run.tally.first_error);
  return kFailed;
}

int RunComparison(const CompareOptions& options, bool json) {
  const auto report = RunCompare(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->sound()) return 0;
  fmt::print(stderr, "skep-bench: {} operations failed{}\n", report->errors,
             report->agrees ? "" : ", checksums differ");
  return kFailed;
}

int RunMassExpiry(const ExpiryOptions& options, bool json) {
  const auto report = RunExpiry(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->errors == 0) return 0;
  fmt::print(stderr, "skep-bench: {} commands failed, the first: {}\n", report->errors,
             report->first_error);
  return kFailed;
}

template <typename Report>
int PrintIfAny(const std::expected<Report, std::string>& report, bool json) {
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  return 0;
}

void AddLimitsOptions(CLI::App& app, LimitsOptions& options) {
  app.add_option("--bytes", options.bytes, "memory to measure in, as 512M or 8G")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

void AddDistribution(CLI::App& app, std::optional<Distribution>& distribution) {
  app.add_option_function<std::string>(
         "--dist", [&](const std::string& name) { distribution = FindDistribution(name); },
         "how keys are chosen; without it, as the workload defines")
      ->check(CLI::IsMember({"uniform", "zipfian", "latest"}));
}

void AddYcsbOptions(CLI::App& app, YcsbOptions& options) {
  auto* engine = app.add_option("--engine", options.engine,
                                "the index, in this process: btree:layout=paper,node=4096")
                     ->capture_default_str();
  auto* host = app.add_option("--host", options.host,
                              "run against the server there, by RESP pipelines; its keys are kept");
  app.add_option("--port", options.port, "of the server")->needs(host)->capture_default_str();
  host->excludes(engine);
  app.add_option("--workload", options.workload,
                 "a, b, c, d, e, f, get, update, load, scan or cloud")
      ->capture_default_str();
  app.add_option("--scan-length", options.scan_length, "items, of the workload scan")
      ->capture_default_str();
  app.add_option("--read-percent", options.read_percent,
                 "of the workload cloud: scans of 3 or 4 items; the rest are inserts")
      ->capture_default_str();
  AddDistribution(app, options.distribution);
  app.add_option("--records", options.records, "loaded before the run")->capture_default_str();
  app.add_option("--ops", options.ops, "of all threads together")->capture_default_str();
  app.add_option("--threads", options.threads, "each with its own connection to a server")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "operations in one batch, or in one pipeline")
      ->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes, at least 4")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal operations")
      ->capture_default_str();
  app.add_flag("--loaded", options.is_loaded, "the server has the records already")
      ->needs("--host");
  app.add_option("--rate", options.rate, "operations a second; 0: as fast as they can")
      ->capture_default_str();
}

// Takes what --keys names: a kind of keys, or the file that has them.
void TakeKeys(const std::string& name, CompareOptions& options) {
  constexpr std::string_view kFile = "file=";
  if (name.starts_with(kFile)) {
    auto keys = KeyFile::Read(name.substr(kFile.size()));
    if (!keys) throw CLI::ValidationError("--keys", keys.error());
    options.key_file = std::make_shared<const KeyFile>(std::move(*keys));
    return;
  }
  const auto kind = KeyKindNamed(name);
  if (!kind) throw CLI::ValidationError("--keys", "no keys are named " + name);
  options.keys = *kind;
  options.key_file = nullptr;
}

void AddCompareOptions(CLI::App& app, CompareOptions& options) {
  app.add_option_function<std::vector<std::string>>(
         "--engines",
         [&](const std::vector<std::string>& pieces) {
           options.engines = JoinEngineSpecs(pieces);
           std::erase(options.engines, kNone);
         },
         "of Skep, as btree,btree:layout=paper,node=4096; or none")
      ->delimiter(',')
      ->default_str("btree");
  app.add_option_function<std::vector<std::string>>(
         "--peers",
         [&](const std::vector<std::string>& names) {
           options.peers = names;
           std::erase(options.peers, kNone);
         },
         "absl, rocksdb, lmdb, tbb-map, tbb-hash, cuckoo, boost; ratios are to the first; or none")
      ->delimiter(',')
      ->default_str("absl");
  app.add_option(
         "--workloads", options.workloads,
         "in this order: load, get, a .. f, scanN, cloudP (P % scans), hotN (reads of N "
         "neighbours), update, churn, delete; NAME:DIST chooses keys by another distribution")
      ->delimiter(',')
      ->capture_default_str();
  AddDistribution(app, options.distribution);
  app.add_option("--items", options.items, "in each index; several: an index of each")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--ops", options.ops, "in a repeat of each workload but load")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "of each workload; figures are medians")
      ->capture_default_str();
  app.add_option("--batch", options.batches, "operations in one batch; several: in turn")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--threads", options.threads, "on one index; several: in turn")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--snapshots", options.snapshots, "held during a turn; several: in turn")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--keys", [&](const std::string& name) { TakeKeys(name, options); },
         "binary (random bytes), decimal, hex, user (user:0123456789:field), uuid, url; or "
         "file=PATH, which has one a line")
      ->default_str("binary");
  app.add_option("--key-size", options.key_bytes, "bytes of a binary key, at least 4")
      ->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal operations")
      ->capture_default_str();
  app.add_flag("--mixed-sizes", options.mixed_sizes,
               "keys and values of 8, 16, 24 and 32 bytes, instead of one size");
  app.add_flag("--apart", options.apart,
               "one subject at a time in memory, loaded anew for each repeat");
  app.add_option("--limits", options.limits_bytes,
                 "measure the machine's limits first, in so much memory, as 8G")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

void AddExpiryOptions(CLI::App& app, ExpiryOptions& options) {
  app.add_option("--host", options.host, "the server is there; keys that stay are kept")
      ->capture_default_str();
  app.add_option("--port", options.port, "of the server")->capture_default_str();
  app.add_option("--items", options.items, "keys that expire within one second")
      ->capture_default_str();
  app.add_option("--stay", options.stay, "keys that do not: commands are on these")
      ->capture_default_str();
  app.add_option("--connections", options.connections, "for the commands, in one thread")
      ->capture_default_str();
  auto* depth = app.add_option("--depth", options.depth,
                               "closed loop: commands on their way on each connection")
                    ->capture_default_str();
  app.add_option("--rate", options.rate,
                 "open loop: commands a second, together, sent by the clock; 0: a closed loop")
      ->excludes(depth)
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "measured before the first deadline, and after all")
      ->capture_default_str();
  app.add_option("--lead", options.lead_seconds,
                 "seconds for storing the keys that expire; 0: judged by those that stay")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "ratios are medians")->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes, at least 8")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal commands")
      ->capture_default_str();
}

void AddNetTarget(CLI::App& app, NetOptions& options) {
  app.add_option("--protocol", options.protocol, "what the server speaks")
      ->check(CLI::IsMember(NetProtocolNames()))
      ->capture_default_str();
  auto* host = app.add_option("--host", options.host, "the server is there; its keys are kept")
                   ->capture_default_str();
  auto* port = app.add_option("--port", options.port, "of the server")->capture_default_str();
  app.add_option("--unix", options.unix_path, "path of the server's unix socket, instead")
      ->excludes(host)
      ->excludes(port);
  app.add_flag("--udp", options.udp, "requests are datagrams, on --connections sockets");
  app.add_flag("--fat-root", options.fat_root, "packed: requests have hints of their leaves");
  app.add_option(
      "--one-sided", options.one_sided,
      "packed: leaves are read where the server shares them: mem:unix:PATH, tcp:HOST:PORT");
  app.add_option("--name", options.name, "of the server, for charts");
  app.add_option("--server-pid", options.server_pid, "its processor time and memory are told");
}

void AddNetWorkload(CLI::App& app, NetOptions& options) {
  auto* workload = app.add_option("--workload", options.workload,
                                  "a, b, c, d, e, f, get, update or cloudP, as in ycsb");
  auto* gets = app.add_option("--get-percent", options.get_percent, "reads; the rest are updates")
                   ->excludes(workload)
                   ->capture_default_str();
  app.add_option("--scan", options.scan_items, "only scans, of so many items")
      ->excludes(workload)
      ->excludes(gets);
  const std::map<std::string, ScanCommand> commands = {{"krange", ScanCommand::kKrange},
                                                       {"zrangebylex", ScanCommand::kZrangebylex},
                                                       {"mget", ScanCommand::kMget}};
  app.add_option("--scan-command", options.scan_command,
                 "krange; zrangebylex: of a sorted set that holds all records; mget: of any keys")
      ->transform(CLI::CheckedTransformer(commands))
      ->default_str("krange");
  AddDistribution(app, options.distribution);
  app.add_option("--records", options.records, "that there are")->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes, at least 8")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal operations")
      ->capture_default_str();
  app.add_flag("--load", options.load, "store the records first");
}

void AddNetOptions(CLI::App& app, NetOptions& options) {
  AddNetTarget(app, options);
  AddNetWorkload(app, options);
  app.add_option("--connections", options.connections, "of one thread")->capture_default_str();
  app.add_option("--depth", options.depth, "requests on their way on each connection, at most")
      ->capture_default_str();
  app.add_option("--group", options.group, "operations of a request: MGET, MSET and their like")
      ->capture_default_str();
  auto* rate = app.add_option("--rate", options.rate,
                              "open loop: operations a second, by the clock; 0: a closed loop")
                   ->capture_default_str();
  app.add_option("--curve", options.curve,
                 "open loops at such per cent of the closed loop's throughput: 10,30,50,70,90")
      ->delimiter(',')
      ->excludes(rate);
  app.add_option("--warm-up", options.warm_up_seconds, "seconds before it is measured")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "measured; 0: until --ops, or only --load")
      ->capture_default_str();
  app.add_option("--ops", options.ops, "measured at most; 0: until the time is over")
      ->capture_default_str();
  app.add_option("--cpu", options.cpu, "the core of the generator");
  app.add_flag("--allow-errors", options.allow_errors,
               "count what the server refuses, instead of ending");
}

void AddKvDirectOptions(CLI::App& app, KvDirectOptions& options) {
  auto* what = app.add_option_group("what");
  what->add_option("--table", options.table, "load dispatch: 5, its best ratio; 6, its gain");
  what->add_option("--figure", options.figure,
                   "accesses by inline limit (6), by index ratio and utilisation (9), best index "
                   "ratio (10), beside cuckoo and hopscotch (11); merging free slabs (12)");
  what->require_option(1);
  app.add_option_function<std::string>(
         "--mode",
         [&](const std::string& name) {
           options.mode = name == "paper" ? DispatchMode::kPaper : DispatchMode::kExact;
         },
         "of the tables: as printed, or without the errors of the print")
      ->check(CLI::IsMember({"paper", "exact"}))
      ->default_str("exact");
  app.add_option("--bytes", options.bytes, "memory of a model, figures 6 to 11")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  app.add_option("--slots", options.slots, "of 32 B, half of them free, figure 12")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the models' hashes")->capture_default_str();
}

void AddHeteroKvOptions(CLI::App& app, HeteroKvOptions& options) {
  app.add_option("--figure", options.figure,
                 "sorters: grouping by leaf; scans: ways to read a leaf; wait: latency by load")
      ->required();
  app.add_option("--records", options.records, "scans, wait")->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes: 4, 8 or 16")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "scans, wait: 4, 8 or 16 bytes")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "of each measurement; the median counts")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "wait: of a measurement")->capture_default_str();
  app.add_option("--wanted", options.wanted, "wait: operations that are a large batch")
      ->capture_default_str();
  app.add_option("--wait-us", options.wait_us, "wait: microseconds, the longest")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of keys")->capture_default_str();
}

void AddHStoreOptions(CLI::App& app, HStoreOptions& options) {
  app.add_option("--figure", options.figure,
                 "2a: accesses; 7, 8: PUT, GET, SCAN; 9: where time goes; 10: YCSB; 11a: recovery; "
                 "11b: GETs while a server dies; scan: serial and batched")
      ->required();
  app.add_option("--fabric", options.fabric, "mem, tcp; or sim, whose times are modelled")
      ->capture_default_str();
  app.add_option("--items", options.items, "0: 20 M over mem, 100,000 over tcp and sim")
      ->capture_default_str();
  app.add_option("--ops", options.ops,
                 "of a measurement, a twentieth if it scans; 0: 200,000, or a tenth of that")
      ->capture_default_str();
  app.add_option("--clients", options.clients, "side by side, in turn; default: as in the paper")
      ->delimiter(',');
  app.add_option("--depth", options.depth, "operations that a client has under way at once")
      ->capture_default_str();
  app.add_option("--cache", options.cache, "slots that a client remembers, column cached")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "11b: of all")->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes; 0: as in the paper, 16, or 20 for 10")
      ->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes; 0: 32, or 200 for 10")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of keys, values and choices")->capture_default_str();
  app.add_option("--round-trip-ns", options.costs.round_trip_ns, "sim: of a message, or a read")
      ->capture_default_str();
  app.add_option("--bytes-per-us", options.costs.bytes_per_us, "sim: of a transfer")
      ->capture_default_str();
  app.add_option("--message-ns", options.costs.message_ns, "sim: of an index server, for a message")
      ->capture_default_str();
  app.add_option("--apply-ns", options.costs.apply_ns, "sim: more of one that applies first")
      ->capture_default_str();
}

void AddFatBTreeCosts(CLI::App& app, FatBTreeCosts& costs) {
  app.add_option("--interrupt-ns", costs.interrupt_ns,
                 "a READ whose client sleeps until it is done")
      ->capture_default_str();
  app.add_option("--round-trip-ns", costs.round_trip_ns, "a READ or a call; 2000, for 10 14000");
  app.add_option("--hop-ns", costs.hop_ns, "what a look-up adds in a switch")
      ->capture_default_str();
  app.add_option("--hops", costs.hops, "switches that look up")->capture_default_str();
  app.add_option("--message-ns", costs.message_ns, "a server's work on a call; 1000, for 10 4000");
  app.add_option("--level-ns", costs.level_ns, "a server's work on a node; 100, for 10 350");
}

void AddFatBTreeOptions(CLI::App& app, FatBTreeOptions& options) {
  app.add_option("--figure", options.figure,
                 "5: keys; 6: drift; 7: skew; 8: nodes a layer; 9: layers; 10a to 10d: servers; "
                 "inserts; ranges")
      ->required();
  app.add_option("--points", options.points, "of the figure's axis, rising")->delimiter(',');
  app.add_option("--records", options.records, "keys, the most of 5 and 10a; 0: 1 M to 10 M")
      ->capture_default_str();
  app.add_option("--training", options.training, "accesses from which the switches are filled")
      ->capture_default_str();
  app.add_option("--accesses", options.accesses, "that are counted")->capture_default_str();
  app.add_option("--alpha", options.alpha, "of Zipf's law")->capture_default_str();
  app.add_option("--ranges", options.ranges, "of the fat root")->capture_default_str();
  app.add_option("--layers", options.layers, "below the fat root; 3, for 10 4");
  app.add_option("--nodes", options.nodes, "of a layer")->capture_default_str();
  app.add_option("--leaf-trips", options.leaf_trips, "READs of a leaf of our tree, in turn")
      ->capture_default_str();
  app.add_option("--clients", options.clients, "10: with one query each")->capture_default_str();
  app.add_option("--servers", options.servers, "10: each with a range of the keys")
      ->capture_default_str();
  app.add_option("--read-share", options.read_share, "10: of the queries; the rest has no hint")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the accesses")->capture_default_str();
  AddFatBTreeCosts(app, options.costs);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of Skep and of the machine under it", "skep-bench");
  app.require_subcommand(1);
  bool json = false;

  LimitsOptions limits;
  CLI::App* limits_app = app.add_subcommand("limits", "what one core and the loopback can do");
  AddLimitsOptions(*limits_app, limits);

  YcsbOptions ycsb;
  CLI::App* ycsb_app = app.add_subcommand("ycsb", "YCSB's core workloads, and some more");
  AddYcsbOptions(*ycsb_app, ycsb);
  ycsb.show_progress = ErrorOutputIsTerminal();

  CompareOptions compare;
  CLI::App* compare_app = app.add_subcommand("compare", "indexes side by side, in process");
  AddCompareOptions(*compare_app, compare);
  compare.show_progress = ErrorOutputIsTerminal();

  ExpiryOptions expiry;
  CLI::App* expiry_app =
      app.add_subcommand("expiry", "a server's other commands while very many keys expire");
  AddExpiryOptions(*expiry_app, expiry);
  expiry.show_progress = ErrorOutputIsTerminal();

  NetOptions net;
  CLI::App* net_app = app.add_subcommand(
      "net", "a load generator for servers: throughput, latency, processor time");
  AddNetOptions(*net_app, net);

  KvDirectOptions kv_direct;
  CLI::App* kv_direct_app =
      app.add_subcommand("kv-direct", "tables and figures of KV-Direct, from models of it");
  AddKvDirectOptions(*kv_direct_app, kv_direct);

  HeteroKvOptions hetero_kv;
  CLI::App* hetero_kv_app =
      app.add_subcommand("hetero-kv", "what HeteroKV's paper leaves open, on the engine hashleaf");
  AddHeteroKvOptions(*hetero_kv_app, hetero_kv);

  HStoreOptions hstore;
  CLI::App* hstore_app =
      app.add_subcommand("hstore", "the experiments of HStore's paper, on a pool of memory");
  AddHStoreOptions(*hstore_app, hstore);

  FatBTreeOptions fat_btree;
  CLI::App* fat_btree_app = app.add_subcommand(
      "fat-btree", "the experiments of Fat-B+Tree's paper, counted and modelled");
  AddFatBTreeOptions(*fat_btree_app, fat_btree);

  for (CLI::App* command : {limits_app, ycsb_app, compare_app, expiry_app, net_app, kv_direct_app,
                            hetero_kv_app, hstore_app, fat_btree_app}) {
    command->add_flag("--json", json, "one JSON object instead of a table");
  }
  CLI11_PARSE(app, argc, argv);
  if (compare_app->parsed()) RestartWithHugeMalloc(argv);
  if (limits_app->parsed()) return RunLimits(limits, json);
  if (kv_direct_app->parsed()) return PrintIfAny(RunKvDirect(kv_direct), json);
  if (hetero_kv_app->parsed()) return PrintIfAny(RunHeteroKv(hetero_kv), json);
  if (hstore_app->parsed()) return PrintIfAny(RunHStore(hstore), json);
  if (fat_btree_app->parsed()) return PrintIfAny(RunFatBTree(fat_btree), json);
  if (net_app->parsed()) return PrintIfAny(RunNet(net), json);
  if (expiry_app->parsed()) return RunMassExpiry(expiry, json);
  return ycsb_app->parsed() ? RunWorkload(ycsb, json) : RunComparison(compare, json);
}

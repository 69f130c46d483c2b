// net.h: one run of the load generator: loads the records, sends requests, and reports.
//
// A curve is a closed loop, whose throughput is the peak, and then an open loop at each of some
// shares of the peak.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "bench/net/generator.h"
#include "bench/net/one_sided_loop.h"
#include "bench/net/protocol.h"
#include "bench/ycsb_workload.h"
#include "client/fat_root.h"

namespace skep::bench {

struct NetOptions {
  std::string name;  // the server's, for reports and charts
  std::string protocol = "resp";
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  std::string unix_path;  // instead of host and port, if not empty
  bool udp = false;       // requests are datagrams; `connections` sockets
  bool fat_root = false;  // requests have hints of a fat root (client/fat_root.h)
  std::string one_sided;  // leaves are read there (one_sided_loop.h); empty: requests are sent
  uint32_t connections = 50;
  uint32_t depth = 1;  // most requests under way on each connection
  uint32_t group = 1;  // operations a request
  // A workload of ycsb_workload.h. Empty: get_percent reads, the rest updates; or only scans of
  // scan_items, if that is not 0.
  std::string workload;
  uint32_t get_percent = 100;
  uint32_t scan_items = 0;
  ScanCommand scan_command = ScanCommand::kKrange;
  std::optional<Distribution> distribution;  // nothing: the workload's own
  uint64_t records = 1'000'000;
  size_t key_bytes = 16;
  size_t value_bytes = 16;
  uint64_t seed = 1;
  bool load = false;
  uint64_t rate = 0;            // operations a second; 0: a closed loop
  std::vector<uint32_t> curve;  // per cent of the closed loop's throughput; empty: no curve
  double warm_up_seconds = 0.5;
  double seconds = 3;      // 0: only the load, or until `ops`
  uint64_t ops = 0;        // 0: until the time is over
  std::optional<int> cpu;  // the generator's core
  std::optional<pid_t> server_pid;
  bool allow_errors = false;
};

// One loop.
struct NetRun {
  uint32_t percent = 0;  // of the peak, in a curve; 0: not of a curve
  uint64_t rate = 0;     // 0: a closed loop
  NetFigures figures;
};

struct NetReport {
  NetOptions options;  // its distribution is filled in
  std::string workload;
  std::optional<double> load_mops;  // million records a second
  std::optional<NetRun> run;        // the closed loop of a curve
  std::vector<NetRun> curve;
  std::optional<uint64_t> server_rss_bytes;  // at the end
  std::optional<client::FatRootStatistics> fat_root;
  std::optional<OneSidedCounts> one_sided;
};

// Returns a report if the run was possible; otherwise a line for people: a wrong option, a server
// that cannot be reached, an operation that was refused (unless that is allowed).
std::expected<NetReport, std::string> RunNet(NetOptions options);

}  // namespace skep::bench

// expiry.h: measures what a server's clients feel when very many keys expire at once.
//
//   once:         store the keys that stay
//   each repeat:  store the keys that expire, all deadlines within one second, some seconds ahead;
//                 send GETs and SETs on the keys that stay (expiry_client.h), before the first
//                 deadline, until all expired keys are reclaimed, and after it (expiry_timeline.h)
//
// The two kinds of keys are mixed in the order of keys. The server says when everything is
// reclaimed (INFO keyspace), on a connection of its own, asked seldom and equally often in all
// parts, so that asking costs all parts the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "bench/expiry_client.h"
#include "bench/expiry_server.h"

namespace skep::bench {

struct ExpiryOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  uint64_t items = 1'000'000;  // that expire
  uint64_t stay = 1'000'000;   // that do not expire
  uint32_t connections = 1;
  uint32_t depth = 1;       // in a closed loop
  uint64_t rate = 0;        // commands a second; 0: a closed loop
  double seconds = 3;       // of the parts before and after
  double lead_seconds = 0;  // for storing the keys that expire; 0: estimated
  int repeats = 3;
  size_t key_bytes = 23;
  size_t value_bytes = 100;
  uint64_t seed = 1;
  bool show_progress = false;
};

struct ExpiryPartReport {
  double seconds = 0;
  Histogram latency_ns;  // one entry an operation

  double kops() const { return static_cast<double>(latency_ns.count()) / seconds / 1e3; }
};

// The figures of one repeat.
struct ExpiryTurn {
  std::array<ExpiryPartReport, kExpiryParts> parts;  // by ExpiryPart
  Histogram late_ns;                                 // as in ExpiryMeasured
  double reclaim_seconds = 0;                        // from the last deadline on; never negative
  ExpiryServer::Memory memory_before;                // without the keys that expire
  ExpiryServer::Memory memory_loaded;                // with the keys that expire
  ExpiryServer::Memory memory_after;                 // at the end
  Tally tally;

  const ExpiryPartReport& part(ExpiryPart which) const { return parts[static_cast<size_t>(which)]; }
  // Returns the ratio of 99th percentiles, during / before.
  double p99_ratio() const;
};

struct ExpiryReport {
  ExpiryOptions options;
  std::string server;  // from ExpiryServer::Name
  std::vector<ExpiryTurn> turns;
  uint64_t errors = 0;  // of all turns
  std::string first_error;

  double median_p99_ratio() const;
  double median_reclaim_seconds() const;
};

// Returns a report if the run was possible, even if commands failed (see errors); otherwise a line
// for people.
std::expected<ExpiryReport, std::string> RunExpiry(const ExpiryOptions& options);

}  // namespace skep::bench

// queueing.h: throughput of clients that each have one query under way, by servers that each work
// on one query at a time (exact mean value analysis, Reiser and Lavenberg, JACM 1980).
#pragma once

#include <cstdint>
#include <span>

namespace skep::bench {

struct ServerLoad {
  double share;       // of all queries
  double service_us;  // mean
};

// Queries per us. `away_us`: the time of a query outside the servers; above 0.
double ThroughputOf(uint32_t clients, double away_us, std::span<const ServerLoad> servers);

}  // namespace skep::bench

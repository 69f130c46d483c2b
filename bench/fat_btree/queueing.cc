#include "bench/fat_btree/queueing.h"

#include <vector>

namespace skep::bench {

double ThroughputOf(uint32_t clients, double away_us, std::span<const ServerLoad> servers) {
  std::vector<double> queues(servers.size());  // mean number of queries at each server
  double throughput = 0;
  for (uint32_t n = 1; n <= clients; ++n) {
    std::vector<double> times(servers.size());  // at a server, of all queries in the mean
    double all = away_us;
    for (size_t i = 0; i < servers.size(); ++i) {
      times[i] = servers[i].share * servers[i].service_us * (1 + queues[i]);
      all += times[i];
    }
    throughput = n / all;
    for (size_t i = 0; i < servers.size(); ++i) queues[i] = throughput * times[i];
  }
  return throughput;
}

}  // namespace skep::bench

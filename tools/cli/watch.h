// watch.h: prints a line a second that tells how a server does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/server_client.h"

namespace skep::cli {

struct WatchOptions {
  ServerAddress server;
  double interval_s = 1;
  uint64_t lines_max = 0;  // 0: until the process is ended
};

// Both return an exit status: exit_status.h.

// Sends PING, one after another with pauses of a millisecond, and prints the round trips of each
// interval.
int WatchLatency(const WatchOptions& options);
// Prints figures of INFO: keys, memory, clients, and what has come since the line before.
int WatchStatistics(const WatchOptions& options);

// Figures of an answer to INFO.
struct InfoFigures {
  uint64_t keys = 0;  // of all keyspaces
  uint64_t memory_bytes = 0;
  uint64_t clients = 0;
  uint64_t commands = 0;     // since the server was started
  uint64_t connections = 0;  // since the server was started

  static InfoFigures Of(std::string_view info);
};

}  // namespace skep::cli

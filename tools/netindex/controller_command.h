// controller_command.h: skep-netindex controller, which keeps the tables of switches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skep/options.h"

namespace skep {

struct ControllerOptions {
  // HOST:PORT of the first range, then LOWER=HOST:PORT of each other one; none: those of the map.
  std::vector<std::string> servers;
  std::vector<std::string> switches;  // ROLE:SOCKET=SERVER,SERVER
  uint32_t interval_ms = 1000;
  // Of these the servers of ZooKeeper, the map's name and the time-out.
  PoolOptions map;
};

// Serves until SIGTERM or SIGINT. Returns the exit status; says on stderr why it is not 0.
int RunController(const ControllerOptions& options);

}  // namespace skep

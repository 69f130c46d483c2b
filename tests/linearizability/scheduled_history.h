// scheduled_history.h: makes concurrent histories that are linearizable by construction.
//
// One thread plays all clients: at each tick a random client takes its next step, of call, perform
// (on one sequential Reference) and return. The perform is the instant that linearizability
// requires. A client whose reply is lost stops; its operation is performed at some later tick, or
// never.
#pragma once

#include <cstdint>

#include "tests/linearizability/history.h"
#include "tests/linearizability/workload.h"

namespace skep::linearizability {

struct ScheduleOptions {
  uint32_t clients = 3;
  uint32_t operations = 40;     // of all clients
  uint32_t lost_per_mille = 0;  // lost replies; a lost client is replaced by a new one
  Mix mix = {};
};

History ScheduledHistory(uint64_t seed, const ScheduleOptions& options);

}  // namespace skep::linearizability

#include "tests/simulation/pool_plan.h"

#include <algorithm>

namespace skep::simulation {
namespace {

constexpr uint64_t kMs = 1'000'000;

}  // namespace

PoolPlan::PoolPlan(Kind kind, Random& random) {
  constexpr uint64_t kSteps[] = {5'000, 50'000, 1'000'000};
  step_ns = kSteps[random.Below(3)];
  times = {.read_ns_max = (5 + random.Below(45)) * kMs,
           .lease_ns = (40 + random.Below(160)) * kMs,
           .silence_ns_max = (200 + random.Below(800)) * kMs,
           .memory_gone_ns = (20 + random.Below(200)) * kMs,
           .only_copy_gone_ns = 400 * kMs};
  slow_one_in = uint64_t{4} << random.Below(5);
  stall_one_in = uint64_t{2} << random.Below(5);
  if (random.Chance(1, 2)) think_ns_max = random.Chance(1, 2) ? 20 * step_ns : 100 * kMs;
  span_ns = operations * (40 * step_ns + think_ns_max / 2);
  keys = random.Chance(1, 2) ? 2 : 3 + static_cast<uint32_t>(random.Below(2));
  ranges = 2 + static_cast<uint32_t>(random.Below(6));
  if (random.Chance(1, 2)) cuts = 1 + random.Below(6);
  if (random.Chance(1, 2)) {
    fate = random.Chance(1, 2) ? Fate::kKilled : Fate::kDeposed;
    victim = random.Chance(2, 3) ? 1 : 2;
  }
  fate_ns = random.Below(span_ns);
  learn_ns_max = random.Below(2 * times.lease_ns);
  if (random.Chance(1, 2)) pause_one_in = 24;
  pauses_servers = random.Chance(1, 3);
  has_agents = random.Chance(1, 2);
  if (random.Chance(1, 2)) free_chunks_min = chunks;
  memory_servers = 1 + static_cast<uint32_t>(random.Below(3));
  if (memory_servers > 1) memory_losses = static_cast<uint32_t>(random.Below(2));
  Emphasize(kind);
}

void PoolPlan::Emphasize(Kind kind) {
  switch (kind) {
    case Kind::kAny:
      break;
    case Kind::kScans:
      keys = 2;
      think_ns_max = 0;
      stall_one_in = 4;
      fate = Fate::kNone;
      break;
    case Kind::kDeposed:
      fate = Fate::kDeposed;
      victim = 1;
      // Clients are at work before, when and after the other server takes over.
      think_ns_max = times.lease_ns / 2;
      span_ns = operations * think_ns_max / 2;
      fate_ns = span_ns / 4;
      learn_ns_max = times.lease_ns / 4;
      break;
    case Kind::kLostReplies:
      cut_one_in = 40;
      break;
    case Kind::kMemoryLoss:
      memory_servers = 3;
      memory_losses = 2;
      chunks = 10;
      free_chunks_min = 0;
      has_agents = true;
      step_ns = std::min<uint64_t>(step_ns, 50'000);
      think_ns_max = 100 * kMs;
      span_ns = operations * think_ns_max / 2;
      // The second death comes in the middle of the operations only if all goes well.
      pause_one_in = 0;
      pauses_servers = false;
      fate = Fate::kNone;
      break;
    case Kind::kHundred:
      TakeHundredServers();
      break;
    case Kind::kUsedAgain:
    case Kind::kCleaned:
      step_ns = std::min<uint64_t>(step_ns, 50'000);
      times.read_ns_max = 5 * kMs;
      times.lease_ns *= 5;
      times.silence_ns_max = times.lease_ns / 16;
      think_ns_max = times.lease_ns / 8;
      span_ns = operations * think_ns_max / 2;
      keys = 2;
      memory_servers = 1;
      memory_losses = 0;
      has_agents = kind == Kind::kCleaned;
      chunks = has_agents ? 6 : 4;
      free_chunks_min = chunks;
      cut_one_in = 40;
      fate = Fate::kNone;
      pause_one_in = 4;
      paused_clients = 1;
      pauses_servers = false;
      break;
  }
}

void PoolPlan::TakeHundredServers() {
  memory_servers = 100;
  memory_losses = 3;
  memory_drains = 3;
  chunks = 3;
  has_agents = true;
  step_ns = std::min<uint64_t>(step_ns, 50'000);
  operations = 16;
  think_ns_max = 100 * kMs;
  span_ns = operations * think_ns_max / 2;
  pause_one_in = 0;
  pauses_servers = false;
}

}  // namespace skep::simulation

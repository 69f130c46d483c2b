// What skep-pool ctl drain does: has a memory server drained, and waits until it is.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "tools/pool/pool_commands.h"
#include "tools/pool/pool_look.h"

namespace skep {
namespace {

constexpr int kLookAgainMs = 500;

int Complain(uint32_t id, std::string_view why) {
  fmt::print(stderr, "skep-pool: memory server {} {}\n", id, why);
  return 1;
}

int TellDrained(const PoolLookOptions& options, uint32_t id) {
  const auto line = options.as_json
                        ? fmt::format("{{\"server\": {}, \"standing\": \"drained\"}}", id)
                        : fmt::format("memory server {} is drained", id);
  fmt::print("{}\n", line);
  return 0;
}

void TellProgress(const PoolRow& row) {
  fmt::print("memory server {}: {} MiB to be moved\n", row.id,
             (row.chunks.value_or(0) - row.free_chunks.value_or(0)) * (pool::kChunkBytes >> 20));
  std::fflush(stdout);
}

}  // namespace

int DrainMemoryServer(const PoolLookOptions& options, uint32_t id) {
  const uint64_t until_ms = SystemClock().MonotonicMs() + options.pool.timeout_ms;
  std::string problem;
  const auto look = PoolLook::Open(options.pool, &problem);
  if (!look) {
    fmt::print(stderr, "skep-pool: {}\n", problem);
    return 1;
  }
  for (bool is_asked = false; SystemClock().MonotonicMs() < until_ms;
       std::this_thread::sleep_for(std::chrono::milliseconds(kLookAgainMs))) {
    const PoolFindings findings = (*look)->Look();
    if (!findings.status) continue;
    const PoolRow* const row = findings.FindMemoryServer(id);
    if (row == nullptr) return Complain(id, "is no server of the pool");
    if (row->standing == "gone") return Complain(id, "is gone");
    if (row->standing == "drained") return TellDrained(options, id);
    if (!is_asked) {
      const auto answer = (*look)->AskToDrain(id);
      if (answer == false) return Complain(id, "cannot be drained: start another one first");
      is_asked = answer.has_value();
    }
    if (!options.as_json) TellProgress(*row);
  }
  return Complain(id, "is not drained yet: it goes on");
}

}  // namespace skep

// generator.h: sends requests to a server from one thread, on all connections, and times each of
// them.
//
//   closed loop  each connection has `depth` requests under way: an answer makes room for the next
//                one. Latency counts from when a request was encoded.
//   open loop    requests are meant to be sent at fixed times (schedule.h), on any connection that
//                has fewer than `depth` under way; if none has, they wait here. Latency counts from
//                the intended time, so a stall counts for all requests that it holds up.
//
// The clock is read once for all answers that came together on one connection. Nothing is allocated
// once buffers have grown.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/histogram.h"
#include "bench/net/lane.h"
#include "bench/net/process_usage.h"

namespace skep::bench {

struct NetFigures {
  uint64_t ops = 0;  // answered while measuring
  double seconds = 0;
  Histogram latency_ns;      // one entry an operation
  Histogram late_ns;         // open loop: how late requests were sent, one entry each
  NetTally tally;            // of all answers since measuring began
  double generator_cpu = 0;  // share of this thread's core, 0..1, while measuring
  std::optional<double> server_cpu_seconds;

  double mops() const { return seconds > 0 ? static_cast<double>(ops) / seconds / 1e6 : 0; }
  std::optional<double> server_cpu_us_per_op() const {
    if (!server_cpu_seconds || ops == 0) return std::nullopt;
    return *server_cpu_seconds * 1e6 / static_cast<double>(ops);
  }
};

// The pace and length of a run.
struct NetPace {
  uint64_t rate = 0;   // operations a second of all connections; 0: a closed loop
  uint32_t group = 1;  // operations a request
  double warm_up_seconds = 0;
  double seconds = 0;    // to measure; 0: until ops_max
  uint64_t ops_max = 0;  // to measure; 0: until the time is over
  std::optional<pid_t> server_pid;
  bool allow_errors = false;  // count refused operations, and go on
};

// Thread safety: none; all calls from one thread.
class NetGenerator {
 public:
  using Outcome = std::expected<NetFigures, std::string>;

  // Takes lanes that are empty; there must be at least one. Fails with the errno.
  static Result<NetGenerator> Make(std::vector<NetLane> lanes);

  // Sends what the lanes were given (NetLane::Take) until the time or the operations are over, then
  // waits for the last answers. Streams that do not repeat must have ops_max operations, without a
  // warm-up, and the run ends with them. On failure returns a line for people: a connection broke
  // or was silent for StreamConnection::kTimeoutMs, an answer could not be read, the server refused
  // an operation.
  Outcome Run(const NetPace& pace);

  std::span<NetLane> lanes() { return lanes_; }

 private:
  NetGenerator(FileDescriptor epoll, std::vector<NetLane> lanes)
      : epoll_(std::move(epoll)), lanes_(std::move(lanes)) {}

  FileDescriptor epoll_;
  std::vector<NetLane> lanes_;
};

}  // namespace skep::bench

#include "tools/cli/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "base/histogram.h"
#include "tools/cli/exit_status.h"

namespace skep::cli {
namespace {

constexpr auto kPingPause = std::chrono::milliseconds(1);
constexpr uint64_t kLinesPerHeader = 20;

uint64_t LeadingNumber(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Runs line(number) for lines from 0 on, until it fails or there are enough.
template <typename Line>
int Repeat(const WatchOptions& options, Line line) {
  std::string problem;
  const auto client = ServerClient::Connect(options.server, &problem);
  if (!client) {
    Complain(problem);
    return kNotConnected;
  }
  for (uint64_t number = 0; options.lines_max == 0 || number < options.lines_max; ++number) {
    const Result<RespReply> last = line(**client, number);
    if (!last || last->is_error()) {
      Complain(last ? last->text : options.server.ToString() + ": " + last.error().ToString());
      return last ? kErrorReply : kNotConnected;
    }
    std::fflush(stdout);
  }
  return kDone;
}

}  // namespace

int WatchLatency(const WatchOptions& options) {
  const auto interval_ns = static_cast<uint64_t>(options.interval_s * 1e9);
  Histogram round_trips_ns;
  return Repeat(options, [&](ServerClient& client, uint64_t) -> Result<RespReply> {
    round_trips_ns.Clear();
    uint64_t sum_ns = 0;
    uint64_t min_ns = UINT64_MAX;
    const uint64_t begin_ns = SystemClock().MonotonicNs();
    while (round_trips_ns.count() == 0 || SystemClock().MonotonicNs() - begin_ns < interval_ns) {
      const uint64_t sent_ns = SystemClock().MonotonicNs();
      const auto reply = client.Call({"PING"});
      if (!reply || reply->is_error()) return reply;
      const uint64_t took_ns = SystemClock().MonotonicNs() - sent_ns;
      round_trips_ns.Record(took_ns);
      sum_ns += took_ns;
      min_ns = std::min(min_ns, took_ns);
      std::this_thread::sleep_for(kPingPause);
    }
    const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
    fmt::print("min {:.3f}  avg {:.3f}  p99 {:.3f}  max {:.3f} ms  ({} pings)\n", ms(min_ns),
               ms(sum_ns / round_trips_ns.count()), ms(round_trips_ns.Quantile(0.99)),
               ms(round_trips_ns.max()), round_trips_ns.count());
    return RespReply();
  });
}

InfoFigures InfoFigures::Of(std::string_view info) {
  InfoFigures figures;
  while (!info.empty()) {
    const std::string_view line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(info.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 1);
    const uint64_t number = LeadingNumber(value);
    if (name == "used_memory") figures.memory_bytes = number;
    if (name == "connected_clients") figures.clients = number;
    if (name == "total_commands_processed") figures.commands = number;
    if (name == "total_connections_received") figures.connections = number;
    if (name.starts_with("db") && value.starts_with("keys=")) {
      figures.keys += LeadingNumber(value.substr(5));
    }
  }
  return figures;
}

int WatchStatistics(const WatchOptions& options) {
  InfoFigures before;
  return Repeat(options, [&](ServerClient& client, uint64_t number) {
    if (number > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    Result<RespReply> reply = client.Call({"INFO"});
    if (!reply || reply->is_error()) return reply;
    const InfoFigures now = InfoFigures::Of(reply->text);
    if (number % kLinesPerHeader == 0) {
      fmt::print("{:>14} {:>12} {:>9} {:>14} {:>14}\n", "keys", "memory MiB", "clients",
                 "commands/s", "connections/s");
    }
    const auto rate = [&](uint64_t from, uint64_t to) {
      return number == 0 ? 0.0 : static_cast<double>(to - from) / options.interval_s;
    };
    fmt::print("{:>14} {:>12.1f} {:>9} {:>14.0f} {:>14.0f}\n", now.keys,
               static_cast<double>(now.memory_bytes) / (1 << 20), now.clients,
               rate(before.commands, now.commands), rate(before.connections, now.connections));
    before = now;
    return reply;
  });
}

}  // namespace skep::cli

// SLOWLOG and LATENCY: which commands took long.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/server_call.h"
#include "server/slow_log.h"
#include "server/subcommands.h"

namespace skep::commands {
namespace {

void SlowLogGet(const ServerCall& call) {
  constexpr int64_t kCountDefault = 10;
  constexpr int64_t kAll = -1;
  if (call.args().size() > 3) return ReplyWrongCount(call);
  const auto count =
      call.args().size() == 3 ? ParseInt64(call.arg(2)) : std::optional(kCountDefault);
  if (!count || *count < kAll) {
    return call.Error("ERR count should be greater than or equal to -1");
  }
  const auto entries =
      call.state().slow_log().Newest(*count == kAll ? SIZE_MAX : static_cast<size_t>(*count));
  RespWriter reply = call.reply();
  reply.Array(entries.size());
  for (const SlowLog::Entry& entry : entries) {
    reply.Array(6);
    reply.Integer(static_cast<int64_t>(entry.id));
    reply.Integer(static_cast<int64_t>(entry.unix_s));
    reply.Integer(static_cast<int64_t>(entry.us));
    reply.Array(entry.words.size());
    for (const std::string& word : entry.words) reply.Bulk(word);
    reply.Bulk(entry.peer);
    reply.Bulk(entry.client_name);
  }
}

void SlowLogLen(const ServerCall& call) {
  call.reply().Integer(static_cast<int64_t>(call.state().slow_log().size()));
}

void SlowLogReset(const ServerCall& call) {
  call.state().slow_log().Clear();
  call.reply().SimpleString("OK");
}

constexpr Subcommand kSlowLogSubcommands[] = {
    {"get", -2, "[<count>]",
     "Return the newest <count> slow commands (default: 10, -1 means all): id, time, microseconds, "
     "words, address and name of the client.",
     SlowLogGet},
    {"len", 2, "", "Return how many slow commands are kept.", SlowLogLen},
    {"reset", 2, "", "Forget the slow commands.", SlowLogReset},
};

void LatencyLatest(const ServerCall& call) {
  const auto events = call.state().latency().Latest();
  RespWriter reply = call.reply();
  reply.Array(events.size());
  for (const LatencyMonitor::Event& event : events) {
    reply.Array(4);
    reply.Bulk(event.name);
    reply.Integer(static_cast<int64_t>(event.latest.unix_s));
    reply.Integer(static_cast<int64_t>(event.latest.ms));
    reply.Integer(static_cast<int64_t>(event.ms_max));
  }
}

void LatencyHistory(const ServerCall& call) {
  const auto points = call.state().latency().History(call.arg(2));
  RespWriter reply = call.reply();
  reply.Array(points.size());
  for (const LatencyMonitor::Point& point : points) {
    reply.Array(2);
    reply.Integer(static_cast<int64_t>(point.unix_s));
    reply.Integer(static_cast<int64_t>(point.ms));
  }
}

void LatencyReset(const ServerCall& call) {
  const size_t count = call.state().latency().Reset(call.args().subspan(2));
  call.reply().Integer(static_cast<int64_t>(count));
}

void LatencyDoctor(const ServerCall& call) {
  const auto events = call.state().latency().Latest();
  std::string text;
  if (call.turn().options().latency_monitor_threshold == 0) {
    text = "Latency is not monitored: CONFIG SET latency-monitor-threshold <milliseconds>.";
  } else if (events.empty()) {
    text = "No command has taken as long as latency-monitor-threshold.";
  }
  for (const LatencyMonitor::Event& event : events) {
    text += fmt::format("{}: the latest took {} ms, the longest {} ms. SLOWLOG GET has them.\n",
                        event.name, event.latest.ms, event.ms_max);
  }
  call.reply().Verbatim("txt", text);
}

// LATENCY GRAPH event: a column for each of its latest points, as high as its time.
void LatencyGraph(const ServerCall& call) {
  constexpr size_t kColumnsMax = 80;
  constexpr uint64_t kRows = 8;
  std::vector<LatencyMonitor::Point> points = call.state().latency().History(call.arg(2));
  const std::vector<LatencyMonitor::Event> events = call.state().latency().Latest();
  const auto event = std::ranges::find(events, call.arg(2), &LatencyMonitor::Event::name);
  if (points.empty() || event == events.end()) {
    return call.Error(fmt::format("ERR No samples available for event '{}'", call.arg(2)));
  }
  if (points.size() > kColumnsMax) points.erase(points.begin(), points.end() - kColumnsMax);
  const auto [low, high] = std::ranges::minmax(points, {}, &LatencyMonitor::Point::ms);
  std::string text = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n{:-<{}}\n",
                                 call.arg(2), high.ms, low.ms, event->ms_max, "", kColumnsMax);
  for (uint64_t row = kRows; row > 0; --row) {
    for (const LatencyMonitor::Point& point : points) {
      text += point.ms * kRows >= row * std::max<uint64_t>(high.ms, 1) ? '#' : ' ';
    }
    text += '\n';
  }
  const uint64_t now_s = call.state().environment().clock.WallUs() / 1'000'000;
  const auto ago_s = [&](const LatencyMonitor::Point& point) {
    return now_s - std::min(now_s, point.unix_s);
  };
  text += fmt::format("from {} to {} seconds ago\n", ago_s(points.front()), ago_s(points.back()));
  call.reply().Verbatim("txt", text);
}

// The number of calls that took no longer than each bound, as far as it grows.
void ReplyHistogram(RespWriter reply, std::string_view name, const CommandCounts& counts) {
  constexpr uint64_t kNsPerUs = 1000;
  const auto buckets = static_cast<size_t>(
      std::ranges::count_if(counts.latency, [](uint64_t calls) { return calls > 0; }));
  reply.Bulk(name);
  reply.Map(2);
  reply.Bulk("calls");
  reply.Integer(static_cast<int64_t>(counts.calls));
  reply.Bulk("histogram_usec");
  reply.Map(buckets);
  uint64_t passed = 0;
  for (size_t i = 0; i < kLatencyBuckets; ++i) {
    if (counts.latency[i] == 0) continue;
    passed += counts.latency[i];
    reply.Integer(static_cast<int64_t>(LatencyBoundNs(i) / kNsPerUs));
    reply.Integer(static_cast<int64_t>(passed));
  }
}

// LATENCY HISTOGRAM [command ...]: those that have been called.
void LatencyHistogram(const ServerCall& call) {
  const ServerCounts counts = call.administration().Counts();
  const auto names = call.args().subspan(2);
  // The name of a command stands for its subcommands, too.
  const auto is_wanted = [&](std::string_view command) {
    return names.empty() || std::ranges::any_of(names, [&](std::string_view name) {
             return EqualsIgnoringCase(name, command) ||
                    EqualsIgnoringCase(name, command.substr(0, command.find('|')));
           });
  };
  std::vector<size_t> found;
  for (size_t i = 0; i < counts.by_command.size(); ++i) {
    if (counts.by_command[i].calls > 0 && is_wanted(CountedCommands()[i].name)) found.push_back(i);
  }
  call.reply().Map(found.size());
  for (const size_t i : found) {
    ReplyHistogram(call.reply(), CountedCommands()[i].name, counts.by_command[i]);
  }
}

constexpr Subcommand kLatencySubcommands[] = {
    {"doctor", 2, "", "Return what is known of commands that took long.", LatencyDoctor},
    {"graph", 3, "<event>", "Return a drawing of the latest times of an event.", LatencyGraph},
    {"histogram", -2, "[<command> ...]",
     "Return for each command how many of its calls took how many microseconds at most.",
     LatencyHistogram},
    {"history", 3, "<event>", "Return the times of an event.", LatencyHistory},
    {"latest", 2, "", "Return the latest and the longest time of each event.", LatencyLatest},
    {"reset", -2, "[<event> ...]", "Forget events, or all of them.", LatencyReset},
};

}  // namespace

std::span<const Subcommand> SlowLogSubcommands() { return kSlowLogSubcommands; }
std::span<const Subcommand> LatencySubcommands() { return kLatencySubcommands; }

void FinishSubcommand(const ServerCall& call, const Batch&, uint32_t) { RunSubcommand(call); }

}  // namespace skep::commands

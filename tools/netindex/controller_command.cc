#include "tools/netindex/controller_command.h"

#include <fmt/format.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <utility>

#include "netindex/controller/controller.h"
#include "ranges/connected_ranges.h"
#include "ranges/map_client.h"
#include "tools/netindex/range_commands.h"
#include "tools/netindex/service.h"

namespace skep {
namespace {

using netindex::Controller;
using netindex::ServerRange;

// The ranges of a map in ZooKeeper.
class RangesOfMap {
 public:
  RangesOfMap(std::unique_ptr<Coordinator> coordinator, const PoolOptions& options)
      : coordinator_(std::move(coordinator)),
        client_(*coordinator_, options.name, options.timeout_ms) {}

  Result<std::vector<ServerRange>> Read() {
    const auto map = client_.Read();
    if (!map) return Fail(map.error());
    std::vector<ServerRange> found;
    for (const ranges::RangeMap::Entry& entry : map->entries) {
      if (entry.target.starts_with(ranges::kPoolTarget)) {
        return Fail(Code::kNotSupported, "a range is in a pool, which switches do not know");
      }
      found.push_back({.lower = entry.lower, .address = entry.target});
    }
    return found;
  }

 private:
  const std::unique_ptr<Coordinator> coordinator_;
  ranges::MapClient client_;
};

// Switches tell apart what the first 8 bytes of keys tell. At such a border that is all: a key is
// below it if and only if its number is.
bool IsExact(std::string_view border) {
  return border.size() <= sizeof(uint64_t) && !border.empty() && border.back() != '\0';
}

// Nothing: these are no ranges.
std::optional<std::vector<ServerRange>> RangesOf(const std::vector<std::string>& servers) {
  std::vector<ServerRange> found = {{.lower = "", .address = servers.front()}};
  for (size_t i = 1; i < servers.size(); ++i) {
    const auto range = ReadRange(servers[i]);
    if (!range || !IsExact(range->lower) || range->lower <= found.back().lower) return std::nullopt;
    found.push_back({.lower = range->lower, .address = range->target});
  }
  return found;
}

std::optional<std::vector<Controller::Switch>> SwitchesOf(const ControllerOptions& options) {
  std::vector<Controller::Switch> switches;
  for (const std::string& text : options.switches) {
    auto role = netindex::ParseRole(text);
    if (!role) return std::nullopt;
    auto port = std::make_unique<netindex::UnixSwitchPort>(role->socket);
    switches.push_back({.role = std::move(*role), .port = std::move(port)});
  }
  return switches;
}

// Steps until `end` can be read.
void Run(Controller& controller, uint32_t interval_ms, int end) {
  pollfd polled = {.fd = end, .events = POLLIN, .revents = 0};
  bool is_ready = false;
  do {
    const bool is_done = controller.Step();
    if (is_done && !is_ready) SayLine("ready");
    is_ready = is_ready || is_done;
  } while (poll(&polled, 1, static_cast<int>(interval_ms)) == 0);
}

}  // namespace

int RunController(const ControllerOptions& options) {
  const FileDescriptor end = TakeEndSignals();
  auto switches = SwitchesOf(options);
  if (!switches) return FailWith("a switch is core, aggregation, edge or only, ':' and its socket");
  std::unique_ptr<RangesOfMap> map;
  std::optional<std::vector<ServerRange>> fixed;
  if (!options.servers.empty()) {
    fixed = RangesOf(options.servers);
    if (!fixed) return FailWith("borders rise, and have 1 to 8 bytes, of which the last is not 0");
  } else {
    std::string problem;
    auto coordinator = ranges::ReachMap(options.map, &problem);
    if (!coordinator) return FailWith(problem);
    map = std::make_unique<RangesOfMap>(std::move(*coordinator), options.map);
  }
  const auto ask = [&]() -> Result<std::vector<ServerRange>> {
    if (map != nullptr) return map->Read();
    return *fixed;
  };
  netindex::RemoteLeafSource source(ask, options.map.timeout_ms);
  Controller controller(source, std::move(*switches), SayLine);
  Run(controller, options.interval_ms, end.get());
  return 0;
}

}  // namespace skep

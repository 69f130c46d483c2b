#include "tools/netindex/range_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/hex.h"
#include "ranges/connected_ranges.h"
#include "ranges/map_client.h"
#include "ranges/range_map.h"
#include "tools/escape.h"

namespace skep {
namespace {

using ranges::RangeMap;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr std::chrono::milliseconds kLookAgain(20);

int Complain(int code, std::string_view why) {
  fmt::print(stderr, "skep-netindex: {}\n", why);
  return code;
}

std::optional<std::string> ReadKey(const std::string& text) {
  std::string key = text;
  if (text.starts_with("0x") && !FromHex(text, &key)) return std::nullopt;
  return key;
}

// A map in ZooKeeper; null, and it has been said why: it cannot be reached.
struct Reached {
  explicit Reached(const RangeCommandOptions& options, std::unique_ptr<Coordinator> reached)
      : coordinator(std::move(reached)),
        map(*coordinator, options.map.name, options.map.timeout_ms) {}
  const std::unique_ptr<Coordinator> coordinator;
  ranges::MapClient map;
};
std::unique_ptr<Reached> Reach(const RangeCommandOptions& options) {
  std::string problem;
  auto coordinator = ranges::ReachMap(options.map, &problem);
  if (coordinator) return std::make_unique<Reached>(options, std::move(*coordinator));
  Complain(kFailed, problem);
  return nullptr;
}

// A server that knows the map serves a range only once the one before certainly does not. `map` has
// this map's version afterwards.
Status SetOpening(ranges::MapClient& client, RangeMap& map) {
  const auto before = client.Read();
  if (!before) return before.error();
  map.version = before->version;
  RangeMap cut = {.entries = {}, .version = before->version};
  for (size_t i = 0, j = 0; i < map.entries.size();) {
    const RangeMap::Entry& old = before->entries[j];
    RangeMap::Entry entry = map.entries[i];
    entry.lower = std::max(entry.lower, old.lower);
    const auto version = client.VersionAt(entry.target);
    if (!version) return version.error();
    if (old.phase != RangeMap::Phase::kServed) {
      return {Code::kUnavailable, "keys are being moved: ctl show says which"};
    }
    if (*version && old.target != entry.target && !old.target.starts_with(ranges::kPoolTarget)) {
      entry.phase = RangeMap::Phase::kOpening;
      entry.peer = old.target;
    }
    cut.entries.push_back(std::move(entry));
    const auto upper = map.UpperOf(i);
    const auto old_upper = before->UpperOf(j);
    const bool ends_first = upper && (!old_upper || *upper <= *old_upper);
    const bool ends_last = old_upper && (!upper || *old_upper <= *upper);
    if (!ends_first && !ends_last) break;
    if (ends_first) ++i;
    if (ends_last) ++j;
  }
  cut.Merge();
  map = std::move(cut);
  return {};
}

// Changes the map as `change` does; again, if somebody else has changed it meanwhile.
Status Change(ranges::MapClient& client, const std::function<Status(RangeMap&)>& change) {
  for (;;) {
    auto map = client.Read();
    if (!map) return map.error();
    const RangeMap before = *map;
    if (const Status status = change(*map); !status.ok() || *map == before) return status;
    const Status status = client.Replace(*map);
    if (status.code() != Code::kAborted) return status;
  }
}

// The server knows the map.
Status CheckServer(ranges::MapClient& client, std::string_view server) {
  const auto version = client.VersionAt(server);
  if (!version) return version.error();
  if (*version) return {};
  return {Code::kUnavailable,
          "it does not know the map: skep-server --ranges zk=...,name=...,at=..."};
}

}  // namespace

std::optional<RangeMap::Entry> ReadRange(const std::string& text) {
  // Where it is has no '=', so a lower bound may have some.
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return std::nullopt;
  const auto lower = ReadKey(text.substr(0, equals));
  if (!lower) return std::nullopt;
  return RangeMap::Entry{.lower = *lower, .target = text.substr(equals + 1)};
}

int SetRanges(const RangeCommandOptions& options, const std::vector<std::string>& ranges,
              bool replaces) {
  RangeMap map;
  map.entries.push_back({.lower = "", .target = ranges.front()});
  for (size_t i = 1; i < ranges.size(); ++i) {
    const auto entry = ReadRange(ranges[i]);
    if (!entry) return Complain(kUsage, fmt::format("'{}' is not LOWER=WHERE", ranges[i]));
    map.entries.push_back(*entry);
  }
  if (const Status status = map.Check(); !status.ok()) return Complain(kUsage, status.what());
  const auto reached = Reach(options);
  if (reached == nullptr) return kFailed;
  Status status = reached->map.Create(map);
  if (replaces && status.code() == Code::kInvalidArgument) {
    status = SetOpening(reached->map, map);
    if (status.ok()) status = reached->map.Replace(map);
  }
  return status.ok() ? 0 : Complain(kFailed, status.what());
}

int MoveRange(const RangeCommandOptions& options, const std::string& lower,
              const std::string& target, uint32_t wait_ms) {
  const auto key = ReadKey(lower);
  if (!key) return Complain(kUsage, fmt::format("'{}' is no key", lower));
  const auto reached = Reach(options);
  if (reached == nullptr) return kFailed;
  std::string source;
  const Status status = Change(reached->map, [&](RangeMap& map) {
    const RangeMap::Entry& entry = map.entries[map.IndexOf(*key)];
    source = entry.target;
    if (entry.phase == RangeMap::Phase::kServed && source == target) return Status();
    const Status begun = map.BeginMove(*key, target);
    if (!begun.ok()) return begun;
    const Status knows = CheckServer(reached->map, source);
    return knows.ok() ? CheckServer(reached->map, target) : knows;
  });
  if (!status.ok()) {
    return Complain(kFailed, fmt::format("from {} to {}: {}", source, target, status.what()));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  do {
    const auto map = reached->map.Read();
    if (!map) return Complain(kFailed, map.error().what());
    const RangeMap::Entry& entry = map->entries[map->IndexOf(*key)];
    if (entry.phase == RangeMap::Phase::kServed) {
      if (entry.target == target) return 0;
      return Complain(kFailed, "the move was cancelled");
    }
    std::this_thread::sleep_for(kLookAgain);
  } while (std::chrono::steady_clock::now() < until);
  return Complain(kFailed, "not moved yet; it goes on, and ctl show tells how far it is");
}

int CancelMove(const RangeCommandOptions& options, const std::string& lower) {
  const auto key = ReadKey(lower);
  if (!key) return Complain(kUsage, fmt::format("'{}' is no key", lower));
  const auto reached = Reach(options);
  if (reached == nullptr) return kFailed;
  const Status status = Change(reached->map, [&](RangeMap& map) { return map.CancelMove(*key); });
  return status.ok() ? 0 : Complain(kFailed, status.what());
}

int ShowRanges(const RangeCommandOptions& options) {
  const auto reached = Reach(options);
  if (reached == nullptr) return kFailed;
  const auto map = reached->map.Read();
  if (!map) return Complain(kFailed, map.error().what());
  nlohmann::json json = nlohmann::json::array();
  for (const RangeMap::Entry& entry : map->entries) {
    const auto version = reached->map.VersionAt(entry.target);
    if (!version) return Complain(kFailed, version.error().what());
    const bool is_behind = *version && **version < map->version;
    const std::string_view phase = ranges::NameOf(entry.phase);
    if (!options.as_json) {
      const std::string move = phase.empty() ? "" : fmt::format(" {} {}", phase, entry.peer);
      const std::string behind =
          is_behind ? fmt::format(" (it goes by version {} of {})", **version, map->version) : "";
      fmt::print("{:<24} {}{}{}\n", Quoted(entry.lower), entry.target, move, behind);
    }
    json.push_back({{"lower_hex", ToHex(entry.lower)}, {"where", entry.target}});
    if (!phase.empty()) json.back()[std::string(phase)] = entry.peer;
    if (*version) json.back()["version"] = **version;
  }
  if (options.as_json) fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace skep

#include "tools/netindex/range_commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/hex.h"
#include "ranges/connected_ranges.h"
#include "ranges/range_map.h"
#include "tools/escape.h"

namespace skep {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(int code, std::string_view why) {
  fmt::print(stderr, "skep-netindex: {}\n", why);
  return code;
}

// LOWER=WHERE. Where it is has no '=', so a lower bound may have some.
std::optional<ranges::RangeMap::Entry> ReadRange(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return std::nullopt;
  ranges::RangeMap::Entry entry = {.lower = text.substr(0, equals),
                                   .target = text.substr(equals + 1)};
  const std::string written = entry.lower;
  if (written.starts_with("0x") && !FromHex(written, &entry.lower)) return std::nullopt;
  return entry;
}

std::unique_ptr<Coordinator> Reach(const RangeCommandOptions& options) {
  std::string problem;
  auto coordinator = ranges::ReachMap(options.map, &problem);
  if (coordinator) return std::move(*coordinator);
  Complain(kFailed, problem);
  return nullptr;
}

}  // namespace

int SetRanges(const RangeCommandOptions& options, const std::vector<std::string>& ranges,
              bool replaces) {
  ranges::RangeMap map;
  map.entries.push_back({.lower = "", .target = ranges.front()});
  for (size_t i = 1; i < ranges.size(); ++i) {
    const auto entry = ReadRange(ranges[i]);
    if (!entry) return Complain(kUsage, fmt::format("'{}' is not LOWER=WHERE", ranges[i]));
    map.entries.push_back(*entry);
  }
  if (const Status status = map.Check(); !status.ok()) return Complain(kUsage, status.what());
  const auto coordinator = Reach(options);
  if (coordinator == nullptr) return kFailed;
  const Status status =
      ranges::WriteRangeMap(*coordinator, options.map.name, map, replaces, options.map.timeout_ms);
  return status.ok() ? 0 : Complain(kFailed, status.what());
}

int ShowRanges(const RangeCommandOptions& options) {
  const auto coordinator = Reach(options);
  if (coordinator == nullptr) return kFailed;
  const auto map = ranges::ReadRangeMap(*coordinator, options.map.name, options.map.timeout_ms);
  if (!map) return Complain(kFailed, map.error().what());
  nlohmann::json json = nlohmann::json::array();
  for (const auto& entry : map->entries) {
    if (!options.as_json) fmt::print("{:<24} {}\n", Quoted(entry.lower), entry.target);
    json.push_back({{"lower_hex", ToHex(entry.lower)}, {"where", entry.target}});
  }
  if (options.as_json) fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace skep

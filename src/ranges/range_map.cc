#include "ranges/range_map.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/hex.h"

namespace skep::ranges {
namespace {

constexpr std::string_view kFirstLine = "skep-ranges 1";
constexpr size_t kTargetBytesMax = 256;

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c > ' ' && c <= '~' && c != ',' && c != '='; });
}

bool IsTarget(std::string_view target) {
  if (target.size() > kTargetBytesMax || !IsPrintable(target)) return false;
  if (!target.starts_with(kPoolTarget)) return target.find(':') != std::string_view::npos;
  return target.size() > kPoolTarget.size() && target.find('/') == std::string_view::npos;
}

// The text up to the next line; nothing: there is none.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

bool IsMapName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find('/') == std::string_view::npos &&
         IsCoordinatorPath("/" + std::string(name));
}

Status RangeMap::Check() const {
  if (entries.empty() || entries.size() > kRangesMax) {
    return {Code::kInvalidArgument, "a map has 1 to 256 ranges", kRangesMax};
  }
  if (!entries.front().lower.empty()) {
    return {Code::kInvalidArgument, "the first range begins before every key"};
  }
  const auto falls = [](const Entry& a, const Entry& b) { return a.lower >= b.lower; };
  if (std::ranges::adjacent_find(entries, falls) != entries.end()) {
    return {Code::kInvalidArgument, "the lower bounds of the ranges must rise"};
  }
  if (!std::ranges::all_of(entries, IsTarget, &Entry::target)) {
    return {Code::kInvalidArgument, "a range is at HOST:PORT or at pool:NAME"};
  }
  std::set<std::string_view> targets;
  for (const Entry& entry : entries) targets.insert(entry.target);
  if (targets.size() != entries.size()) {
    return {Code::kInvalidArgument, "two ranges are at the same place"};
  }
  if (Encode().size() > kCoordinatorBytesMax) {
    return {Code::kInvalidArgument, "the lower bounds are too long", kCoordinatorBytesMax};
  }
  return {};
}

std::string RangeMap::Encode() const {
  std::string text = std::string(kFirstLine) + "\n";
  for (const Entry& entry : entries) text += ToHex(entry.lower) + " " + entry.target + "\n";
  return text;
}

bool RangeMap::Decode(std::string_view bytes, RangeMap* map) {
  map->entries.clear();
  if (TakeLine(bytes) != kFirstLine) return false;
  while (!bytes.empty()) {
    const auto line = TakeLine(bytes);
    const size_t space = line ? line->find(' ') : std::string_view::npos;
    if (space == std::string_view::npos || map->entries.size() == kRangesMax) return false;
    RangeMap::Entry entry = {.lower = "", .target = std::string(line->substr(space + 1))};
    if (!FromHex(line->substr(0, space), &entry.lower)) return false;
    map->entries.push_back(std::move(entry));
  }
  return map->Check().ok();
}

}  // namespace skep::ranges

#include "ranges/range_map.h"

#include <algorithm>
#include <array>
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

bool IsServer(std::string_view target) {
  return IsTarget(target) && !target.starts_with(kPoolTarget);
}

constexpr std::array<std::string_view, 3> kPhaseNames = {"", "copying", "opening"};

bool IsSound(const RangeMap::Entry& entry) {
  if (entry.phase == RangeMap::Phase::kServed) return IsTarget(entry.target) && entry.peer.empty();
  return IsServer(entry.target) && IsServer(entry.peer) && entry.peer != entry.target;
}

// The text up to the next `end`, which is taken away too; nothing: there is none.
std::optional<std::string_view> Take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// A line of the map: LOWER TARGET, or LOWER TARGET PHASE PEER.
bool ReadEntry(std::string_view line, RangeMap::Entry* entry) {
  const auto lower = Take(line, ' ');
  if (!lower || !FromHex(*lower, &entry->lower)) return false;
  if (const auto target = Take(line, ' ')) {
    entry->target = *target;
    const auto phase = Take(line, ' ');
    const auto name = std::find(kPhaseNames.begin() + 1, kPhaseNames.end(), phase.value_or(""));
    if (name == kPhaseNames.end()) return false;
    entry->phase = static_cast<RangeMap::Phase>(name - kPhaseNames.begin());
    entry->peer = line;
  } else {
    entry->target = line;
  }
  return true;
}

}  // namespace

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
  if (!std::ranges::all_of(entries, IsSound)) {
    return {Code::kInvalidArgument, "a range is at HOST:PORT or at pool:NAME"};
  }
  if (Encode().size() > kCoordinatorBytesMax) {
    return {Code::kInvalidArgument, "the lower bounds are too long", kCoordinatorBytesMax};
  }
  return {};
}

std::string RangeMap::Encode() const {
  std::string text = std::string(kFirstLine) + "\n";
  for (const Entry& entry : entries) {
    text += ToHex(entry.lower) + " " + entry.target;
    if (entry.phase != Phase::kServed) {
      text += " " + std::string(NameOf(entry.phase)) + " " + entry.peer;
    }
    text += "\n";
  }
  return text;
}

bool RangeMap::Decode(std::string_view bytes, RangeMap* map) {
  map->entries.clear();
  if (Take(bytes, '\n') != kFirstLine) return false;
  while (!bytes.empty()) {
    const auto line = Take(bytes, '\n');
    if (!line || map->entries.size() == kRangesMax) return false;
    if (!ReadEntry(*line, &map->entries.emplace_back())) return false;
  }
  return map->Check().ok();
}

size_t RangeMap::IndexOf(std::string_view key) const {
  const auto behind = std::ranges::upper_bound(
      entries, key, {}, [](const Entry& entry) { return std::string_view(entry.lower); });
  return static_cast<size_t>(behind - entries.begin()) - 1;
}

std::optional<std::string_view> RangeMap::UpperOf(size_t index) const {
  if (index + 1 == entries.size()) return std::nullopt;
  return entries[index + 1].lower;
}

Status RangeMap::BeginMove(std::string_view lower, std::string_view target) {
  const size_t index = IndexOf(lower);
  Entry moved = entries[index];
  if (moved.phase != Phase::kServed) {
    return {Code::kUnavailable, "these keys are being moved"};
  }
  if (!IsServer(moved.target) || !IsServer(target)) {
    return {Code::kInvalidArgument, "keys can be moved from a skep-server to a skep-server only"};
  }
  if (moved.target == target) return {Code::kInvalidArgument, "these keys are there"};
  const bool splits = moved.lower != lower;
  moved = {.lower = std::string(lower),
           .target = moved.target,
           .phase = Phase::kCopying,
           .peer = std::string(target)};
  if (splits) {
    entries.insert(entries.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(moved));
  } else {
    entries[index] = std::move(moved);
  }
  return Check();
}

Status RangeMap::CancelMove(std::string_view lower) {
  Entry& entry = entries[IndexOf(lower)];
  if (entry.phase != Phase::kCopying || entry.lower != lower) {
    return {Code::kInvalidArgument, "no keys from there on are being copied"};
  }
  entry = {.lower = entry.lower, .target = entry.target};
  Merge();
  return {};
}

void RangeMap::Merge() {
  const auto continues = [](const Entry& a, const Entry& b) {
    return a.target == b.target && a.phase == Phase::kServed && b.phase == Phase::kServed;
  };
  const auto rest = std::unique(entries.begin(), entries.end(), continues);
  entries.erase(rest, entries.end());
}

std::string_view NameOf(RangeMap::Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

bool IsMapName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find('/') == std::string_view::npos &&
         IsCoordinatorPath("/" + std::string(name));
}

std::string MapPathOf(std::string_view name) { return "/skep-ranges/" + std::string(name); }

std::string ServerPathOf(std::string_view name, std::string_view address) {
  return "/skep-ranges-servers/" + std::string(name) + "/" + std::string(address);
}

}  // namespace skep::ranges

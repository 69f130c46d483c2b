#include "server/command_statistics.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "base/ascii.h"
#include "server/subcommands.h"

namespace skep {
namespace {

constexpr std::string_view kErrorCodes[] = {
    "ERR", "BUSYKEY",        "EXECABORT", "INVALIDOBJ", "MISCONF",    "NOAUTH",   "NOPROTO",
    "OOM", "SNAPSHOTTOOOLD", "UNBLOCKED", "WRONGPASS",  "WRONGRANGE", "WRONGTYPE"};

// The places of the commands of the table, in its order.
std::vector<uint32_t> PlacesOfCommands() {
  std::vector<uint32_t> places;
  for (uint32_t place = 0; place < CountedCommands().size(); ++place) {
    if (!CountedCommands()[place].name.contains('|')) places.push_back(place);
  }
  return places;
}

std::span<const uint32_t> AllPlaces() {
  static const std::vector<uint32_t> kPlaces = PlacesOfCommands();
  return kPlaces;
}

// Of HELP the place behind the others.
std::optional<size_t> IndexOfSubcommand(const Command& command, std::string_view name) {
  const auto subcommands = command.subcommands();
  if (EqualsIgnoringCase(name, kHelpSubcommand.name)) return subcommands.size();
  const Subcommand* const found = FindSubcommand(command, name);
  if (found == nullptr) return std::nullopt;
  return static_cast<size_t>(found - subcommands.data());
}

}  // namespace

std::span<const CommandName> CountedCommands() {
  static const std::vector<CommandName> kNames = AllCommandNames();
  return kNames;
}

size_t CountedPlace(const Command& command, std::span<const std::string_view> args) {
  constexpr std::less<const Command*> kBefore;
  const std::span<const Command> all = AllCommands();
  const Command* const first = all.data();
  if (kBefore(&command, first) || !kBefore(&command, first + all.size())) return kUncounted;
  const size_t place = AllPlaces()[static_cast<size_t>(&command - first)];
  if (command.subcommands == nullptr || args.size() < 2) return place;
  const auto index = IndexOfSubcommand(command, args[1]);
  return index ? place + 1 + *index : place;
}

size_t LatencyBucketOf(uint64_t ns) {
  constexpr int kFirstBits = 10;
  static_assert(LatencyBoundNs(0) == 1 << kFirstBits);
  const auto bits = static_cast<size_t>(std::bit_width(ns));
  return std::min(bits - std::min<size_t>(bits, kFirstBits), kLatencyBuckets - 1);
}

std::span<const std::string_view> ErrorCodes() { return kErrorCodes; }

size_t ErrorCodeOf(std::string_view error) {
  const auto found = std::ranges::find(kErrorCodes, error.substr(0, error.find(' ')));
  return found == std::end(kErrorCodes) ? 0 : static_cast<size_t>(found - kErrorCodes);
}

CommandCounts& CommandCounts::operator+=(const CommandCounts& other) {
  calls += other.calls;
  ns += other.ns;
  rejected += other.rejected;
  failed += other.failed;
  for (size_t i = 0; i < kLatencyBuckets; ++i) latency[i] += other.latency[i];
  return *this;
}

CommandCounts& CommandCounts::operator-=(const CommandCounts& other) {
  calls -= other.calls;
  ns -= other.ns;
  rejected -= other.rejected;
  failed -= other.failed;
  for (size_t i = 0; i < kLatencyBuckets; ++i) latency[i] -= other.latency[i];
  return *this;
}

CommandStatistics::CommandStatistics()
    : commands_(AllCommands()),
      places_(AllPlaces()),
      counters_(new Counters[CountedCommands().size()]) {
  static_assert(std::size(kErrorCodes) <= kErrorCodesMax);
}

bool IsRefusal(std::string_view error) {
  constexpr std::string_view kCodes[] = {"MISCONF ", "OOM ", "WRONGRANGE "};
  return std::ranges::any_of(kCodes,
                             [&](std::string_view code) { return error.starts_with(code); });
}

Ending EndingOf(std::string_view reply) {
  if (!reply.starts_with('-')) return Ending::kDone;
  return IsRefusal(reply.substr(1)) ? Ending::kRefused : Ending::kFailed;
}

void CommandStatistics::Count(size_t place, uint64_t ns, Ending ending) {
  if (place == kUncounted) return;
  if (ending == Ending::kRefused) return CountRejected(place);
  Counters& counters = counters_[place];
  Bump(counters.calls, 1);
  Bump(counters.ns, ns);
  Bump(counters.latency[LatencyBucketOf(ns)], 1);
  if (ending == Ending::kFailed) Bump(counters.failed, 1);
}

void CommandStatistics::CountRejected(size_t place) {
  if (place != kUncounted) Bump(counters_[place].rejected, 1);
}

CommandCounts CommandStatistics::Of(size_t place) const {
  const Counters& from = counters_[place];
  const auto load = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  CommandCounts counts{.calls = load(from.calls),
                       .ns = load(from.ns),
                       .rejected = load(from.rejected),
                       .failed = load(from.failed)};
  std::ranges::transform(from.latency, counts.latency.begin(), load);
  return counts;
}

}  // namespace skep

#include "server/command_statistics.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace skep {
namespace {

constexpr std::string_view kErrorCodes[] = {
    "ERR", "BUSYKEY",        "EXECABORT", "MISCONF",    "NOAUTH",   "NOPROTO",
    "OOM", "SNAPSHOTTOOOLD", "WRONGPASS", "WRONGRANGE", "WRONGTYPE"};

}  // namespace

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
    : commands_(AllCommands()), counters_(new Counters[commands_.size()]) {
  static_assert(std::size(kErrorCodes) <= kErrorCodesMax);
}

CommandStatistics::Counters* CommandStatistics::CountersOf(const Command& command) {
  constexpr std::less<const Command*> kBefore;
  const Command* const first = commands_.data();
  if (kBefore(&command, first) || !kBefore(&command, first + commands_.size())) return nullptr;
  return &counters_[static_cast<size_t>(&command - first)];
}

void CommandStatistics::Count(const Command& command, uint64_t ns, bool has_failed) {
  Counters* const counters = CountersOf(command);
  if (counters == nullptr) return;
  Bump(counters->calls, 1);
  Bump(counters->ns, ns);
  Bump(counters->latency[LatencyBucketOf(ns)], 1);
  if (has_failed) Bump(counters->failed, 1);
}

void CommandStatistics::CountRejected(const Command& command) {
  if (Counters* const counters = CountersOf(command)) Bump(counters->rejected, 1);
}

CommandCounts CommandStatistics::Of(size_t index) const {
  const Counters& from = counters_[index];
  const auto load = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  CommandCounts counts{.calls = load(from.calls),
                       .ns = load(from.ns),
                       .rejected = load(from.rejected),
                       .failed = load(from.failed)};
  std::ranges::transform(from.latency, counts.latency.begin(), load);
  return counts;
}

}  // namespace skep

#include "bench/limits.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/cpu.h"
#include "base/huge_pages.h"
#include "bench/loopback_limit.h"
#include "bench/memory_limits.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

constexpr uint64_t kManyInFlight = 64;

Result<double> HugeFraction(const PageRegion& region) {
  const auto bytes = region.HugeBytes();
  if (!bytes) return Fail(bytes.error());
  return static_cast<double>(*bytes) / static_cast<double>(region.size());
}

// A small region is read about once in a repetition, so that a smoke test is short.
uint64_t ReadsOf(const LimitsOptions& options) {
  return std::min<uint64_t>(options.reads, options.bytes / kLineBytes);
}

Status MeasureHugePages(LimitsReport& report) {
  const LimitsOptions& options = report.options;
  auto region = PageRegion::Reserve(options.bytes, Pages::kHuge);
  if (!region) return region.error();
  MemoryLimits limits(*region, ReadsOf(options), options.repetitions);
  limits.Touch();
  const auto fraction = HugeFraction(*region);
  if (!fraction) return fraction.error();
  report.huge_fraction = *fraction;
  report.address_mops = limits.AddressMops();
  report.random_read_mops = limits.RandomReadMops();
  report.random_rmw_mops = limits.RandomRmwMops();
  report.random_start_3200b_mops = limits.RandomStart3200Mops();
  report.seq_read_gbs = limits.SequentialGbs();
  report.chase_ns = limits.ChaseNs();
  return {};
}

Status MeasurePlainPages(LimitsReport& report) {
  const LimitsOptions& options = report.options;
  auto region = PageRegion::Reserve(options.bytes, Pages::kPlain);
  if (!region) return region.error();
  MemoryLimits limits(*region, ReadsOf(options), options.repetitions);
  limits.Touch();
  const auto fraction = HugeFraction(*region);
  if (!fraction) return fraction.error();
  report.huge_fraction_4k = *fraction;
  report.random_read_4k_mops = limits.RandomReadMops();
  return {};
}

// Returns the seconds a message takes, the median of the repetitions. With more messages in flight
// each takes less time, so more are needed to time them.
Result<double> MessageSeconds(const LimitsOptions& options, uint64_t in_flight, int echo_core) {
  const uint64_t messages = options.round_trips * in_flight;
  std::vector<double> figures;
  for (int i = 0; i < options.repetitions; ++i) {
    const auto seconds = LoopbackSeconds(messages, in_flight, echo_core);
    if (!seconds) return seconds;
    figures.push_back(*seconds / static_cast<double>(messages));
  }
  return Median(std::move(figures));
}

Status MeasureLoopback(int echo_core, LimitsReport& report) {
  const auto one = MessageSeconds(report.options, 1, echo_core);
  if (!one) return one.error();
  const auto many = MessageSeconds(report.options, kManyInFlight, echo_core);
  if (!many) return many.error();
  report.loopback_rtt_us = *one * 1e6;
  report.loopback_64_mops = 1 / *many / 1e6;
  return {};
}

// Returns a core other than `core`, if this process has one.
int OtherCore(const std::vector<int>& cores, int core) {
  const auto other = std::ranges::find_if(cores, [&](int c) { return c != core; });
  return other == cores.end() ? core : *other;
}

}  // namespace

Result<LimitsReport> MeasureLimits(const LimitsOptions& options) {
  if (options.bytes <= kRunBytes) return Fail(Code::kInvalidArgument, "too few bytes", kRunBytes);
  constexpr uint64_t kBytesMax = (uint64_t{1} << 32) * kLineBytes - PageRegion::kHugePageBytes;
  if (options.bytes >= kBytesMax) return Fail(Code::kInvalidArgument, "too many bytes", kBytesMax);

  const std::vector<int> cores = AllowedCores();
  LimitsReport report = {.options = options, .core = sched_getcpu()};
  const ScopedPin pin(report.core);
  report.pinned = pin.pinned();
  if (Status status = MeasureHugePages(report); !status.ok()) return Fail(status);
  if (Status status = MeasurePlainPages(report); !status.ok()) return Fail(status);
  if (Status status = MeasureLoopback(OtherCore(cores, report.core), report); !status.ok()) {
    return Fail(status);
  }
  return report;
}

}  // namespace skep::bench

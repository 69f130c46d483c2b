#include "bench/net/one_sided_loop.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "bench/net/usage_meter.h"
#include "bench/net/window.h"

namespace skep::bench {
namespace {

NetWindow WindowOf(const NetPace& pace, uint64_t start_ns) {
  const auto to_ns = [](double seconds) { return static_cast<uint64_t>(seconds * 1e9); };
  return {start_ns + to_ns(pace.warm_up_seconds),
          pace.seconds > 0 ? to_ns(pace.seconds) : NetWindow::kNever,
          pace.ops_max > 0 ? pace.ops_max : NetWindow::kNever};
}

}  // namespace

std::expected<NetFigures, std::string> OneSidedLoop::Run(const OpStream& stream,
                                                         const ValuePool& values,
                                                         const NetPace& pace) {
  uint64_t now_ns = SystemClock().MonotonicNs();
  NetWindow window = WindowOf(pace, now_ns);
  UsageMeter meter(pace.server_pid);
  NetTally tally;
  while (true) {
    while (window.Observe(now_ns)) {
      window.phase() == NetWindow::Phase::kMeasured ? meter.Begin() : meter.End();
      if (window.phase() == NetWindow::Phase::kMeasured) tally = {};
    }
    if (window.phase() == NetWindow::Phase::kOver) break;
    Fill(stream, values, pace.group);
    if (const Status s = store_->Execute(batch_); !s.ok()) return std::unexpected(s.ToString());
    Judge(tally);
    if (tally.errors != 0 && !pace.allow_errors) {
      return std::unexpected(fmt::format("the server answered: {}", tally.first_error));
    }
    const uint64_t meant_ns = std::exchange(now_ns, SystemClock().MonotonicNs());
    window.Answered(meant_ns, now_ns, batch_.size());
  }
  return NetFigures{.ops = window.ops(),
                    .seconds = window.seconds(),
                    .latency_ns = window.latency_ns(),
                    .late_ns = window.late_ns(),
                    .tally = std::move(tally),
                    .generator_cpu = meter.thread_seconds() / window.seconds(),
                    .server_cpu_seconds = meter.server_seconds()};
}

void OneSidedLoop::Fill(const OpStream& stream, const ValuePool& values, uint32_t group) {
  batch_.Clear();
  for (uint32_t i = 0; i < group; ++i) {
    const YcsbOp op = stream.at(next_);
    if (op.kind == OpKind::kRead) {
      batch_.Get(op.key);
    } else if (op.kind == OpKind::kScan) {
      batch_.Scan(Range::From(op.key), {.limit = op.scan_items});
    } else {
      batch_.Put(op.key, values.at(next_));
    }
    next_ = (next_ + 1) % stream.size();
  }
}

void OneSidedLoop::Judge(NetTally& tally) const {
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Outcome& outcome = batch_.outcome(slot);
    const Op op = batch_.requests()[slot].op;
    if (outcome.verdict == Verdict::kRefused) {
      tally.CountError(outcome.status.what());
    } else if (op == Op::kScan) {
      ++tally.scans;
      tally.items += outcome.item_count;
    } else if (op != Op::kGet) {
      ++tally.stored;
    } else if (outcome.verdict != Verdict::kDone) {
      ++tally.misses;
    } else if (outcome.value.size() == value_bytes_) {
      ++tally.hits;
    } else {
      tally.CountError("a value has the wrong size");
    }
  }
}

OneSidedCounts OneSidedLoop::Counts() const {
  OneSidedCounts counts;
  for (const auto& keyspace : store_->Statistics().keyspaces) {
    for (const auto& [name, value] : keyspace.details) {
      if (name == "one_sided_answered") counts.answered = value;
      if (name == "one_sided_asked") counts.asked = value;
      if (name == "one_sided_round_trips") counts.round_trips = value;
      if (name == "one_sided_bytes") counts.bytes = value;
    }
  }
  return counts;
}

}  // namespace skep::bench

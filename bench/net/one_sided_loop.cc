#include "bench/net/one_sided_loop.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "bench/net/measured_run.h"
#include "bench/net/outcome_tally.h"

namespace skep::bench {
std::expected<NetFigures, std::string> OneSidedLoop::Run(const OpStream& stream,
                                                         const ValuePool& values,
                                                         const NetPace& pace) {
  uint64_t now_ns = SystemClock().MonotonicNs();
  MeasuredRun run(pace, now_ns);
  while (true) {
    run.Observe(now_ns);
    if (run.is_over()) return run.TakeFigures();
    Fill(stream, values, pace.group);
    if (const Status s = store_->Execute(batch_); !s.ok()) return std::unexpected(s.ToString());
    Judge(run.tally());
    if (run.tally().errors != 0 && !pace.allow_errors) {
      return std::unexpected(fmt::format("the server answered: {}", run.tally().first_error));
    }
    const uint64_t meant_ns = std::exchange(now_ns, SystemClock().MonotonicNs());
    run.window().Answered(meant_ns, now_ns, batch_.size());
  }
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
    const Op op = batch_.requests()[slot].op;
    const OpKind kind = op == Op::kGet    ? OpKind::kRead
                        : op == Op::kScan ? OpKind::kScan
                                          : OpKind::kUpdate;
    CountOutcome(kind, batch_.outcome(slot), value_bytes_, tally);
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

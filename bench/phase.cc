#include "bench/phase.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"

namespace skep::bench {
namespace {

class Phase {
 public:
  Phase(std::span<const Lane> lanes, KeyFormat format, uint32_t batch, Progress& progress,
        double ops_per_second)
      : lanes_(lanes),
        format_(format),
        batch_(batch),
        progress_(progress),
        ns_of_batch_(ops_per_second > 0
                         ? static_cast<double>(batch * lanes.size()) * 1e9 / ops_per_second
                         : 0),
        reports_(lanes.size()),
        edge_(static_cast<ptrdiff_t>(lanes.size()), Edge{this}) {
    const uint64_t ops_bytes = OpStream::BytesPerOp(format) * lanes.size();
    round_ops_ = std::max<uint64_t>(kStreamBytesMax / ops_bytes / batch * batch, batch);
    for (const Lane& lane : lanes) {
      rounds_ = std::max(rounds_, (lane.ops + round_ops_ - 1) / round_ops_);
    }
  }

  PhaseReport Run() {
    {
      std::vector<std::jthread> threads;
      for (size_t lane = 0; lane < lanes_.size(); ++lane) {
        threads.emplace_back([this, lane] { RunLane(lane); });
      }
    }
    PhaseReport all;
    for (const PhaseReport& report : reports_) {
      all.ops += report.ops;
      all.latency_ns.Merge(report.latency_ns);
      all.tally.Merge(report.tally);
      all.pinned &= report.pinned;
      if (all.status.ok()) all.status = report.status;
    }
    all.seconds = static_cast<double>(elapsed_ns_) * 1e-9;
    return all;
  }

 private:
  // Runs on one thread while all others wait at the barrier, so that the clock needs no lock.
  struct Edge {
    Phase* phase;
    void operator()() noexcept {
      const uint64_t now_ns = SystemClock().MonotonicNs();
      if (phase->running_) phase->elapsed_ns_ += now_ns - phase->started_ns_;
      phase->running_ = !phase->running_;
      phase->started_ns_ = now_ns;
    }
  };

  void RunLane(size_t index) {
    const Lane& lane = lanes_[index];
    std::optional<ScopedPin> pin;
    if (lane.core >= 0) reports_[index].pinned = pin.emplace(lane.core).pinned();
    OpStream stream(format_);
    uint64_t left = lane.ops;
    // failed_ changes only between the two barriers, so that all threads leave in one round.
    for (uint64_t round = 0; round < rounds_ && !failed_; ++round) {
      stream.Clear();
      const uint64_t ops = std::min(left, round_ops_);
      lane.source->Fill(stream, ops);
      left -= ops;
      edge_.arrive_and_wait();
      RunRound(index, stream);
      edge_.arrive_and_wait();
    }
  }

  void RunRound(size_t index, const OpStream& stream) {
    PhaseReport& report = reports_[index];
    const uint64_t start_ns = SystemClock().MonotonicNs();
    uint64_t begin_ns = start_ns;
    for (size_t first = 0; first < stream.size(); first += batch_) {
      const size_t count = std::min<size_t>(batch_, stream.size() - first);
      if (ns_of_batch_ > 0) {
        const auto batches = static_cast<double>(first / batch_);
        begin_ns = start_ns + static_cast<uint64_t>(ns_of_batch_ * batches);
        SleepUntil(begin_ns);
      }
      report.status = lanes_[index].session->Execute(stream, first, count, report.tally);
      if (!report.status.ok()) {
        failed_ = true;
        return;
      }
      const uint64_t end_ns = SystemClock().MonotonicNs();
      report.latency_ns.Record(end_ns - begin_ns, count);
      report.ops += count;
      begin_ns = end_ns;
      progress_.Add(index, count);
    }
  }

  static void SleepUntil(uint64_t monotonic_ns) {
    const uint64_t now_ns = SystemClock().MonotonicNs();
    if (now_ns >= monotonic_ns) return;
    std::this_thread::sleep_for(std::chrono::nanoseconds(monotonic_ns - now_ns));
  }

  const std::span<const Lane> lanes_;
  const KeyFormat format_;
  const size_t batch_;
  Progress& progress_;
  const double ns_of_batch_;  // of one lane, from one to the next; 0: as fast as possible
  uint64_t round_ops_ = 0;    // of each lane, at most
  uint64_t rounds_ = 0;  // of every lane: one that has no operations left still meets the others
  std::vector<PhaseReport> reports_;  // by lane; its own thread's until the threads are joined
  std::atomic<bool> failed_{false};
  // Only Edge uses these.
  bool running_ = false;
  uint64_t started_ns_ = 0;
  uint64_t elapsed_ns_ = 0;
  std::barrier<Edge> edge_;
};

}  // namespace

PhaseReport RunPhase(std::span<const Lane> lanes, KeyFormat format, uint32_t batch,
                     Progress& progress, double ops_per_second) {
  return Phase(lanes, format, batch, progress, ops_per_second).Run();
}

}  // namespace skep::bench

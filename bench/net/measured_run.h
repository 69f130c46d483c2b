// measured_run.h: what is counted of a run while its window is open: operations and latencies,
// answers, and the CPU time of the thread that measures and of the server.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "bench/net/generator.h"
#include "bench/net/process_usage.h"
#include "bench/net/window.h"

namespace skep::bench {

// Measures the CPU time between Begin and End.
class UsageMeter {
 public:
  explicit UsageMeter(const std::optional<pid_t>& server) : server_(server) {}

  void Begin() {
    thread_ = ThreadCpuSeconds();
    server_cpu_ = ServerCpuSeconds();
  }
  void End() {
    thread_ = ThreadCpuSeconds() - thread_;
    const auto now = ServerCpuSeconds();
    server_cpu_ = now && server_cpu_ ? std::optional(*now - *server_cpu_) : std::nullopt;
  }

  double thread_seconds() const { return thread_; }
  std::optional<double> server_seconds() const { return server_cpu_; }

 private:
  std::optional<double> ServerCpuSeconds() const {
    const auto usage = server_ ? UsageOfProcess(*server_) : std::nullopt;
    return usage ? std::optional(usage->cpu_seconds) : std::nullopt;
  }

  const std::optional<pid_t> server_;
  double thread_ = 0;
  std::optional<double> server_cpu_;
};

// Thread safety: none; the thread that measures owns it.
class MeasuredRun {
 public:
  // A run that begins with its warm-up at `start_ns`.
  MeasuredRun(const NetPace& pace, uint64_t start_ns)
      : window_(start_ns + ToNs(pace.warm_up_seconds),
                pace.seconds > 0 ? ToNs(pace.seconds) : NetWindow::kNever,
                pace.ops_max > 0 ? pace.ops_max : NetWindow::kNever),
        meter_(pace.server_pid) {}

  NetWindow& window() { return window_; }
  const NetWindow& window() const { return window_; }
  NetTally& tally() { return tally_; }
  bool is_over() const { return window_.phase() == NetWindow::Phase::kOver; }

  // Passes to the phase of this time. Measuring begins with an empty tally.
  void Observe(uint64_t now_ns) {
    while (window_.Observe(now_ns)) {
      if (window_.phase() == NetWindow::Phase::kMeasured) {
        meter_.Begin();
        tally_ = {};
      } else {
        meter_.End();
      }
    }
  }
  // Returns the figures. The run must be over.
  NetFigures TakeFigures() {
    return {.ops = window_.ops(),
            .seconds = window_.seconds(),
            .latency_ns = window_.latency_ns(),
            .late_ns = window_.late_ns(),
            .tally = std::move(tally_),
            .generator_cpu = meter_.thread_seconds() / window_.seconds(),
            .server_cpu_seconds = meter_.server_seconds()};
  }

 private:
  static uint64_t ToNs(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

  NetWindow window_;
  UsageMeter meter_;
  NetTally tally_;
};

}  // namespace skep::bench

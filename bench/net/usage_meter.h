// usage_meter.h: the CPU time of the thread that measures, and of the server.
#pragma once

#include <sys/types.h>

#include <optional>

#include "bench/net/process_usage.h"

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

}  // namespace skep::bench

// process_usage.h: what processes and threads used, as the system says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace skep::bench {

struct ProcessUsage {
  double cpu_seconds = 0;  // user and system, of all its threads; to 1/100 s
  uint64_t rss_bytes = 0;
};

// Of the text of /proc/PID/stat; nothing if it is not that.
std::optional<ProcessUsage> ParseProcessStat(std::string_view stat);
// Nothing if there is no such process.
std::optional<ProcessUsage> UsageOfProcess(pid_t pid);

// Of the calling thread, user and system.
double ThreadCpuSeconds();

}  // namespace skep::bench

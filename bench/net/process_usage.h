// process_usage.h: the CPU time and memory of processes and threads, as the system reports them.
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

// Parses the text of /proc/PID/stat; returns nothing if it has another form.
std::optional<ProcessUsage> ParseProcessStat(std::string_view stat);
// Returns nothing if there is no such process.
std::optional<ProcessUsage> UsageOfProcess(pid_t pid);

// Returns the CPU time of the calling thread, user and system.
double ThreadCpuSeconds();

}  // namespace skep::bench

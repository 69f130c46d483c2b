#include "bench/net/process_usage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace skep::bench {
namespace {

// proc(5) counts the fields of the file from 1; these are behind the name, which is the second.
constexpr int kFirstField = 3;
constexpr int kUserTicks = 14;
constexpr int kSystemTicks = 15;
constexpr int kResidentPages = 24;

std::optional<uint64_t> FieldOf(std::string_view behind_name, int field) {
  for (int skipped = kFirstField; skipped < field; ++skipped) {
    const size_t blank = behind_name.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    behind_name.remove_prefix(blank + 1);
  }
  uint64_t number = 0;
  const char* const end = behind_name.data() + behind_name.size();
  if (std::from_chars(behind_name.data(), end, number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ProcessUsage> ParseProcessStat(std::string_view stat) {
  // A name may have blanks and parentheses of its own.
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::string_view behind = stat.substr(name_end + 2);
  const auto user = FieldOf(behind, kUserTicks);
  const auto system = FieldOf(behind, kSystemTicks);
  const auto pages = FieldOf(behind, kResidentPages);
  if (!user || !system || !pages) return std::nullopt;
  const auto ticks = static_cast<double>(*user + *system);
  return ProcessUsage{
      .cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
      .rss_bytes = *pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
  };
}

std::optional<ProcessUsage> UsageOfProcess(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return ParseProcessStat(stat);
}

double ThreadCpuSeconds() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace skep::bench

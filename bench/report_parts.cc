#include "bench/report_parts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "bench_commit.h"

namespace skep::bench {
namespace {

// Returns the date in UTC: 2026-11-21.
std::string Today() {
  const auto now = static_cast<std::time_t>(SystemClock().WallUs() / 1'000'000);
  return fmt::format("{:%F}", fmt::gmtime(now));
}

// Returns the command line of this process, without the folder; empty if the system does not say.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!line.empty()) line.pop_back();
  const std::string_view program(line.data(), std::strlen(line.c_str()));
  line.erase(0, program.rfind('/') + 1);
  std::ranges::replace(line, '\0', ' ');
  return line;
}

}  // namespace

std::string Machine() { return fmt::format("{}, {} cores", CpuModel(), AllowedCores().size()); }

std::string Line(Json object) {
  object["machine"] = Machine();
  object["commit"] = kCommit;
  object["date"] = Today();
  object["command"] = CommandLine();
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Row(std::string_view name, const std::string& figure, std::string_view unit) {
  return fmt::format("  {:<26} {:>12}  {}\n", name, figure, unit);
}

std::string Row(std::string_view name, double figure, std::string_view unit) {
  return Row(name, fmt::format("{:.2f}", figure), unit);
}

std::string MicrosecondsRow(std::string_view name, uint64_t ns) {
  return Row(name, static_cast<double>(ns) / 1e3, "us");
}

}  // namespace skep::bench

#include "base/cpu.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

namespace skep {

std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return {0};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

std::string CpuModel() {
  constexpr std::string_view kField = "model name";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(kField) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// On Linux each thread has a nice value of its own. A thread whose new value is refused keeps the
// old one.
void LowerPriority() {
  constexpr int kNice = 10;
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice));
}

ScopedPin::ScopedPin(int core) {
  if (!before_.is_known()) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  pinned_ = sched_setaffinity(0, sizeof(one), &one) == 0;
}

ScopedPin::~ScopedPin() {
  if (pinned_) before_.Take();
}

}  // namespace skep

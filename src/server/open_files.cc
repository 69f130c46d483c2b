#include "server/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace skep {
namespace {

constexpr uint64_t kOwnFiles = 64;
constexpr uint64_t kFilesOfAWorker = 2;  // of its poller

}  // namespace

uint32_t ClientsPossible(const ServerOptions& options) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return options.maxclients;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const uint64_t workers =
      options.workers != 0 ? options.workers : std::thread::hardware_concurrency();
  const uint64_t own = kOwnFiles + kFilesOfAWorker * workers;
  // If there are very few descriptors, clients get half of them.
  const uint64_t left =
      limit.rlim_cur > 2 * own ? limit.rlim_cur - own : uint64_t{limit.rlim_cur} / 2;
  return static_cast<uint32_t>(std::min<uint64_t>(left, UINT32_MAX));
}

}  // namespace skep

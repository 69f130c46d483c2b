#include "tools/netindex/xdp_command.h"

#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace skep {
namespace {

void Print(std::string_view line) {
  std::printf("skep-netindex: %.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(stdout);
}

}  // namespace

int RunXdpHelper(const xdp::HelperOptions& options) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const FileDescriptor end(signalfd(-1, &ends, SFD_CLOEXEC));

  xdp::XdpHelper helper(options, Print);
  std::string problem;
  if (const Status s = helper.Start(&problem); !s.ok()) {
    std::fprintf(stderr, "skep-netindex: %s\n", problem.c_str());
    return 1;
  }
  Print("ready: " + options.socket);
  helper.Run(end.get());
  return 0;
}

}  // namespace skep

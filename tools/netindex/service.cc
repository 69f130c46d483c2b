#include "tools/netindex/service.h"

#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>

namespace skep {
namespace {

void Print(std::FILE* to, std::string_view line) {
  std::fprintf(to, "skep-netindex: %.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(to);
}

}  // namespace

FileDescriptor TakeEndSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  return FileDescriptor(signalfd(-1, &ends, SFD_CLOEXEC));
}

void SayLine(std::string_view line) { Print(stdout, line); }

int FailWith(std::string_view problem) {
  Print(stderr, problem);
  return 1;
}

}  // namespace skep

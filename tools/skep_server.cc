// skep-server: reads its options, serves, ends on SIGTERM or SIGINT.
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <span>
#include <string>
#include <thread>

#include "server/command_line.h"
#include "server/function_library.h"
#include "server/server.h"
#include "server/version.h"

namespace {

// Every client takes a descriptor: raises the limit as far as it may be, and lowers maxclients to
// what is left. Returns whether it did the latter.
bool FitOpenFiles(skep::ServerOptions& options) {
  constexpr uint64_t kOwnFiles = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= options.maxclients + kOwnFiles) return false;
  options.maxclients = static_cast<uint32_t>(
      limit.rlim_cur > 2 * kOwnFiles ? limit.rlim_cur - kOwnFiles : limit.rlim_cur / 2);
  return true;
}

// Gives freed memory back to the system when much was freed. malloc keeps what lies between blocks
// that are still used, however little that is. Takes milliseconds, so no worker may do it.
class MemoryReturner {
 public:
  void Look(uint64_t used_bytes) {
    constexpr uint64_t kWorthwhileBytes = 32 << 20;
    most_bytes_ = std::max(most_bytes_, used_bytes);
    const bool falling = used_bytes < last_bytes_;
    last_bytes_ = used_bytes;
    if (falling || most_bytes_ - used_bytes < kWorthwhileBytes) return;
    malloc_trim(0);
    most_bytes_ = used_bytes;
  }

 private:
  uint64_t most_bytes_ = 0;  // since the last return
  uint64_t last_bytes_ = 0;
};

// Waits for a signal that asks for the end, or for a SHUTDOWN.
void AwaitEnd(skep::Server& server, const sigset_t& signals) {
  constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 100'000'000};
  MemoryReturner memory;
  while (!server.stopping()) {
    memory.Look(server.keyspaces().budget().used());
    const int signal = sigtimedwait(&signals, nullptr, &kPatience);
    if (signal > 0) {
      server.log().info("signal {}: ending", signal);
      server.Stop();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto& files = skep::PosixFileSystem();
  const auto arguments = std::span<const char* const>(argv, static_cast<size_t>(argc)).subspan(1);
  skep::CommandLine line = skep::ParseCommandLine(arguments, files);
  if (!line.run) {
    std::fputs(line.text.c_str(), line.exit_code == 0 ? stdout : stderr);
    return line.exit_code;
  }
  // Blocked before any thread starts, one of a function library included, so that only AwaitEnd
  // sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  for (const std::string& path : line.options.function_libraries) {
    if (const std::string why = skep::LoadFunctionLibrary(path); !why.empty()) {
      std::fprintf(stderr, "skep-server: --function-library: %s\n", why.c_str());
      return 1;
    }
  }

  const bool fewer_clients = FitOpenFiles(line.options);
  skep::Server server(line.options, skep::SystemEnvironment());
  if (skep::Status status = server.Start(); !status.ok()) {
    std::fprintf(stderr, "skep-server: %s\n", status.ToString().c_str());
    return 1;
  }
  server.log().info("skep-server {} ({} workers, engine {})", skep::kVersion, server.worker_count(),
                    line.options.engine);
  for (const skep::Address& address : server.addresses()) {
    server.log().info("ready to accept connections on {}", address);
  }
  if (fewer_clients) {
    server.log().warn("maxclients is {}: the system allows no more open files",
                      line.options.maxclients);
  }
  std::thread serving([&server] { server.Run(); });
  AwaitEnd(server, signals);
  serving.join();
  server.log().info("bye");
  return 0;
}

// skep-server: reads its options, serves, reopens its log file on SIGHUP, ends on SIGTERM or
// SIGINT.
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <span>
#include <string>
#include <thread>

#include "base/network_socket.h"
#include "server/command_line.h"
#include "server/function_library.h"
#include "server/open_files.h"
#include "server/server.h"
#include "server/version.h"

namespace {

// Every client takes a descriptor: lowers maxclients to the number that the system allows. Returns
// whether that was necessary.
bool FitOpenFiles(skep::ServerOptions& options) {
  const uint32_t possible = skep::ClientsPossible(options);
  if (options.maxclients <= possible) return false;
  options.maxclients = possible;
  return true;
}

// Gives freed memory back to the system after much was freed. malloc keeps free memory between
// blocks that are still used, however few these are. A return takes milliseconds, so no worker may
// do it.
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
  uint64_t most_bytes_ = 0;  // the most since the last return
  uint64_t last_bytes_ = 0;
};

// Recovers the data, which may take minutes, and listens. SIGTERM or SIGINT ends the process
// meanwhile, at once, as a crash would: no client has been told anything yet, and the next start
// can use all that this one leaves behind. SIGHUP is left for the log file that will exist then.
skep::Status StartOrEnd(skep::Server& server, const sigset_t& signals) {
  constexpr auto kPatience = std::chrono::milliseconds(50);
  constexpr timespec kNoPatience{};
  bool reopens_log = false;
  auto started = std::async(std::launch::async, [&server] { return server.Start(); });
  while (started.wait_for(kPatience) != std::future_status::ready) {
    const int signal = sigtimedwait(&signals, nullptr, &kNoPatience);
    if (signal == SIGHUP) reopens_log = true;
    if (signal != SIGTERM && signal != SIGINT) continue;
    std::fprintf(stderr, "skep-server: signal %d: ending before the start is done\n", signal);
    std::_Exit(0);
  }
  const skep::Status status = started.get();
  if (status.ok() && reopens_log) server.state().log().Reopen();
  return status;
}

// Waits for SIGTERM or SIGINT, or for a SHUTDOWN. On SIGHUP it reopens the log file, which was
// moved.
void AwaitEnd(skep::Server& server, const sigset_t& signals) {
  constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 100'000'000};
  MemoryReturner memory;
  while (!server.stopping()) {
    memory.Look(server.keyspaces().budget().used());
    const int signal = sigtimedwait(&signals, nullptr, &kPatience);
    if (signal == SIGHUP) {
      server.state().log().Reopen();
    } else if (signal > 0) {
      server.state().log().logger().info("signal {}: ending", signal);
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
  // The signals are blocked before any thread starts, also one of a function library, so that only
  // AwaitEnd receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  for (const std::string& path : line.options.function_libraries) {
    if (const std::string why = skep::LoadFunctionLibrary(path); !why.empty()) {
      std::fprintf(stderr, "skep-server: --function-library: %s\n", why.c_str());
      return 1;
    }
  }

  const bool fewer_clients = FitOpenFiles(line.options);
  skep::SetSocketKeepalive(line.options.tcp_keepalive);
  skep::Server server(line.options, skep::SystemEnvironment());
  if (!StartOrEnd(server, signals).ok()) {
    std::fprintf(stderr, "skep-server: %s\n", server.problem().c_str());
    return 1;
  }
  server.state().log().logger().info("skep-server {} ({} workers, engine {})", skep::kVersion,
                                     server.worker_count(), line.options.engine);
  for (const skep::Address& address : server.addresses()) {
    server.state().log().logger().info("ready to accept connections on {}", address);
  }
  if (fewer_clients) {
    server.state().log().logger().warn("maxclients is {}: the system allows no more open files",
                                       line.options.maxclients);
  }
  skep::Status served;
  std::thread serving([&] { served = server.Run(); });
  AwaitEnd(server, signals);
  serving.join();
  server.state().log().logger().info("bye");
  return served.ok() ? 0 : 1;
}

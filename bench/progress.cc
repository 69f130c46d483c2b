#include "bench/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace skep::bench {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(250);
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Progress::Progress(std::string what, uint64_t total, size_t lanes, bool show)
    : what_(std::move(what)), total_(total), lanes_(lanes) {
  if (show) printer_ = std::jthread([this](std::stop_token stop) { Print(stop); });
}

Progress::~Progress() = default;

void Progress::Print(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, kInterval, [] { return false; })) {
    if (stop.stop_requested()) break;
    uint64_t done = 0;
    for (const Lane& lane : lanes_) done += lane.done.load(std::memory_order_relaxed);
    fmt::print(stderr, "{}{}: {} of {} ({} %)", kClearLine, what_, done, total_,
               total_ == 0 ? 100 : done * 100 / total_);
    std::fflush(stderr);
  }
  fmt::print(stderr, "{}", kClearLine);
}

bool ErrorOutputIsTerminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace skep::bench

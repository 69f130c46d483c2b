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
  if (show) printer_ = std::thread([this] { Run(); });
}

Progress::~Progress() {
  if (!printer_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  over_.NotifyOne();
  printer_.join();
}

void Progress::Run() {
  const MutexLock lock(mutex_);
  while (!is_over_) {
    over_.WaitFor(mutex_, kInterval);
    if (!is_over_) Print();
  }
  fmt::print(stderr, "{}", kClearLine);
}

void Progress::Print() const {
  uint64_t done = 0;
  for (const Lane& lane : lanes_) done += lane.done.load(std::memory_order_relaxed);
  fmt::print(stderr, "{}{}: {} of {} ({} %)", kClearLine, what_, done, total_,
             total_ == 0 ? 100 : done * 100 / total_);
  std::fflush(stderr);
}

bool ErrorOutputIsTerminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace skep::bench

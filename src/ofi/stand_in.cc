#include "ofi/stand_in.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <ctime>

#include "base/check.h"

namespace skep::rma {

StandIn::StandIn(OfiDomain& domain)
    : domain_(domain), stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  SKEP_CHECK(stop_.valid());
  thread_ = std::thread([this] { Run(); });
}

StandIn::~StandIn() {
  is_stopped_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  static_cast<void>(!write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

bool StandIn::IsAway(uint64_t turns) const {
  return !is_waiting_.load(std::memory_order_relaxed) &&
         turns_.load(std::memory_order_relaxed) == turns;
}

// Whether the domain's descriptor may be waited at.
bool StandIn::Drain() {
  const MutexLock lock(domain_.mutex);
  static_cast<void>(domain_.Drain());
  drained_.fetch_add(1, std::memory_order_relaxed);
  return domain_.MayWait();
}

// Ends early when the thread is to stop, or `fd` is readable.
void StandIn::Nap(int fd, int64_t microseconds) const {
  pollfd waited[2] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                      {.fd = fd, .events = POLLIN, .revents = 0}};
  const timespec time = {.tv_sec = 0, .tv_nsec = microseconds * 1000};
  static_cast<void>(ppoll(waited, 2, &time, nullptr));
}

void StandIn::Run() {
  int64_t away_ms = kAwayMs;
  while (!is_stopped_.load(std::memory_order_relaxed)) {
    const uint64_t turns = turns_.load(std::memory_order_relaxed);
    Nap(-1, away_ms * 1000);
    away_ms = std::min<int64_t>(2 * away_ms, kAwayMsMax);
    while (IsAway(turns) && !is_stopped_.load(std::memory_order_relaxed)) {
      away_ms = kAwayMs;
      if (!Drain()) continue;
      Nap(domain_.wait_fd(), domain_.CanBeWaitedFor() ? int64_t{1000} * kAwayMsMax : kNapUs);
    }
  }
}

}  // namespace skep::rma

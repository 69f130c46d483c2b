#include "base/prefaulter.h"

#include <system_error>

#include "base/huge_pages.h"
#include "base/mutex.h"

namespace skep {
namespace {

constexpr size_t kWaitingMax = 256;

}  // namespace

Prefaulter::~Prefaulter() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  asked_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

void Prefaulter::Ask(std::span<std::byte> bytes) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kWaitingMax) return;
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { Work(); });
      } catch (const std::system_error&) {
        return;
      }
    }
    waiting_.push_back(bytes);
  }
  asked_.NotifyOne();
}

void Prefaulter::Work() {
  affinity_.Take();
  const MutexLock lock(mutex_);
  for (;;) {
    while (!ends_ && waiting_.empty()) asked_.Wait(mutex_);
    if (ends_) return;
    const std::span<std::byte> bytes = waiting_.front();
    waiting_.erase(waiting_.begin());
    const MutexUnlock unlock(mutex_);
    PageRegion::MakeResident(bytes);
  }
}

}  // namespace skep

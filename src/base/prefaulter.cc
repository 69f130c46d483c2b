#include "base/prefaulter.h"

#include <system_error>

#include "base/huge_pages.h"

namespace skep {
namespace {

constexpr size_t kWaitingMax = 256;

}  // namespace

Prefaulter::~Prefaulter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Prefaulter::Ask(std::span<std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
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
  asked_.notify_one();
}

void Prefaulter::Work() {
  affinity_.Take();
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const std::span<std::byte> bytes = waiting_.front();
    waiting_.erase(waiting_.begin());
    lock.unlock();
    PageRegion::MakeResident(bytes);
    lock.lock();
  }
}

}  // namespace skep

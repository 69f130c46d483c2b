#include "base/helper_pool.h"

#include "base/cpu.h"

namespace skep {

HelperPool::HelperPool(uint32_t helpers) {
  for (uint32_t i = 0; i < helpers; ++i) threads_.emplace_back([this] { Work(); });
}

HelperPool::~HelperPool() {
  ends_.store(true, std::memory_order_seq_cst);
  shown_.fetch_add(1, std::memory_order_seq_cst);
  shown_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HelperPool::Help(const std::function<void()>& job) {
  if (threads_.empty()) return job();
  if (!caller_.try_lock()) return job();
  Show(job);
  job();
  End();
}

void HelperPool::Begin(const std::function<void()>& job) {
  caller_.lock();
  Show(job);
}

void HelperPool::Show(const std::function<void()>& job) {
  job_.store(&job, std::memory_order_seq_cst);
  shown_.fetch_add(1, std::memory_order_seq_cst);
  shown_.notify_all();
}

void HelperPool::End() {
  job_.store(nullptr, std::memory_order_seq_cst);  // (1)
  for (int spins = 0; inside_.load(std::memory_order_seq_cst) != 0; ++spins) {
    constexpr int kSpins = 1000;
    spins < kSpins ? Pause() : std::this_thread::yield();
  }
  caller_.unlock();
}

void HelperPool::Work() {
  constexpr int kSpins = 2000;
  for (uint32_t seen = 0; !ends_.load(std::memory_order_seq_cst);) {
    uint32_t shown = shown_.load(std::memory_order_seq_cst);
    for (int spins = 0; shown == seen && spins < kSpins; ++spins) {
      Pause();
      shown = shown_.load(std::memory_order_seq_cst);
    }
    if (shown == seen) {
      shown_.wait(seen, std::memory_order_seq_cst);
      continue;
    }
    seen = shown;
    inside_.fetch_add(1, std::memory_order_seq_cst);  // (1)
    const auto* const job = job_.load(std::memory_order_seq_cst);
    if (job != nullptr) (*job)();
    inside_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace skep

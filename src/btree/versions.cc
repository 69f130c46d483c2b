#include "btree/versions.h"

#include <algorithm>
#include <thread>

#include "base/mutex.h"
#include "btree/workspace.h"

namespace skep::btree {

ThreadState::ThreadState() : workspace(new Workspace) {}
ThreadState::~ThreadState() = default;

ThreadState& ThreadStates::Take() {
  static std::atomic<uint32_t> threads{0};
  static thread_local const uint32_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t tries = 0;; ++tries) {
    const uint32_t index = (mine + tries) % kThreadsMax;
    ThreadState* thread = threads_[index].load(std::memory_order_acquire);
    if (thread == nullptr) thread = &Make(index);
    if (TryTake(*thread)) return *thread;
    if (tries % kThreadsMax == kThreadsMax - 1) std::this_thread::yield();
  }
}

ThreadState& ThreadStates::Make(uint32_t index) {
  const MutexLock lock(mutex_);
  ThreadState* thread = threads_[index].load(std::memory_order_acquire);
  if (thread != nullptr) return *thread;
  thread = new ThreadState;
  threads_[index].store(thread, std::memory_order_seq_cst);
  end_.store(std::max(index + 1, end_.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
  return *thread;
}

ThreadStates::~ThreadStates() {
  for (auto& thread : threads_) delete thread.load(std::memory_order_acquire);
}

Version Versions::Complete() const {
  Version lowest = next_.load(std::memory_order_seq_cst);
  threads_.ForEach([&](const ThreadState& thread) {
    lowest = std::min(lowest, thread.write_floor.load(std::memory_order_seq_cst));
  });
  return lowest - 1;
}

void Versions::AwaitPhase(ThreadState& thread) {
  thread.held_up.store(true, std::memory_order_seq_cst);
  while (thread.phase % 2 != 0) {
    std::this_thread::yield();
    Raise(thread);
    thread.phase = phase_.load(std::memory_order_seq_cst);
  }
}

void Versions::TakeTurn(ThreadState& thread) {
  // A thread that waits for the turn must not hold up others (P4).
  LetGo(thread);
  const auto wait = [&] {
    Raise(thread);
    std::this_thread::yield();
  };
  while (!exclusive_.try_lock()) wait();
  threads_.ForEach([&](const ThreadState& other) {
    while (other.held_up.load(std::memory_order_seq_cst)) wait();
  });
}

void Versions::StopWriters(ThreadState& thread) {
  thread.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
  const Version barrier = Draw();
  barrier_.store(barrier, std::memory_order_seq_cst);
  threads_.ForEach([&](const ThreadState& other) {
    if (&other == &thread) return;
    while (other.write_floor.load(std::memory_order_seq_cst) <= barrier ||
           other.rebuilds.load(std::memory_order_seq_cst)) {
      std::this_thread::yield();
    }
  });
}

void Versions::ResumeWriters(ThreadState& thread) {
  thread.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
}

Version Versions::LowestReadFloor() const {
  Version lowest = ThreadState::kIdle;
  threads_.ForEach([&](const ThreadState& thread) {
    lowest = std::min(lowest, thread.read_floor.load(std::memory_order_seq_cst));
  });
  return lowest;
}

uint64_t Versions::LowestEpoch() const {
  uint64_t lowest = ThreadState::kIdle;
  threads_.ForEach([&](const ThreadState& thread) {
    lowest = std::min(lowest, thread.epoch.load(std::memory_order_seq_cst));
  });
  return lowest;
}

}  // namespace skep::btree

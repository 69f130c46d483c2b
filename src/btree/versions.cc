#include "btree/versions.h"

#include <algorithm>
#include <thread>

#include "btree/workspace.h"

namespace skep::btree {

Slot::Slot() : workspace(new Workspace) {}
Slot::~Slot() = default;

Slot& Slots::Take() {
  static std::atomic<uint32_t> threads{0};
  static thread_local const uint32_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t tries = 0;; ++tries) {
    const uint32_t index = (mine + tries) % kSlotsMax;
    Slot* slot = slots_[index].load(std::memory_order_acquire);
    if (slot == nullptr) slot = &Make(index);
    if (TryTake(*slot)) return *slot;
    if (tries % kSlotsMax == kSlotsMax - 1) std::this_thread::yield();
  }
}

Slot& Slots::Make(uint32_t index) {
  std::lock_guard lock(mutex_);
  Slot* slot = slots_[index].load(std::memory_order_acquire);
  if (slot != nullptr) return *slot;
  slot = new Slot;
  slots_[index].store(slot, std::memory_order_seq_cst);
  end_.store(std::max(index + 1, end_.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
  return *slot;
}

Slots::~Slots() {
  for (auto& slot : slots_) delete slot.load(std::memory_order_acquire);
}

Version Versions::Complete() const {
  Version lowest = next_.load(std::memory_order_seq_cst);
  slots_.ForEach([&](const Slot& slot) {
    lowest = std::min(lowest, slot.write_floor.load(std::memory_order_seq_cst));
  });
  return lowest - 1;
}

void Versions::AwaitPhase(Slot& slot) {
  slot.held_up.store(true, std::memory_order_seq_cst);
  while (slot.phase % 2 != 0) {
    std::this_thread::yield();
    Raise(slot);
    slot.phase = phase_.load(std::memory_order_seq_cst);
  }
}

void Versions::TakeTurn(Slot& slot) {
  // Who waits for the turn must not be waited for.
  LetGo(slot);
  const auto wait = [&] {
    Raise(slot);
    std::this_thread::yield();
  };
  while (!exclusive_.try_lock()) wait();
  slots_.ForEach([&](const Slot& other) {
    while (other.held_up.load(std::memory_order_seq_cst)) wait();
  });
}

void Versions::StopWriters(Slot& slot) {
  slot.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
  const Version barrier = Draw();
  barrier_.store(barrier, std::memory_order_seq_cst);
  slots_.ForEach([&](const Slot& other) {
    if (&other == &slot) return;
    while (other.write_floor.load(std::memory_order_seq_cst) <= barrier) std::this_thread::yield();
  });
}

void Versions::ResumeWriters(Slot& slot) {
  slot.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
}

Version Versions::LowestReadFloor() const {
  Version lowest = Slot::kIdle;
  slots_.ForEach([&](const Slot& slot) {
    lowest = std::min(lowest, slot.read_floor.load(std::memory_order_seq_cst));
  });
  return lowest;
}

uint64_t Versions::LowestEpoch() const {
  uint64_t lowest = Slot::kIdle;
  slots_.ForEach([&](const Slot& slot) {
    lowest = std::min(lowest, slot.epoch.load(std::memory_order_seq_cst));
  });
  return lowest;
}

}  // namespace skep::btree

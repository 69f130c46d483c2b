#include "btree/versions.h"

#include <algorithm>
#include <thread>

namespace skep::btree {

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

void Versions::BeginOperation(Slot& slot) {
  Raise(slot);
  ReadPhase(slot);
}

void Versions::BeginPoint(Slot& slot) {
  RaiseInTime(slot);
  ReadPhase(slot);
}

void Versions::ReadPhase(Slot& slot) {
  slot.phase = phase_.load(std::memory_order_seq_cst);
  while (slot.phase % 2 != 0) {
    std::this_thread::yield();
    Raise(slot);
    slot.phase = phase_.load(std::memory_order_seq_cst);
  }
}

void Versions::StopWriters(Slot& slot) {
  // Who waits for the turn must not be waited for.
  while (!exclusive_.try_lock()) {
    Raise(slot);
    std::this_thread::yield();
  }
  slot.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
  const Version barrier = Draw();
  slots_.ForEach([&](const Slot& other) {
    if (&other == &slot) return;
    while (other.write_floor.load(std::memory_order_seq_cst) <= barrier) std::this_thread::yield();
  });
}

void Versions::ResumeWriters(Slot& slot) {
  slot.phase = phase_.fetch_add(1, std::memory_order_seq_cst) + 1;
  exclusive_.unlock();
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

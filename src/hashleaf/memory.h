// memory.h: the memory of tables and sorted runs: an arena that several threads share.
#pragma once

#include <cstddef>
#include <utility>

#include "base/arena.h"
#include "base/mutex.h"

namespace skep::hashleaf {

// Thread-safe. Allocations are a few KiB or more, so a lock for each costs nothing.
class Memory {
 public:
  explicit Memory(MemoryBudget& budget) : arena_({.budget = &budget}) {}
  ~Memory() { arena_.Flush(cache_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Returns uninitialised memory; no address if the limit or the system refuses.
  ArenaAddress Allocate(size_t bytes, Arena::Limit limit) {
    const MutexLock lock(mutex_);
    return arena_.Allocate(cache_, bytes, limit);
  }
  void Free(ArenaAddress at, size_t bytes) {
    const MutexLock lock(mutex_);
    arena_.Free(cache_, at, bytes);
  }
  std::byte* At(ArenaAddress at) const { return arena_.At(at); }
  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }

 private:
  Arena arena_;
  Mutex mutex_;
  Arena::Cache cache_ SKEP_GUARDED_BY(mutex_);
};

// A block of the memory, or none. Owner: one thread at a time.
class Block {
 public:
  explicit Block(Memory& memory) : memory_(&memory) {}
  Block(Block&& other) noexcept
      : memory_(other.memory_),
        at_(std::exchange(other.at_, {})),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block() { Drop(); }

  // Replaces the block, whose bytes are lost. Returns false, and changes nothing, if there is no
  // memory.
  bool Allocate(size_t bytes, Arena::Limit limit) {
    const ArenaAddress at = memory_->Allocate(bytes, limit);
    if (!at) return false;
    Drop();
    at_ = at;
    bytes_ = bytes;
    return true;
  }
  void Drop() {
    if (at_) memory_->Free(at_, bytes_);
    at_ = {};
    bytes_ = 0;
  }
  std::byte* data() const { return at_ ? memory_->At(at_) : nullptr; }
  size_t bytes() const { return bytes_; }
  Memory& memory() const { return *memory_; }

 private:
  Memory* memory_;
  ArenaAddress at_;
  size_t bytes_ = 0;
};

}  // namespace skep::hashleaf

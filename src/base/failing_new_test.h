// failing_new_test.h: an operator new that fails when it is told to. One file of a test's binary
// includes it, and it is the operator new of that binary.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace skep {

class FailingNew {
 public:
  // The n-th allocation of this thread from now on fails, once; 0: none does.
  static void FailAt(uint64_t n) {
    own_left_ = n;
    has_failed_ = false;
  }
  // Whether that allocation has failed.
  static bool has_failed() { return has_failed_; }

  // The n-th allocation of all other threads together fails, once; 0: none does.
  static void FailInOthersAt(uint64_t n) {
    is_exempt_ = true;
    others_left_.store(n);
    others_failed_.store(false);
  }
  static bool has_failed_in_others() { return others_failed_.load(); }

  // Returns how many allocations this thread has asked for.
  static uint64_t allocations() { return allocations_; }

  // Returns null if the allocation is to fail.
  static void* Allocate(size_t bytes, size_t alignment) {
    ++allocations_;
    if (own_left_ != 0 && --own_left_ == 0) {
      has_failed_ = true;
      return nullptr;
    }
    if (!is_exempt_ && others_left_.load(std::memory_order_relaxed) != 0 && IsOthersTurn()) {
      others_failed_.store(true);
      return nullptr;
    }
    const size_t whole = (bytes + alignment - 1) / alignment * alignment;
    return alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                  : std::aligned_alloc(alignment, whole);
  }

 private:
  static bool IsOthersTurn() {
    uint64_t left = others_left_.load();
    while (left != 0 && !others_left_.compare_exchange_weak(left, left - 1)) {
    }
    return left == 1;
  }

  static inline thread_local uint64_t own_left_ = 0;
  static inline thread_local uint64_t allocations_ = 0;
  static inline thread_local bool has_failed_ = false;
  static inline thread_local bool is_exempt_ = false;
  static inline std::atomic<uint64_t> others_left_{0};
  static inline std::atomic<bool> others_failed_{false};
};

}  // namespace skep

// GCC 12 takes the pairs of new and delete for mismatched where it inlines them.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t bytes) {
  void* const at = skep::FailingNew::Allocate(bytes, alignof(std::max_align_t));
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const at = skep::FailingNew::Allocate(bytes, static_cast<size_t>(alignment));
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return skep::FailingNew::Allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { std::free(at); }

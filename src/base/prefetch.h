// prefetch.h: asking for a cache line ahead of its use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace skep {

// Starts fetching the line of `at`, which may be any address: nothing waits, nothing faults.
inline void FetchLine(const void* at) {
  __builtin_prefetch(at);
  // GCC takes a function that only prefetches for one without effect and drops calls of it.
  asm volatile("" : : "r"(at));
}

// Of all bytes of [begin, end).
inline void FetchLines(const void* begin, const void* end) {
  constexpr uintptr_t kLineBytes = 64;
  const auto last = reinterpret_cast<uintptr_t>(end);
  auto at = reinterpret_cast<uintptr_t>(begin) / kLineBytes * kLineBytes;
  for (; at < last; at += kLineBytes) FetchLine(reinterpret_cast<const void*>(at));
}

// Lines to fetch in one go. Where translations miss too, a prefetch is not done with before its own
// is there: between other instructions it stops the core much as a load would; one right after the
// other, dozens overlap.
template <size_t kMax>
class FetchList {
 public:
  // Fetches what is there once kMax are.
  void Add(const void* at) {
    lines_[count_++] = at;
    if (count_ == kMax) Fetch();
  }
  // The same if it is wanted. Without a branch for that.
  void AddIf(bool wanted, const void* at) {
    lines_[count_] = at;
    count_ += wanted ? 1 : 0;
    if (count_ == kMax) Fetch();
  }
  // Starts fetching them, and forgets them.
  void Fetch() {
    for (size_t i = 0; i < count_; ++i) FetchLine(lines_[i]);
    count_ = 0;
  }

 private:
  size_t count_ = 0;
  std::array<const void*, kMax> lines_;
};

}  // namespace skep

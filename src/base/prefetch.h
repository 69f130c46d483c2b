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

// Starts fetching all lines of [begin, end).
inline void FetchLines(const void* begin, const void* end) {
  constexpr uintptr_t kLineBytes = 64;
  const auto last = reinterpret_cast<uintptr_t>(end);
  auto at = reinterpret_cast<uintptr_t>(begin) / kLineBytes * kLineBytes;
  for (; at < last; at += kLineBytes) FetchLine(reinterpret_cast<const void*>(at));
}

// A list of lines to fetch in one go. A prefetch whose address translation misses the TLB occupies
// the core until the translation is there: between other instructions it costs nearly what a load
// would; one right after the other, dozens overlap.
template <size_t kMax>
class FetchList {
 public:
  // Adds a line; fetches all of the list once it has kMax.
  void Add(const void* at) {
    lines_[count_++] = at;
    if (count_ == kMax) Fetch();
  }
  // Adds a line if it is wanted, without a branch.
  void AddIf(bool wanted, const void* at) {
    lines_[count_] = at;
    count_ += wanted ? 1 : 0;
    if (count_ == kMax) Fetch();
  }
  // Starts fetching the lines of the list, and empties it.
  void Fetch() {
    for (size_t i = 0; i < count_; ++i) FetchLine(lines_[i]);
    count_ = 0;
  }

 private:
  size_t count_ = 0;
  std::array<const void*, kMax> lines_;
};

}  // namespace skep

// prefetch.h: asking for a cache line ahead of its use.
#pragma once

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

}  // namespace skep

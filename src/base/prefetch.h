// prefetch.h: asking for a cache line ahead of its use.
#pragma once

namespace skep {

// Starts fetching the line of `at`, which may be any address: nothing waits, nothing faults.
inline void FetchLine(const void* at) {
  __builtin_prefetch(at);
  // GCC takes a function that only prefetches for one without effect and drops calls of it.
  asm volatile("" : : "r"(at));
}

}  // namespace skep

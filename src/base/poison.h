// poison.h: tells AddressSanitizer which memory of our own allocators must not be touched. Does
// nothing in builds without it. Addresses and sizes are multiples of 8.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SKEP_HAS_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SKEP_HAS_POISON 1
#endif
#endif

#ifdef SKEP_HAS_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace skep {

#ifdef SKEP_HAS_POISON
inline constexpr bool kPoisons = true;
inline void Poison(const void* at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void Unpoison(const void* at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
inline bool IsPoisoned(const void* at) { return __asan_address_is_poisoned(at) != 0; }
#else
inline constexpr bool kPoisons = false;
inline void Poison(const void*, size_t) {}
inline void Unpoison(const void*, size_t) {}
inline bool IsPoisoned(const void*) { return false; }
#endif

}  // namespace skep

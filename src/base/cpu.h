// cpu.h: which cores this process may use, and staying on one of them.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace skep {

// The cores the calling thread may run on, ascending: never empty. A container's or taskset's
// choice is respected.
std::vector<int> AllowedCores();

// What the processor calls itself ("model name" of /proc/cpuinfo); "unknown" if it does not say.
std::string CpuModel();

#if defined(__x86_64__)
// Whether the processor has AVX-512 with instructions for 8- and 16-bit lanes, and the permutation
// of bytes. Code for it is assembly: a function compiled for it is not inlined into one that is
// not. Not used under AddressSanitizer, which does not see what assembly reads: so its tests check
// the other way, too.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUsesAvx512 = false;
inline constexpr bool kUsesAvx512Vbmi = false;
#else
inline const bool kUsesAvx512 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}();
inline const bool kUsesAvx512Vbmi = kUsesAvx512 && __builtin_cpu_supports("avx512vbmi");
#endif
#endif

// For a thread that looks again and again: leaves the core to its twin for a moment.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Lets the other threads go before the calling one, for good: it gets about a tenth of a core that
// one of them wants, too.
void LowerPriority();

// Where the thread that makes it may run, for a thread that is begun by another one: it would
// inherit that one's core, if that one is pinned.
class Affinity {
 public:
  Affinity() : is_known_(sched_getaffinity(0, sizeof(cores_), &cores_) == 0) {}
  bool is_known() const { return is_known_; }
  // From now on the calling thread may run there. A wish.
  void Take() const {
    if (is_known_) sched_setaffinity(0, sizeof(cores_), &cores_);
  }

 private:
  cpu_set_t cores_;
  bool is_known_;
};

// Keeps the calling thread on one core until it is destroyed, on the same thread; then the thread
// may run where it could before. pinned() is false if the system refused: nothing has changed then.
class ScopedPin {
 public:
  explicit ScopedPin(int core);
  ~ScopedPin();
  ScopedPin(const ScopedPin&) = delete;
  ScopedPin& operator=(const ScopedPin&) = delete;

  bool pinned() const { return pinned_; }

 private:
  const Affinity before_;
  bool pinned_ = false;
};

}  // namespace skep

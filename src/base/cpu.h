// cpu.h: which cores this process may use, and staying on one of them.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace skep {

// Returns the cores the calling thread may run on, ascending: never empty. Respects the choice of a
// container or of taskset.
std::vector<int> AllowedCores();

// Returns what the processor calls itself ("model name" of /proc/cpuinfo); "unknown" if it does not
// say.
std::string CpuModel();

#if defined(__x86_64__)
// Whether the processor has AVX-512 with instructions for 8- and 16-bit lanes, and the permutation
// of bytes. Code for it is written as assembly, because a function compiled for AVX-512 is not
// inlined into one that is not. AddressSanitizer does not see what assembly reads, so builds with
// it use the portable code, which is tested there.
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

// Leaves the core to its other hardware thread for a moment: for loops that wait for a change in
// memory.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Lowers the priority of the calling thread for good: where another thread wants the same core, it
// gets about a tenth of it.
void LowerPriority();

// The cores on which the thread that makes this object may run, for a thread that another thread
// will begin: a new thread inherits the cores of the one that begins it, which may be pinned.
class Affinity {
 public:
  Affinity() : is_known_(sched_getaffinity(0, sizeof(cores_), &cores_) == 0) {}
  bool is_known() const { return is_known_; }
  // Lets the calling thread run on these cores from now on. If the system refuses, nothing changes.
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

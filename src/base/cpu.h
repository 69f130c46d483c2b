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

// For a thread that looks again and again: leaves the core to its twin for a moment.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
  cpu_set_t before_;
  bool pinned_ = false;
};

}  // namespace skep

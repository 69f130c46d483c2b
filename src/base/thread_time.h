// thread_time.h: how long a thread has run.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <thread>

namespace skep {

// The processor time of a thread that is not joined, in nanoseconds; 0 if the system does not tell.
inline uint64_t CpuNsOf(std::thread& thread) {
  clockid_t clock;
  timespec time = {};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return 0;
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace skep

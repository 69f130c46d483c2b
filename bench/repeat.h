// repeat.h: repeats a measurement and takes the median.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace skep::bench {

// Makes the compiler believe that the value is used, and that memory may have changed.
template <typename T>
inline void Keep(const T& value) {
  asm volatile("" : : "r"(value) : "memory");
}

// Returns the middle of a set of figures (the upper one of two), which must not be empty.
inline double Median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle;
}

// Returns the median time, in seconds, that body(repetition) takes over `repetitions` (> 0) runs.
template <typename Body>
double MedianSeconds(int repetitions, Body body) {
  std::vector<double> seconds;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const uint64_t begin_ns = SystemClock().MonotonicNs();
    body(repetition);
    seconds.push_back(static_cast<double>(SystemClock().MonotonicNs() - begin_ns) * 1e-9);
  }
  return Median(std::move(seconds));
}

}  // namespace skep::bench

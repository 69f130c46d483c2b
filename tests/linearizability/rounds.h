// rounds.h: how long tests with real threads run.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>

namespace skep::linearizability {

// Calls `round` with 0, 1, ..., at least `rounds_min` times, and until SKEP_LINEARIZABILITY_SECONDS
// (of the environment) have passed. Stops at a fatal failure.
inline void ForRounds(uint64_t rounds_min, const std::function<void(uint64_t)>& round) {
  const char* const text = std::getenv("SKEP_LINEARIZABILITY_SECONDS");
  const std::chrono::duration<double> wanted(text == nullptr ? 0 : std::atof(text));
  const auto end = std::chrono::steady_clock::now() + wanted;
  for (uint64_t i = 0; i < rounds_min || std::chrono::steady_clock::now() < end; ++i) {
    round(i);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace skep::linearizability

// sim_coordinator_world_test.h: for tests: a simulated coordination service, and time for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/random.h"
#include "sim/sim_clock.h"
#include "sim/sim_coordinator.h"
#include "sim/trace.h"

namespace skep {

// A service and its clients, in steps of a few milliseconds, with everything going wrong.
class SimCoordinatorWorld {
 public:
  explicit SimCoordinatorWorld(uint64_t seed, const SimCoordinatorOptions& options)
      : random(seed), service(random.Next(), clock, trace, options) {}

  // Lets up to 5 ms pass.
  void Pass() {
    const uint64_t end_ns = clock.MonotonicNs() + 1 + random.Below(5'000'000);
    while (clock.NextReminder().value_or(UINT64_MAX) <= end_ns) clock.AdvanceToReminder();
    clock.Advance(end_ns - clock.MonotonicNs());
  }
  uint64_t Now() { return clock.MonotonicNs(); }
  std::unique_ptr<CoordinatorSession> Open(uint32_t timeout_ms) {
    return *service.Open({.timeout_ms = timeout_ms});
  }
  // A session that is connected.
  std::unique_ptr<CoordinatorSession> Connect(uint32_t timeout_ms) {
    auto session = Open(timeout_ms);
    while (session->state() != CoordinatorSession::State::kConnected) {
      Pass();
      session->TakeEvents();
    }
    return session;
  }
  // The answer to a request that was made; whatever comes before it is dropped.
  CoordinatorEvent Await(CoordinatorSession& session, uint64_t token) {
    for (int passes = 0; passes < 100'000; ++passes) {
      for (const CoordinatorEvent& event : session.TakeEvents()) {
        if (event.kind == CoordinatorEvent::Kind::kAnswer && event.token == token) return event;
      }
      Pass();
    }
    ADD_FAILURE() << "no answer";
    return {};
  }

  SimClock clock;
  Trace trace;
  SeededRandom random;
  SimCoordinator service;
};

}  // namespace skep

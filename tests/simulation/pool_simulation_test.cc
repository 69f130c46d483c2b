// The pool's own servers and clients over the simulated fabric, in histories that a seed gives.
#include <gtest/gtest.h>

#include <iostream>

#include "sim/seeds.h"
#include "tests/linearizability/checker.h"
#include "tests/simulation/pool_history.h"

namespace skep::simulation {
namespace {

// Goal: every history of a pool is linearizable, whatever happens to servers, connections and
// clients, and all clients end in time.
TEST(PoolSimulation, HistoriesAreLinearizable) {
  PoolTally tally;
  for (const uint64_t seed : Seeds(2000)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    const PoolHistory history = RunPoolHistory(seed, {}, tally);
    ASSERT_TRUE(history.has_ended);
    const auto result = linearizability::CheckLinearizable(history.operations);
    ASSERT_TRUE(result.ok()) << result.explanation;
  }
  const auto& c = tally.clients;
  std::cout << "operations " << tally.operations << " unknown " << tally.unknown << " refused "
            << tally.refused << " cuts " << tally.cuts << " kills " << tally.kills << " deposed "
            << tally.deposed << " pauses " << tally.long_pauses << " rounds " << c.rounds
            << " calls " << c.calls << " joins " << c.joins << " hits " << c.cache_hits
            << " redirected " << c.retries_redirected << " torn " << c.retries_torn << " late "
            << c.retries_late << " lost " << c.retries_lost << " contended " << c.retries_contended
            << " finds " << c.finds << "\n";
}

// Goal: a seed is a history, to the byte.
TEST(PoolSimulation, EqualSeedsAreEqualRuns) {
  PoolTally tally;
  for (const uint64_t seed : Seeds(20)) {
    const uint64_t hash = RunPoolHistory(seed, {}, tally).trace_hash;
    EXPECT_EQ(RunPoolHistory(seed, {}, tally).trace_hash, hash) << "SKEP_SIM_SEED=" << seed;
  }
}

}  // namespace
}  // namespace skep::simulation

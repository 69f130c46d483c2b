// The pool's own servers and clients over the simulated fabric, in histories that a seed gives: the
// right protocol, and ones with a rule left out.
#include <gtest/gtest.h>

#include <string>

#include "sim/seeds.h"
#include "tests/linearizability/checker.h"
#include "tests/simulation/pool_history.h"
#include "tests/simulation/pool_variants.h"

namespace skep::simulation {
namespace {

using linearizability::Answer;
using linearizability::CheckLinearizable;

// Goal: every history of a pool is linearizable, whatever happens to servers, connections and
// clients, and all clients end in time. And a run of a thousand has seen all that can happen.
TEST(PoolSimulation, HistoriesAreLinearizable) {
  PoolTally tally;
  const SeedRange seeds = Seeds(1000);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    const PoolHistory history = RunPoolHistory(seed, {}, tally);
    ASSERT_TRUE(history.has_ended);
    const auto result = CheckLinearizable(history.operations);
    ASSERT_TRUE(result.ok()) << result.explanation;
  }
  if (seeds.size() < 500) return;
  const pool::ClientStatistics& clients = tally.clients;
  for (const uint64_t count :
       {tally.unknown, tally.refused, tally.cuts, tally.kills, tally.deposed, tally.long_pauses,
        clients.cache_hits, clients.retries_redirected, clients.retries_late, clients.retries_lost,
        clients.retries_contended, clients.finds}) {
    EXPECT_GT(count, 0u);
  }
}

// Goal: a seed is a history, to the byte.
TEST(PoolSimulation, EqualSeedsAreEqualRuns) {
  PoolTally tally;
  for (const uint64_t seed : Seeds(50)) {
    const uint64_t hash = RunPoolHistory(seed, {}, tally).trace_hash;
    EXPECT_EQ(RunPoolHistory(seed, {}, tally).trace_hash, hash) << "SKEP_SIM_SEED=" << seed;
  }
}

class FaultyPool : public testing::TestWithParam<NamedVariant> {};

// Goal: the simulation finds what each rule is for: without it, one of kSeedsMax histories is not
// linearizable. Each is found in less than a hundred on average, so that by chance a run in 10^8
// finds none.
TEST_P(FaultyPool, IsFound) {
  constexpr uint64_t kSeedsMax = 2000;
  PoolTally tally;
  const uint64_t first = Seeds(1).front();
  for (uint64_t seed = first; seed < first + kSeedsMax; ++seed) {
    const PoolHistory history = RunPoolHistory(seed, GetParam().variant, tally);
    if (CheckLinearizable(history.operations).answer == Answer::kNotLinearizable) return;
  }
  FAIL() << "no history of " << kSeedsMax << " from " << first << " on shows it";
}

INSTANTIATE_TEST_SUITE_P(All, FaultyPool, testing::ValuesIn(FaultyVariants()),
                         [](const auto& variant) { return variant.param.name; });

}  // namespace
}  // namespace skep::simulation

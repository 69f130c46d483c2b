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

class SoundPool : public testing::TestWithParam<NamedVariant> {};

// Goal: every history of a pool is linearizable, whatever happens to servers, connections and
// clients; all clients end in time, and in the end the pool answers. And some hundred histories
// have seen all that can happen.
TEST_P(SoundPool, HistoriesAreLinearizable) {
  PoolTally tally;
  const SeedRange seeds = Seeds(500);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    const PoolHistory history = RunPoolHistory(seed, GetParam().variant, tally);
    ASSERT_TRUE(history.has_ended);
    const auto result = CheckLinearizable(history.operations);
    ASSERT_TRUE(result.ok()) << result.explanation;
  }
  const pool::ClientStatistics& clients = tally.clients;
  if (GetParam().variant.kind != PoolPlan::Kind::kAny || seeds.size() < 400) return;
  for (const uint64_t count :
       {tally.unknown, tally.refused, tally.cuts, tally.kills, tally.deposed, tally.long_pauses,
        clients.cache_hits, clients.retries_redirected, clients.retries_late, clients.retries_lost,
        clients.retries_contended, clients.finds}) {
    EXPECT_GT(count, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SoundPool, testing::ValuesIn(SoundVariants()),
                         [](const auto& variant) { return variant.param.name; });

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

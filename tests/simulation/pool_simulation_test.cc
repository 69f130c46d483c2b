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

// Every history of these seeds is linearizable, whatever happens to servers, connections and
// clients; all clients end in time, and in the end the pool answers.
void ExpectLinearizable(PoolPlan::Kind kind, const SeedRange& seeds, PoolTally& tally) {
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    const PoolHistory history = RunPoolHistory(seed, {.kind = kind}, tally);
    ASSERT_TRUE(history.has_ended);
    const auto result = CheckLinearizable(history.operations);
    ASSERT_TRUE(result.ok()) << result.explanation;
  }
}

void ExpectLinearizable(PoolPlan::Kind kind, uint64_t seeds) {
  PoolTally tally;
  ExpectLinearizable(kind, Seeds(seeds), tally);
}

// Goal: the protocol is right; and some hundred histories have seen all that can happen.
TEST(PoolSimulation, AnyHistory) {
  PoolTally tally;
  constexpr uint64_t kSeeds = 250;
  const SeedRange seeds = Seeds(kSeeds);
  ExpectLinearizable(PoolPlan::Kind::kAny, seeds, tally);
  if (seeds.size() < kSeeds) return;
  const pool::ClientStatistics& clients = tally.clients;
  for (const uint64_t count :
       {tally.unknown, tally.refused, tally.cuts, tally.kills, tally.deposed, tally.long_pauses,
        clients.cache_hits, clients.retries_redirected, clients.retries_late, clients.retries_lost,
        clients.retries_contended, clients.finds}) {
    EXPECT_GT(count, 0u);
  }
}

// Goal: a GET finds what a scan has shown before, and a scan what a GET has found (H1).
TEST(PoolSimulation, ScansWhileServersStall) { ExpectLinearizable(PoolPlan::Kind::kScans, 150); }

// Goal: nothing that was acknowledged is lost when another server takes over, and nothing old is
// read at the server before (H5, H6, H10). Without the one or the other, one history of 200 to 300
// shows it.
TEST(PoolSimulation, ADeposedHashServer) { ExpectLinearizable(PoolPlan::Kind::kDeposed, 700); }

// Goal: a write whose reply was lost is done once (H4).
TEST(PoolSimulation, LostReplies) { ExpectLinearizable(PoolPlan::Kind::kLostReplies, 150); }

// Goal: nobody reads, and no late write reaches, what is another's by now (H2, H3, H11).
TEST(PoolSimulation, ChunksThatAreUsedAgain) {
  ExpectLinearizable(PoolPlan::Kind::kUsedAgain, 100);
}

// Goal: the same while cleaners move items from chunk to chunk: no move changes a value, undoes a
// write or lets a reader see what is another's. Histories have met moves.
TEST(PoolSimulation, WhileChunksAreCleaned) {
  PoolTally tally;
  constexpr uint64_t kSeeds = 40;
  const SeedRange seeds = Seeds(kSeeds);
  ExpectLinearizable(PoolPlan::Kind::kCleaned, seeds, tally);
  if (seeds.size() < kSeeds) return;
  EXPECT_GT(tally.items_moved, kSeeds);
  EXPECT_GT(tally.chunks_cleaned, kSeeds);
  EXPECT_GT(tally.clients.retries_contended, 0u);
}

// Goal: the death of a memory server loses nothing, nor does that of the next one, once there are
// copies of what the first one had.
TEST(PoolSimulation, MemoryServersDie) {
  PoolTally tally;
  constexpr uint64_t kSeeds = 200;
  const SeedRange seeds = Seeds(kSeeds);
  ExpectLinearizable(PoolPlan::Kind::kMemoryLoss, seeds, tally);
  if (seeds.size() < kSeeds) return;
  EXPECT_GT(tally.memory_losses, kSeeds * 9 / 8) << "the second one has died in some of them";
  EXPECT_GT(tally.chunks_copied, kSeeds / 8);
}

// Goal: nothing is lost of a pool of a hundred memory servers, of which those that have the most
// chunks die one after the other, others are drained, and new ones come; an index server may die,
// too.
TEST(PoolSimulation, AHundredMemoryServers) {
  PoolTally tally;
  constexpr uint64_t kSeeds = 20;
  const SeedRange seeds = Seeds(kSeeds);
  ExpectLinearizable(PoolPlan::Kind::kHundred, seeds, tally);
  if (seeds.size() < kSeeds) return;
  EXPECT_GT(tally.memory_losses, kSeeds);
  EXPECT_GT(tally.memory_drains, kSeeds / 4);
  EXPECT_GT(tally.chunks_copied, 0u);
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

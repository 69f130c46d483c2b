// Judges histories of real threads on a store in this process by the checker.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <random>

#include "engine/testing/padded_engine.h"
#include "keyspace/factory.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/faulty_client.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/play_round.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/store_client.h"
#include "tests/linearizability/store_for_tests.h"
#include "tests/linearizability/supported_client.h"
#include "tests/linearizability/tree_probe.h"

namespace skep::linearizability {
namespace {

class StoreHistories : public testing::TestWithParam<const Variant*> {
 protected:
  std::unique_ptr<Store> NewStore() const {
    if (is_of_small_pairs()) return StoreForTests::Of(NewHashleaf());
    return std::move(*Store::Open({.engine = GetParam()->engine,
                                   .snapshot_age_ms_max = kSnapshotAgeMsMax,
                                   .btree = GetParam()->btree}));
  }

  bool is_of_small_pairs() const { return std::string_view(GetParam()->engine) == "hashleaf"; }
  // The leaves are so small that they split after some hundred pairs.
  static std::unique_ptr<Engine> NewHashleaf() {
    static MemoryBudget budget;
    EngineOptions options{.budget = &budget, .snapshot_age_ms_max = kSnapshotAgeMsMax};
    options.index.hashleaf = {
        .key_bytes = PaddedEngine::kBytes, .value_bytes = PaddedEngine::kBytes, .leaf_bytes = 4096};
    return std::make_unique<PaddedEngine>(FindEngine("hashleaf")->make(options));
  }

  // Plays one round on a new store, and checks the store afterwards.
  void RunRound(uint64_t seed, const RoundShape& shape);

  TreeTally tally_;
  HistoryTally history_tally_;
};

void StoreHistories::RunRound(uint64_t seed, const RoundShape& shape) {
  const auto store = NewStore();
  Engine& engine = StoreForTests::EngineOf(*store);
  TreeProbe probe(engine, tally_, shape.hold_up_one_in);
  const PlayedRound round = PlayRound(seed, shape, [&] {
    return std::make_unique<SupportedClient>(std::make_unique<StoreClient>(*store, engine),
                                             engine.traits());
  });
  history_tally_.Add(round.history);
  const CheckResult result = CheckLinearizable(round.history, round.check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  ASSERT_STREQ(engine.Verify(), nullptr);
  probe.Note();
}

// Goal: the answers of the store to threads that meet on few keys are linearizable, however the
// tree changes around them; and afterwards the tree is sound.
// Method: many short rounds, each on a new store, so that the threads start together often; two to
// four threads; few keys or some twenty, keys and values short and long, with and without keys of
// other writers around and between them (round_shape.h, padded_client.h, noise.h); in every other
// round threads are held up where they may meet (tree_probe.h). A failure prints the seed and the
// operations that no order explains. The test also checks that the trees changed in every way.
TEST_P(StoreHistories, AreLinearizable) {
  constexpr uint64_t kRoundsMin = 60;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  uint64_t rounds = 0;
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.quiet_ticks = !GetParam()->is_time_one;
    if (is_of_small_pairs()) {
      shape.pads_keys = false;
      shape.mix.value_bytes = {0};
    }
    RunRound(seed + round, shape);
    ++rounds;
  });
  if (HasFatalFailure()) return;
  std::cout << history_tally_ << "\n";
  EXPECT_GT(history_tally_.unchanged, 0u);
  EXPECT_GT(history_tally_.changed, 0u);
  EXPECT_GT(history_tally_.held, 0u);
  EXPECT_GT(history_tally_.failed, 0u);
  EXPECT_GT(history_tally_.seen, 0u);
  EXPECT_GT(history_tally_.ticks, rounds);
  if (!is_of_small_pairs()) {
    EXPECT_GT(history_tally_.deadlines, rounds);
  }
  if (GetParam()->btree.multi_version) {
    EXPECT_GT(history_tally_.parts, 0u);
    EXPECT_GT(history_tally_.stopped, 0u);
  }
  if (!GetParam()->is_tree()) return;
  std::cout << rounds << " rounds: " << tally_ << "\n";
  EXPECT_GT(tally_.restructurings(), rounds);
  EXPECT_GT(tally_.range_deletes(), rounds / 4);
  EXPECT_GT(tally_.buffers(), 10 * rounds);
  EXPECT_GT(tally_.siblings(), 0u);
  EXPECT_EQ(tally_.height_min(), 1u);
  EXPECT_GT(tally_.height_max(), 1u);
  EXPECT_GT(tally_.leaves_max(), 5u);
}

// Goal: the test above would find a store that is wrong.
// Method: rounds on four keys through a client with one fault; some round must be caught, and soon.
TEST_P(StoreHistories, OfEachFaultAreCaught) {
  const EngineTraits traits = StoreForTests::EngineOf(*NewStore()).traits();
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  constexpr uint64_t kRoundsMax = 2000;
  for (const Fault fault : kFaults) {
    if (!Promises(traits, fault)) continue;
    uint64_t round = 0;
    Answer answer = Answer::kLinearizable;
    for (; round < kRoundsMax && answer == Answer::kLinearizable; ++round) {
      const auto store = NewStore();
      const Mix mix{.keys = 4, .ticks = 0};
      const History history = RunHistory(3, 100, seed + round, mix, [&](uint32_t) {
        return std::make_unique<FaultyClient>(
            std::make_unique<StoreClient>(*store, StoreForTests::EngineOf(*store)), fault);
      });
      answer = CheckLinearizable(history).answer;
    }
    EXPECT_EQ(answer, Answer::kNotLinearizable) << "fault " << static_cast<int>(fault);
    std::printf("fault %d: caught in round %llu\n", static_cast<int>(fault),
                static_cast<unsigned long long>(round));
  }
}

// Not tested over the wire, which would need clients that pad their keys.
constexpr Variant kHashleaf = {.name = "hashleaf", .engine = "hashleaf", .is_time_one = true};

std::vector<const Variant*> Variants() {
  std::vector<const Variant*> variants = {&kHashleaf};
  for (const Variant& variant : AllVariants()) variants.push_back(&variant);
  return variants;
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreHistories, testing::ValuesIn(Variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

}  // namespace
}  // namespace skep::linearizability

// Histories of real threads on a store in this process, judged by the checker.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "engine/factory.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/faulty_client.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/store_client.h"

namespace skep::linearizability {
namespace {

// What the engine declares to support, and the store's client can ask.
class SupportedClient final : public KvClient {
 public:
  SupportedClient(Store& store, const EngineTraits& traits) : inner_(store), traits_(traits) {}

  bool Supports(const Operation& operation) const override {
    if (operation.kind != Operation::Kind::kExecute && !traits_.snapshots) return false;
    if (operation.steps.size() > 1 && !traits_.atomic) return false;
    for (const Step& step : operation.steps) {
      if (IsRange(step.action) && !traits_.ordered) return false;
      if (step.action == Action::kCount && !traits_.snapshots) return false;
      if (step.action == Action::kScan && !traits_.snapshots) return false;
      if (step.action == Action::kAddDecimal && !traits_.functions) return false;
      if (step.action == Action::kRename && !traits_.atomic) return false;
    }
    return inner_.Supports(operation);
  }
  Reply Perform(Operation& operation) override { return inner_.Perform(operation); }

 private:
  StoreClient inner_;
  const EngineTraits& traits_;
};

class StoreHistories : public testing::TestWithParam<const EngineInfo*> {
 protected:
  StoreHistories() {
    MemoryBudget budget;
    traits_ = GetParam()->make({.budget = &budget})->traits();
  }

  std::unique_ptr<Store> NewStore() const {
    return std::move(*Store::Open({.engine = std::string(GetParam()->name)}));
  }

  EngineTraits traits_;
};

Mix MixOf(uint64_t round) {
  Mix mix{.keys = 2 + static_cast<uint32_t>(round % 3)};
  if (round % 4 == 3) mix = {.keys = 2, .ranges = 0, .batches = 0, .snapshots = 0};
  return mix;
}

// Goal: what the store answers to threads that meet on few keys is linearizable.
// Method: many short rounds, each on a new store, so that the threads start together often; two to
// four threads, points only or everything. A failure prints the seed and the operations that no
// order explains.
TEST_P(StoreHistories, AreLinearizable) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ForRounds(2000, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const auto store = NewStore();
    const History history =
        RunHistory(2 + static_cast<uint32_t>(round % 3), 40, seed + round, MixOf(round),
                   [&](uint32_t) { return std::make_unique<SupportedClient>(*store, traits_); });
    const CheckResult result = CheckLinearizable(history);
    ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  });
}

// Goal: the test above would see a store that is wrong.
// Method: the same rounds through a client with one fault; some round must be caught, and soon.
TEST_P(StoreHistories, OfEachFaultAreCaught) {
  if (!traits_.ordered || !traits_.atomic || !traits_.snapshots || !traits_.functions) {
    GTEST_SKIP() << "the faults are in what this engine does not have";
  }
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  constexpr uint64_t kRoundsMax = 2000;
  for (const Fault fault : kFaults) {
    uint64_t round = 0;
    Answer answer = Answer::kLinearizable;
    for (; round < kRoundsMax && answer == Answer::kLinearizable; ++round) {
      const auto store = NewStore();
      const History history = RunHistory(3, 100, seed + round, {.keys = 4}, [&](uint32_t) {
        return std::make_unique<FaultyClient>(std::make_unique<StoreClient>(*store), fault);
      });
      answer = CheckLinearizable(history).answer;
    }
    EXPECT_EQ(answer, Answer::kNotLinearizable) << "fault " << static_cast<int>(fault);
    std::printf("fault %d: caught in round %llu\n", static_cast<int>(fault),
                static_cast<unsigned long long>(round));
  }
}

std::vector<const EngineInfo*> Engines() {
  std::vector<const EngineInfo*> engines;
  for (const EngineInfo& info : AllEngines()) engines.push_back(&info);
  return engines;
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreHistories, testing::ValuesIn(Engines()),
                         [](const auto& engine) { return std::string(engine.param->name); });

}  // namespace
}  // namespace skep::linearizability

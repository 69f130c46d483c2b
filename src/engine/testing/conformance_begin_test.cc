// Tests that every engine must pass: batches that are begun, and finished later (Engine::Begin).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

class BeginConformance : public EngineConformance {
 protected:
  static constexpr int kBatches = 40;

  // A batch that is under way, until it is finished or this object is destroyed.
  struct UnderWay {
    explicit UnderWay(Batch::Kind kind) : batch(kind) {}
    Batch batch;
    BegunBatch begun;
  };
  using Many = std::vector<std::unique_ptr<UnderWay>>;

  // Begins an unordered batch, or an atomic one if the engine has such batches.
  UnderWay& AddBatch(Many& many) {
    const bool is_atomic = traits_.atomic && random_.Below(2) == 0;
    const auto kind = is_atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
    UnderWay& added = *many.emplace_back(std::make_unique<UnderWay>(kind));
    added.batch.set_now_ms(Subject::kStartMs);
    return added;
  }
  static void Put(Batch& batch, std::string_view key, std::string_view value, uint8_t flags = 0) {
    Scratch& bytes = batch.scratch();
    batch.Add({.op = Op::kPut,
               .flags = flags,
               .key = bytes.Copy(key),
               .value = bytes.Copy(value),
               .other = {}});
  }
  void Finish(UnderWay& one) { engine_.AwaitRelease(Engine::Finish(std::move(one.begun))); }
  void FinishInAnyOrder(Many& many) {
    std::vector<UnderWay*> order;
    for (const auto& one : many) order.push_back(one.get());
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    for (UnderWay* const one : order) Finish(*one);
  }
  // Reads by a batch that begins after all that were finished.
  std::string ValueOf(std::string_view key) {
    Batch get;
    get.set_now_ms(Subject::kStartMs);
    get.Get(key);
    engine_.AwaitRelease(engine_.Execute(get));
    return get.outcome(0).present ? std::string(get.outcome(0).value) : "none";
  }

  SeededRandom random_{PrintedSeed()};
};

// Goal: each batch has its own outcomes, in whatever order batches are finished, and their writes
// are visible then.
TEST_P(BeginConformance, BatchesAreFinishedInAnyOrder) {
  Many many;
  for (int i = 0; i < kBatches; ++i) {
    UnderWay& one = AddBatch(many);
    const std::string key = "key" + std::to_string(i);
    Put(one.batch, key, "value" + std::to_string(i));
    one.batch.Get(one.batch.scratch().Copy(key));
    one.batch.Get("absent");
    one.begun = engine_.Begin(one.batch);
  }
  FinishInAnyOrder(many);
  for (int i = 0; i < kBatches; ++i) {
    const Batch& batch = many[static_cast<size_t>(i)]->batch;
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    EXPECT_EQ(batch.outcome(1).value, "value" + std::to_string(i));
    EXPECT_EQ(batch.outcome(2).verdict, Verdict::kAbsent);
    EXPECT_EQ(ValueOf("key" + std::to_string(i)), "value" + std::to_string(i));
  }
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: operations on one key take effect in the order in which one thread has begun their batches,
// of whatever kind, though the batches are finished in another order.
// Method: each batch replaces a value and returns the one before it.
TEST_P(BeginConformance, OneKeyIsChangedInTheOrderOfBegin) {
  if (!GetParam().keeps_order)
    GTEST_SKIP() << "batches that are begun over datagrams may overtake each other";
  Many many;
  for (int i = 0; i < kBatches; ++i) {
    UnderWay& one = AddBatch(many);
    Put(one.batch, "other" + std::to_string(i), "x");
    Put(one.batch, "key", std::to_string(i), Request::kReturnPrevious);
    one.begun = engine_.Begin(one.batch);
  }
  FinishInAnyOrder(many);
  for (int i = 0; i < kBatches; ++i) {
    const Outcome& outcome = many[static_cast<size_t>(i)]->batch.outcome(1);
    EXPECT_EQ(outcome.verdict, Verdict::kDone);
    EXPECT_EQ(outcome.value, i == 0 ? "" : std::to_string(i - 1));
  }
  EXPECT_EQ(ValueOf("key"), std::to_string(kBatches - 1));
}

// Goal: a batch that is never finished is done or not, delays no other, and its Batch can be
// reused.
TEST_P(BeginConformance, NeverFinished) {
  Many many;
  for (int i = 0; i < kBatches; ++i) {
    UnderWay& one = AddBatch(many);
    Put(one.batch, "key" + std::to_string(i), "value");
    one.begun = engine_.Begin(one.batch);
    if (i % 3 == 0) continue;
    one.begun = {};
    if (i % 3 == 1) continue;
    one.batch.Clear();
    Put(one.batch, "again" + std::to_string(i), "value");
    one.begun = engine_.Begin(one.batch);
  }
  for (int i = 0; i < kBatches; ++i) {
    if (i % 3 == 1) continue;
    UnderWay& one = *many[static_cast<size_t>(i)];
    Finish(one);
    EXPECT_EQ(one.batch.outcome(0).verdict, Verdict::kDone);
    EXPECT_EQ(ValueOf(one.batch.requests()[0].key), "value");
  }
  for (int i = 0; i < kBatches; ++i) {
    const std::string value = ValueOf("key" + std::to_string(i));
    EXPECT_TRUE(value == "value" || (i % 3 != 0 && value == "none")) << value;
  }
  many.clear();
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: a batch may be finished by another thread; and a batch that is begun once another one is
// finished sees its effects, whichever thread began them.
TEST_P(BeginConformance, AnotherThreadFinishes) {
  for (int i = 0; i < kBatches / 4; ++i) {
    Many many;
    UnderWay& put = AddBatch(many);
    Put(put.batch, "key", std::to_string(i));
    put.begun = engine_.Begin(put.batch);
    std::jthread([&] { Finish(put); }).join();
    UnderWay& get = AddBatch(many);
    get.batch.Get("key");
    std::jthread([&] { get.begun = engine_.Begin(get.batch); }).join();
    Finish(get);
    EXPECT_EQ(get.batch.outcome(0).value, std::to_string(i));
  }
}

// Goal: a batch that is refused, as a whole or in a slot, says so when it is finished.
TEST_P(BeginConformance, RefusalsAreToldInTheEnd) {
  Batch nothing, ill_formed, condition;
  BegunBatch begun = engine_.Begin(nothing);
  ill_formed.BeginPart();
  ill_formed.Get("key");
  BegunBatch begun_ill_formed = engine_.Begin(ill_formed);
  condition.RequireAbsent("key");
  condition.Get("key");
  BegunBatch begun_condition = engine_.Begin(condition);
  Engine::Finish(std::move(begun_condition));
  EXPECT_EQ(condition.outcome(0).verdict, Verdict::kRefused);
  EXPECT_EQ(condition.outcome(1).verdict, Verdict::kAbsent);
  Engine::Finish(std::move(begun_ill_formed));
  EXPECT_EQ(ill_formed.outcome(0).status.code(), Code::kInvalidArgument);
  Engine::Finish(std::move(begun));
}

INSTANTIATE_TEST_SUITE_P(Engines, BeginConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

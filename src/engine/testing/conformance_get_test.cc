// Tests that every engine which is PlainGets must pass.
#include <random>

#include "base/random.h"
#include "engine/plain_gets.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

constexpr uint8_t kType = 200;

class GetConformance : public EngineConformance {
 protected:
  void SetUp() override {
    if (gets_ == nullptr) GTEST_SKIP() << traits_.name << " has no plain gets";
  }
  // Gets the key without a batch, and checks the answer, if there is one, against that of a batch.
  void Check(std::string_view key) {
    SCOPED_TRACE(testing::Message() << "key " << key);
    const Version released = engine_.gate().released();
    std::optional<std::string> value;
    const auto ticket = gets_->GetPlain(key, &value);
    const Outcome& out = subject_.RunOne({.op = Op::kGet, .key = key});
    if (!ticket) {
      ASSERT_FALSE(value.has_value());
      return;
    }
    ++answers_;
    ASSERT_EQ(value.has_value(), out.verdict == Verdict::kDone);
    ASSERT_EQ(value.value_or(""), out.value);
    ASSERT_EQ(out.deadline_ms, 0u);
    ASSERT_EQ(out.type, kPlainType);
    ASSERT_NE(out.verdict, Verdict::kRefused);
    // All writes so far are released, so whatever the get has seen is.
    ASSERT_LE(*ticket, released);
    ASSERT_GE(*ticket, out.version);
  }

  PlainGets* const gets_ = PlainGetsOf(engine_);
  uint64_t answers_ = 0;
};

// Goal: a get without a batch tells what a batch tells, whatever its key has.
// Method: keys are stored again and again, with short and long values, with and without deadlines
// that pass and types, and deleted; after each write that key and another one are asked for.
TEST_P(GetConformance, TellsWhatABatchTells) {
  const unsigned seed = PrintedSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr uint64_t kKeys = 200;
  const auto key_of = [&](uint64_t i) {
    const std::string key = std::to_string(1000 + i);
    return i % 10 == 0 ? Long(key) : key;
  };
  for (int step = 0; step < 3000; ++step) {
    const std::string key = key_of(random.Below(kKeys));
    const std::string text = std::to_string(random.Below(1'000'000));
    const std::string value = random.Chance(1, 8) ? Long(text) : text;
    Request write = {.op = Op::kPut, .key = key, .value = value, .other = {}};
    if (random.Chance(1, 4)) write = {.op = Op::kDelete, .key = key};
    if (write.op == Op::kPut && traits_.expiry && random.Chance(1, 4)) {
      write.deadline_ms = subject_.now_ms() + 1 + random.Below(3);
    }
    if (write.op == Op::kPut && traits_.types && random.Chance(1, 4)) write.type = kType;
    subject_.RunOne(write);
    ASSERT_NO_FATAL_FAILURE(Check(key));
    ASSERT_NO_FATAL_FAILURE(Check(key_of(random.Below(kKeys))));
    if (random.Chance(1, 10)) subject_.Pass(1);
    if (random.Chance(1, 50)) subject_.MaintainAll();
  }
  EXPECT_GT(answers_, 0u);
}

// Goal: a key that a batch would refuse is not answered.
TEST_P(GetConformance, LeavesWhatIsRefusedToBatches) {
  std::optional<std::string> value;
  EXPECT_FALSE(gets_->GetPlain(std::string(traits_.key_bytes_max + 1, 'k'), &value));
  if (traits_.key_bytes_min > 0) {
    EXPECT_FALSE(gets_->GetPlain(std::string(traits_.key_bytes_min - 1, 'k'), &value));
  }
  if (traits_.types) {
    subject_.RunOne({.op = Op::kPut, .type = kType, .key = "typed", .value = "v", .other = {}});
    EXPECT_FALSE(gets_->GetPlain("typed", &value));
  }
  EXPECT_FALSE(value.has_value());
}

// Goal: a key that is past its deadline is left to batches, which know what time it is, also if the
// engine still holds it.
TEST_P(GetConformance, LeavesDeadlinesToBatches) {
  SKEP_NEEDS(expiry);
  Put("key", "value", subject_.now_ms() + 1);
  std::optional<std::string> value;
  EXPECT_FALSE(gets_->GetPlain("key", &value));
  subject_.Pass(1);
  EXPECT_FALSE(gets_->GetPlain("key", &value));
  EXPECT_FALSE(value.has_value());
}

INSTANTIATE_TEST_SUITE_P(Engines, GetConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

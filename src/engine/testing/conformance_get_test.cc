// Tests that every engine which is PlainGets must pass.
#include <random>
#include <string>
#include <string_view>
#include <vector>

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

  // Gets the keys at once without a batch, and checks the answers against those of batches.
  void CheckMany(const std::vector<std::string>& keys) {
    const Version released = engine_.gate().released();
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<GetAnswer> answers(keys.size());
    Scratch values;
    ASSERT_LE(gets_->GetManyPlain(views, answers, values), released);
    for (size_t i = 0; i < keys.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "key " << keys[i] << ", " << i << " of " << keys.size());
      const GetAnswer& answer = answers[i];
      const Outcome& out = subject_.RunOne({.op = Op::kGet, .key = keys[i]});
      if (answer.verdict == Verdict::kPostponed) {
        ASSERT_EQ(answer.bytes, 0u);
        continue;
      }
      ++answers_;
      ASSERT_EQ(answer.verdict, out.verdict);
      ASSERT_EQ(answer.value(), out.value);
      ASSERT_EQ(out.deadline_ms, 0u);
      ASSERT_EQ(out.type, kPlainType);
    }
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

// Goal: gets of many keys without a batch tell what batches tell, whatever their keys have.
// Method: as above, with calls of up to some windows of keys, some of which come twice.
TEST_P(GetConformance, ManyTellWhatBatchesTell) {
  const unsigned seed = PrintedSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr uint64_t kKeys = 400;
  const auto key_of = [&](uint64_t i) {
    const std::string key = std::to_string(1000 + i);
    return i % 10 == 0 ? Long(key) : key;
  };
  for (int step = 0; step < 100; ++step) {
    for (uint64_t left = random.Below(40); left > 0; --left) {
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
    }
    std::vector<std::string> keys(random.Below(step % 10 == 0 ? 700 : 70));
    for (std::string& key : keys) key = key_of(random.Below(kKeys));
    ASSERT_NO_FATAL_FAILURE(CheckMany(keys));
    if (random.Chance(1, 3)) subject_.Pass(1);
    if (random.Chance(1, 10)) subject_.MaintainAll();
  }
  EXPECT_GT(answers_, 0u);
}

// Goal: of plain keys without deadlines nearly all are answered without a batch.
// Method: a tree with a directory, and a table, of many keys; and a few keys, for which a tree has
// no directory.
TEST_P(GetConformance, ManyLeaveFewPlainKeysToBatches) {
  for (const uint32_t count : {40u, 20'000u}) {
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < count; ++i) keys.push_back(std::to_string(1'000'000 + i * 7919));
    for (size_t begin = 0; begin < count; begin += 40) {
      Batch batch;
      for (size_t i = begin; i < begin + 40; ++i) batch.Put(keys[i], keys[i]);
      engine_.Execute(batch);
    }
    // Gets tell the engine that a directory would pay.
    for (size_t begin = 0; begin < count; begin += 40) {
      Batch batch;
      for (size_t i = begin; i < begin + 40; ++i) batch.Get(keys[i]);
      engine_.Execute(batch);
      while (engine_.Maintain(subject_.now_ms())) {
      }
    }
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<GetAnswer> answers(count);
    Scratch values;
    gets_->GetManyPlain(views, answers, values);
    uint32_t postponed = 0;
    for (size_t i = 0; i < count; ++i) {
      if (answers[i].verdict == Verdict::kPostponed) {
        ++postponed;
      } else {
        ASSERT_EQ(answers[i].value(), keys[i]);
      }
    }
    EXPECT_LE(postponed, count / 20);
  }
}

// Goal: values are copied as long as there is room for them, and no long one beyond it.
// Method: short values, which may be a few more than fit, and among them some that are longer than
// all the room.
TEST_P(GetConformance, CopiesWhatThereIsRoomFor) {
  constexpr size_t kRoom = 1000;
  constexpr size_t kShort = 8;
  const size_t long_bytes = std::min<size_t>(traits_.value_bytes_max, 100'000);
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    keys.push_back("key" + std::to_string(100 + i));
    const bool is_long = i % 50 == 10 && long_bytes > kRoom;
    const std::string value(is_long ? long_bytes : kShort, 'v');
    subject_.RunOne({.op = Op::kPut, .key = keys.back(), .value = value, .other = {}});
  }
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<GetAnswer> answers(keys.size());
  Scratch values;
  gets_->GetManyPlain(views, answers, {values, kRoom});
  EXPECT_LT(values.used(), 2 * kRoom);  // an engine may copy the short ones of a window at once
  size_t bytes = 0;
  for (const GetAnswer& answer : answers) {
    ASSERT_NE(answer.verdict, Verdict::kAbsent);
    if (answer.verdict != Verdict::kDone) continue;
    EXPECT_EQ(answer.value(), std::string(kShort, 'v'));
    bytes += answer.bytes;
  }
  EXPECT_LE(bytes, values.used());
  EXPECT_GT(bytes, kRoom / 2);
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
  const std::string long_key(traits_.key_bytes_max + 1, 'k');
  const std::string_view keys[] = {long_key, "typed"};
  GetAnswer answers[2];
  Scratch values;
  gets_->GetManyPlain(keys, answers, values);
  EXPECT_EQ(answers[0].verdict, Verdict::kPostponed);
  if (traits_.types) {
    EXPECT_EQ(answers[1].verdict, Verdict::kPostponed);
  }
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

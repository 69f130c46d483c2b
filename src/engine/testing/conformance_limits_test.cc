// Tests that every engine must pass: the limits of a batch's answers and work.
#include <string>

#include "engine/testing/conformance.h"
#include "skep/function.h"

namespace skep {
namespace {

class LimitsConformance : public EngineConformance {
 protected:
  static constexpr uint32_t kKeys = 20;

  void SetUp() override {
    Batch puts;
    for (uint32_t i = 0; i < kKeys; ++i) puts.Put(puts.scratch().Copy(Key(i)), value_);
    engine_.AwaitRelease(engine_.Execute(puts));
  }
  static std::string Key(uint32_t i) { return "key" + std::to_string(10 + i); }

  std::string ValueOf(uint32_t i) {
    const std::string key = Key(i);
    Batch get;
    get.Get(key);
    engine_.Execute(get);
    return std::string(get.outcome(0).value);
  }

  const std::string value_ = Long("value");
};

// Goal: the answers of a batch begin anew with each execution, while the bytes of its requests
// stay.
TEST_P(LimitsConformance, ABatchCanBeExecutedForEver) {
  Batch batch;
  const std::string_view key = batch.scratch().Copy(Key(3));
  batch.Get(key);
  batch.Get(batch.scratch().Copy(Key(4)));
  const size_t kept = batch.scratch().used();
  batch.set_answer_bytes_max(4 * value_.size());
  size_t answer_bytes = 0;
  for (int i = 0; i < 20; ++i) {
    engine_.Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone) << "execution " << i;
      ASSERT_EQ(batch.outcome(slot).value, value_);
    }
    if (i == 0) answer_bytes = batch.answer_bytes();
    EXPECT_EQ(batch.answer_bytes(), answer_bytes);
  }
  EXPECT_EQ(batch.scratch().used(), kept);
  EXPECT_EQ(key, Key(3));
}

// Goal: points are refused once the answers exceed their limit, which the refusal names; a refused
// point changes nothing.
TEST_P(LimitsConformance, AnswersHaveALimit) {
  if (value_.size() < kLongBytes) GTEST_SKIP() << "values are small";
  Batch batch;
  for (uint32_t i = 0; i < kKeys; ++i) {
    batch.Add({.op = Op::kPut,
               .flags = Request::kReturnPrevious,
               .key = batch.scratch().Copy(Key(i)),
               .value = "new",
               .other = {}});
  }
  const size_t limit = 5 * value_.size();
  batch.set_answer_bytes_max(limit);
  engine_.Execute(batch);
  uint32_t done = 0;
  for (uint32_t slot = 0; slot < kKeys; ++slot) {
    const Outcome& out = batch.outcome(slot);
    done += out.verdict == Verdict::kDone ? 1 : 0;
    if (out.verdict != Verdict::kDone) {
      ASSERT_EQ(out.verdict, Verdict::kRefused);
      EXPECT_EQ(out.status.code(), Code::kTooLarge);
      EXPECT_EQ(out.status.detail(), limit);
    }
    EXPECT_EQ(ValueOf(slot), out.verdict == Verdict::kDone ? "new" : value_);
  }
  EXPECT_GE(done, 5u);
  EXPECT_LE(done, 7u);
}

// Goal: scans of an atomic batch count as answers, and are refused beyond their limit, whether the
// batch writes or not.
TEST_P(LimitsConformance, ScansOfAnAtomicBatchHaveALimit) {
  SKEP_NEEDS(atomic);
  SKEP_NEEDS(ordered);
  for (const bool writes : {false, true}) {
    Batch batch(Batch::Kind::kAtomic);
    if (writes) batch.Delete(batch.scratch().Copy(Key(0)));
    const auto first = static_cast<uint32_t>(batch.size());
    for (int i = 0; i < 3; ++i) {
      batch.BeginPart();
      batch.Scan(Range::All());
    }
    batch.set_answer_bytes_max(kKeys * value_.size());
    engine_.AwaitRelease(engine_.Execute(batch));
    EXPECT_EQ(batch.outcome(first).verdict, Verdict::kDone);
    const Outcome& last = batch.outcome(first + 2);
    ASSERT_EQ(last.verdict, Verdict::kRefused);
    EXPECT_EQ(last.status.code(), Code::kTooLarge);
  }
}

// Goal: an atomic batch that exceeds its work limit is refused as a whole.
TEST_P(LimitsConformance, AnAtomicBatchIsRefusedBeyondItsWork) {
  SKEP_NEEDS(atomic);
  Batch batch(Batch::Kind::kAtomic);
  for (uint32_t i = 0; i < kKeys; ++i) {
    batch.CompareAndSet(batch.scratch().Copy(Key(i)), value_, "new");
  }
  const size_t limit = 5 * value_.size();
  batch.set_work_bytes_max(limit);
  engine_.AwaitRelease(engine_.Execute(batch));
  ASSERT_FALSE(batch.applied());
  uint32_t refused = 0;
  for (uint32_t slot = 0; slot < kKeys; ++slot) {
    const Outcome& out = batch.outcome(slot);
    EXPECT_EQ(ValueOf(slot), value_);
    if (out.verdict == Verdict::kAborted) continue;
    ++refused;
    ASSERT_EQ(out.verdict, Verdict::kRefused);
    EXPECT_EQ(out.status.code(), Code::kTooLarge);
    EXPECT_EQ(out.status.detail(), limit);
  }
  EXPECT_EQ(refused, 1u);
  batch.set_work_bytes_max(SIZE_MAX);
  engine_.AwaitRelease(engine_.Execute(batch));
  EXPECT_TRUE(batch.applied());
}

// Goal: functions, comparisons and copies of large values count as work, whatever the size of
// operand and answer; an execution stops at most one operation beyond its limit.
TEST_P(LimitsConformance, WorkIsWhatAnOperationLooksAt) {
  SKEP_NEEDS(functions);
  constexpr size_t kBytes = 8000;
  if (traits_.value_bytes_max < kBytes) GTEST_SKIP() << "values are small";
  const std::string value(kBytes, '\0');
  const Function* const sum = FindFunction(FunctionKind::kReduce, "sum", Element::kI64);
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
  ASSERT_NE(sum, nullptr);
  ASSERT_NE(add, nullptr);
  const std::string one(8, '\1');
  const std::function<void(Batch&, std::string_view)> kinds[] = {
      [&](Batch& b, auto key) { b.ReduceElements(key, sum); },
      [&](Batch& b, auto key) { b.UpdateElements(key, add, one); },
      [&](Batch& b, auto key) { b.Apply(key, functions::kAppend, ""); },
      [&](Batch& b, auto key) { b.CompareDigestAndSet(key, DigestOf(value), value); },
      [&](Batch& b, auto key) { b.CompareAndSet(key, value, value); },
      [&](Batch& b, auto key) { b.Put(key, value); },
      [&](Batch& b, auto key) { b.Get(key); },
  };
  for (const auto& add_one : kinds) {
    for (const bool is_one_key : {true, false}) {
      SCOPED_TRACE(testing::Message() << "kind " << &add_one - kinds << (is_one_key ? " one" : ""));
      Batch puts;
      Batch batch;
      for (uint32_t i = 0; i < kKeys; ++i) {
        const std::string_view key = batch.scratch().Copy(Key(is_one_key ? 0 : i));
        puts.Put(key, value);
        add_one(batch, key);
      }
      engine_.Execute(puts);
      batch.set_work_bytes_max(4 * kBytes - 1);
      engine_.Execute(batch);
      EXPECT_GE(batch.work_bytes(), 4 * kBytes);
      EXPECT_LE(batch.work_bytes(), 10 * kBytes);
      uint32_t done = 0;
      for (uint32_t slot = 0; slot < kKeys; ++slot) {
        const Verdict verdict = batch.outcome(slot).verdict;
        done += verdict == Verdict::kDone ? 1 : 0;
        if (verdict != Verdict::kDone) {
          EXPECT_EQ(verdict, Verdict::kPostponed);
        }
      }
      EXPECT_GE(done, 2u);
      EXPECT_LE(done, 5u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, LimitsConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

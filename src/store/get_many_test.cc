// Store::GetMany (skep/store.h) on every engine, and of stores that have more than an engine.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "keyspace/factory.h"
#include "skep/store.h"

namespace skep {
namespace {

constexpr uint8_t kType = 200;

std::vector<std::string> EnginesWithKeysOfAnySize() {
  std::vector<std::string> names;
  for (const EngineInfo& info : AllEngines()) {
    if (!info.external && info.name != "hashleaf") names.emplace_back(info.name);
  }
  return names;
}

class GetMany : public testing::TestWithParam<std::string> {
 protected:
  // Gets the keys, and keeps the status and the answers.
  void Get(const std::vector<std::string>& keys) {
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    answers_.assign(keys.size(), {});
    values_.Clear();
    status_ = store_->GetMany(views, answers_, values_);
  }

  const std::unique_ptr<Store> store_ = *Store::Open({.engine = GetParam(), .keyspaces = 2});
  std::vector<GetAnswer> answers_;
  Scratch values_;
  Status status_;
};

// Goal: the answers are those of the keys, in their order, whatever the keys have: with the keys
// that engines leave to batches (deadlines, long values, hidden keys) among others, and twice.
TEST_P(GetMany, AnswersEveryKey) {
  const std::string long_value(100'000, 'l');
  std::vector<std::string> keys;
  for (int i = 0; i < 600; ++i) {
    keys.push_back("key" + std::to_string(i));
    const std::string value = i % 50 == 0 ? long_value : std::to_string(i);
    if (i % 3 == 0) continue;
    ASSERT_TRUE((i % 7 == 0 ? store_->PutUntil(keys[i], value, DeadlineAfter(std::chrono::hours(1)))
                            : store_->Put(keys[i], value))
                    .ok());
  }
  keys.push_back("key1");
  ASSERT_TRUE(store_->Put("", "empty").ok());
  ASSERT_TRUE(store_->Put("none", "").ok());
  keys.push_back("");
  keys.push_back("none");
  Get(keys);
  ASSERT_TRUE(status_.ok()) << status_.ToString();
  for (size_t i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(answers_[i].verdict, i % 3 == 0 ? Verdict::kAbsent : Verdict::kDone);
    ASSERT_EQ(answers_[i].value(), i % 3 == 0 ? "" : i % 50 == 0 ? long_value : std::to_string(i));
  }
  EXPECT_EQ(answers_[600].value(), "1");
  EXPECT_EQ(answers_[601].value(), "empty");
  EXPECT_EQ(answers_[602].verdict, Verdict::kDone);
  EXPECT_EQ(answers_[602].value(), "");
}

// Goal: a key that is refused leaves the others alone, and the status is that of the first one.
TEST_P(GetMany, RefusesSingleKeys) {
  ASSERT_TRUE(store_->Put("plain", "1").ok());
  Get({"plain", std::string(64 * 1024 + 1, 'k'), "absent"});
  EXPECT_EQ(status_.code(), Code::kTooLarge);
  EXPECT_EQ(answers_[0].value(), "1");
  EXPECT_EQ(answers_[1].verdict, Verdict::kRefused);
  EXPECT_EQ(answers_[2].verdict, Verdict::kAbsent);

  Batch batch;
  batch.Add({.op = Op::kPut, .type = kType, .key = "typed", .value = "2", .other = {}});
  ASSERT_TRUE(store_->Execute(batch).ok());
  if (batch.outcome(0).verdict != Verdict::kDone) return;  // the engine has no types
  Get({"plain", "typed", std::string(64 * 1024 + 1, 'k')});
  EXPECT_EQ(status_.code(), Code::kWrongType);
  EXPECT_EQ(answers_[0].value(), "1");
  EXPECT_EQ(answers_[1].verdict, Verdict::kRefused);
  EXPECT_EQ(answers_[2].verdict, Verdict::kRefused);
}

// Goal: as many keys as one likes are answered, also by engines that leave them all to batches.
TEST_P(GetMany, TakesAnyNumberOfKeys) {
  std::vector<std::string> keys;
  for (int i = 0; i < 10'000; ++i) keys.push_back(std::to_string(i));
  for (const char* key : {"0", "4095", "4096", "9999"}) ASSERT_TRUE(store_->Put(key, key).ok());
  Get(keys);
  ASSERT_TRUE(status_.ok()) << status_.ToString();
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool is_there = i == 0 || i == 4095 || i == 4096 || i == 9999;
    ASSERT_EQ(answers_[i].value(), is_there ? keys[i] : "") << i;
    ASSERT_EQ(answers_[i].verdict, is_there ? Verdict::kDone : Verdict::kAbsent) << i;
  }
}

// Goal: a value for which `values` has no room is refused, with the limit; absent keys are told.
TEST_P(GetMany, RefusesValuesBeyondTheLimit) {
  ASSERT_TRUE(store_->Put("there", "value").ok());
  values_.Room(kAnswerBytesMax);  // never written, so it takes no memory
  values_.Allocate(kAnswerBytesMax);
  const std::string_view keys[] = {"there", "absent"};
  answers_.assign(2, {});
  status_ = store_->GetMany(keys, answers_, values_);
  EXPECT_EQ(status_.code(), Code::kTooLarge);
  EXPECT_EQ(status_.detail(), kAnswerBytesMax);
  EXPECT_EQ(answers_[0].verdict, Verdict::kRefused);
  EXPECT_EQ(answers_[1].verdict, Verdict::kAbsent);
}

// Goal: what a call as a whole cannot do is refused, and no key is looked for. Without keys it is
// no error.
TEST_P(GetMany, RefusesCalls) {
  const std::string_view keys[] = {"a", "b"};
  GetAnswer answers[2];
  EXPECT_EQ(store_->GetMany(keys, answers, values_, 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->GetMany(keys, std::span(answers).first(1), values_).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(answers[0].verdict, Verdict::kPostponed);
  EXPECT_TRUE(store_->GetMany({}, {}, values_).ok());
}

// Goal: keyspaces are told apart, and later values are seen.
TEST_P(GetMany, ReadsTheNewestOfItsKeyspace) {
  const std::string_view keys[] = {"a"};
  GetAnswer answers[1];
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_->Put("a", std::to_string(i), 1).ok());
    ASSERT_TRUE(store_->GetMany(keys, answers, values_, 1).ok());
    ASSERT_EQ(answers[0].value(), std::to_string(i));
  }
  ASSERT_TRUE(store_->GetMany(keys, answers, values_, 0).ok());
  EXPECT_EQ(answers[0].verdict, Verdict::kAbsent);
}

INSTANTIATE_TEST_SUITE_P(Engines, GetMany, testing::ValuesIn(EnginesWithKeysOfAnySize()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace skep

// What a keyspace of ranges answers when a part fails, and when parts are under way together.
#include "ranges/ranged_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/forwarding_engine.h"
#include "model/model_engine.h"

namespace skep::ranges {
namespace {

constexpr Status kAway(Code::kUnavailable, "the part is away");

// An engine that may be away, and that executes what was begun when it is finished.
class TestPart final : public ForwardingEngine {
 public:
  TestPart(std::unique_ptr<Engine> inner, int& under_way, int& under_way_max)
      : ForwardingEngine(std::move(inner)), under_way_(under_way), under_way_max_(under_way_max) {}

  Version Execute(Batch& batch) override {
    if (before_each) before_each();
    if (is_away) {
      BatchWriter(batch).RefuseAll(kAway);
    } else {
      inner().AwaitRelease(ForwardingEngine::Execute(batch));
    }
    return 0;
  }
  BegunBatch Begin(Batch& batch) override {
    under_way_max_ = std::max(under_way_max_, ++under_way_);
    return {.ticket = 0, .under_way = std::make_unique<Begun>(*this, batch)};
  }

  bool is_away = false;
  std::function<void()> before_each;

 private:
  class Begun final : public BatchUnderWay {
   public:
    Begun(TestPart& part, Batch& batch) : part_(part), batch_(batch) {}
    ~Begun() override { --part_.under_way_; }
    Version Finish() override { return part_.Execute(batch_); }

   private:
    TestPart& part_;
    Batch& batch_;
  };

  int& under_way_;
  int& under_way_max_;
};

// Three parts, from "", "h" and "q", with a key before each of "c", "m" and "s".
class RangedEngineTest : public testing::Test {
 protected:
  RangedEngineTest() {
    for (const char* const lower : {"", "h", "q"}) {
      EngineOptions options;
      options.budget = &budget_;
      parts_.push_back(
          std::make_unique<TestPart>(ModelEngine::kInfo.make(options), under_way_, under_way_max_));
      ranges_.push_back({.lower = lower, .engine = parts_.back().get()});
    }
    engine_ = std::make_unique<RangedEngine>(ranges_);
    for (const char* const key : {"c", "m", "s"}) EXPECT_EQ(Put(key), Verdict::kDone);
  }
  Outcome Run(const Request& request) {
    batch_.Clear();
    batch_.Add(request);
    engine_->Execute(batch_);
    return batch_.outcome(0);
  }
  Verdict Put(std::string_view key) {
    return Run({.op = Op::kPut, .key = key, .value = "value"}).verdict;
  }
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    for (const Item& item : batch_.items(0)) keys.emplace_back(item.key);
    return keys;
  }
  static Request ScanFrom(std::string_view key, uint32_t limit, uint8_t flags = 0) {
    return {.op = Op::kScan,
            .flags = static_cast<uint8_t>(Request::kNoUpperBound | flags),
            .limit = limit,
            .key = key};
  }

  MemoryBudget budget_{0};
  int under_way_ = 0;
  int under_way_max_ = 0;
  std::vector<std::unique_ptr<TestPart>> parts_;
  std::vector<RangePart> ranges_;
  std::unique_ptr<RangedEngine> engine_;
  Batch batch_;
};

TEST_F(RangedEngineTest, APartThatIsAwayFailsItsOwnOperations) {
  parts_[1]->is_away = true;
  Batch batch;
  for (const char* const key : {"c", "m", "s", "none"}) batch.Get(key);
  batch.Count(Range::Between("", "g"));
  batch.Count(Range::All());
  engine_->Execute(batch);
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(1).status.code(), Code::kUnavailable);
  EXPECT_EQ(batch.outcome(2).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(3).status.code(), Code::kUnavailable);
  EXPECT_EQ(batch.outcome(4).integer, 1);
  EXPECT_EQ(batch.outcome(5).status.code(), Code::kUnavailable);
}

TEST_F(RangedEngineTest, PartsAreUnderWayTogether) {
  Batch batch;
  for (const char* const key : {"c", "m", "s"}) batch.Get(key);
  engine_->Execute(batch);
  for (uint32_t slot = 0; slot < 3; ++slot) EXPECT_EQ(batch.outcome(slot).value, "value");
  EXPECT_EQ(under_way_max_, 3);
  EXPECT_EQ(under_way_, 0);
}

TEST_F(RangedEngineTest, AScanFromTheFloorLooksBelow) {
  EXPECT_EQ(Run(ScanFrom("r", 2, Request::kSeekFloor)).verdict, Verdict::kDone);
  EXPECT_EQ(Keys(), (std::vector<std::string>{"m", "s"}));
  Run(ScanFrom("b", kNoLimit, Request::kSeekFloor));
  EXPECT_EQ(Keys(), (std::vector<std::string>{"c", "m", "s"})) << "there is none below";
  ASSERT_EQ(Run({.op = Op::kDelete, .key = "m"}).verdict, Verdict::kDone);
  Run(ScanFrom("r", kNoLimit, Request::kSeekFloor));
  EXPECT_EQ(Keys(), (std::vector<std::string>{"c", "s"})) << "two parts below";
}

// The place of the last part still has a key of the range below, which was moved away.
TEST_F(RangedEngineTest, AForeignFloorLeavesNoEffect) {
  Batch left_behind;
  left_behind.Add({.op = Op::kPut, .key = "m", .value = "old", .deadline_ms = 1000});
  parts_[2]->inner().Execute(left_behind);
  for (const char* const key : {"c", "m"}) Run({.op = Op::kDelete, .key = key});
  batch_.set_notes_effects(true);
  Run(ScanFrom("r", kNoLimit, Request::kSeekFloor));
  EXPECT_EQ(Keys(), std::vector<std::string>{"s"});
  EXPECT_TRUE(batch_.effects().empty());
}

// A part that does not answer is not one without the key.
TEST_F(RangedEngineTest, AFloorIsNotPassedOver) {
  for (const size_t away : {2u, 1u}) {
    for (const auto& part : parts_) part->is_away = false;
    parts_[away]->is_away = true;
    EXPECT_EQ(Run(ScanFrom("r", 1, Request::kSeekFloor)).status.code(), Code::kUnavailable);
    EXPECT_EQ(batch_.outcome(0).item_count, 0u);
  }
}

// Within a part the floor and what follows are of one state: its key is deleted before a second
// request could find it gone.
TEST_F(RangedEngineTest, AFloorInItsPartIsOfOneState) {
  ASSERT_EQ(Put("n"), Verdict::kDone);
  int requests = 0;
  parts_[1]->before_each = [&] {
    if (++requests == 2) parts_[1]->inner().Execute(batch_);
  };
  batch_.Clear();
  batch_.Delete("m");
  Batch scan;
  scan.Add(ScanFrom("mm", 1, Request::kSeekFloor));
  engine_->Execute(scan);
  ASSERT_EQ(scan.outcome(0).item_count, 1u);
  EXPECT_EQ((*scan.items(0).begin()).key, "m");
}

TEST_F(RangedEngineTest, AnAtomicBatchLiesInOnePart) {
  Batch batch(Batch::Kind::kAtomic);
  batch.Put("m", "1");
  batch.Put("n", "2");
  engine_->Execute(batch);
  EXPECT_TRUE(batch.applied());
  batch.Put("s", "3");
  engine_->Execute(batch);
  EXPECT_FALSE(batch.applied());
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kNotSupported);
}

// The values of all parts together count.
TEST_F(RangedEngineTest, AnswersAreBounded) {
  Batch batch;
  batch.set_answer_bytes_max(7);
  for (const char* const key : {"c", "m", "s"}) batch.Get(key);
  batch.Put("d", "value");
  engine_->Execute(batch);
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(2).status.code(), Code::kTooLarge);
  EXPECT_EQ(batch.outcome(3).verdict, Verdict::kDone);
}

}  // namespace
}  // namespace skep::ranges

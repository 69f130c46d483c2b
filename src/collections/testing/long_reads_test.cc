// Reads of large collections that would be long, in batches with Batch::set_portion_bytes_max.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

constexpr size_t kPortion = 4096;
constexpr int kMembers = 3000;

class LongReads : public testing::TestWithParam<const char*> {
 protected:
  LongReads() {
    for (int i = 0; i < kMembers; ++i) {
      const std::string member = Member(i);
      Call(engine(), "hash", "hash-set", TextsOperand({member, "value"}));
      Call(engine(), "set", "set-add", TextsOperand({member}));
      Call(engine(), "list", "list-push-right", TextsOperand({member}));
      const double score = i;
      std::string entry(1, '\0');
      entry.append(reinterpret_cast<const char*>(&score), sizeof score);
      Call(engine(), "zset", "zset-add", entry + TextsOperand({member}));
    }
  }

  static std::string Member(int i) { return "member" + std::to_string(10000 + i); }
  static std::string RangeOperand(types::RangeRequest::By by, const char* low, const char* high) {
    Scratch scratch;
    return std::string(types::WriteRangeRequest({.by = by}, low, high, scratch));
  }
  Engine& engine() { return world_.engine(); }

  World world_{1024, GetParam()};
};

using By = types::RangeRequest::By;

// Goal: a read that would return more than the limit reads next to nothing and says so; one that
// does not is answered. Without a limit all are.
// Method: both kinds of reads of each type; the items that scans of the tree find are counted.
TEST_P(LongReads, AreLeftOut) {
  struct Read {
    std::string_view key, function;
    std::string operand;
    bool is_long;
  };
  const Read reads[] = {
      {"hash", "hash-all", "", true},
      {"set", "set-all", "", true},
      {"list", "list-range", TextsOperand({"0", "-1"}), true},
      {"list", "list-range", TextsOperand({"1000", "2999"}), true},
      {"list", "list-range", TextsOperand({"1000", "1020"}), false},
      {"list", "list-index", TextsOperand({"1000"}), false},
      {"zset", "zset-range", RangeOperand(By::kRank, "0", "-1"), true},
      {"zset", "zset-range", RangeOperand(By::kRank, "-9", "-1"), false},
      {"zset", "zset-range", RangeOperand(By::kScore, "-inf", "+inf"), true},
      {"zset", "zset-range", RangeOperand(By::kScore, "10", "(30"), false},
      {"zset", "zset-range", RangeOperand(By::kMember, "-", "+"), true},
      {"zset", "zset-count", RangeOperand(By::kScore, "-inf", "+inf"), false},
      {"hash", "hash-length", "", false},
  };
  for (const Read& read : reads) {
    SCOPED_TRACE(std::string(read.function) + " " + std::string(read.key));
    const Reply whole = Call(engine(), read.key, read.function, read.operand);
    EXPECT_EQ(whole.verdict, Verdict::kDone);
    const auto at = engine().OpenSnapshot(0);
    for (const bool is_at_snapshot : {false, true}) {
      Batch batch(is_at_snapshot ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      if (is_at_snapshot) batch.set_snapshot(*at);
      batch.set_portion_bytes_max(kPortion);
      batch.Apply(read.key, Named(read.function), read.operand);
      const uint64_t items_before = world_.reads().items;
      engine().Execute(batch);
      EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
      EXPECT_EQ(batch.IsTooLong(0), read.is_long);
      EXPECT_EQ(batch.outcome(0).value, read.is_long ? "" : whole.value);
      // A segment has some 1,024 / 8 bytes; a portion has some forty of them.
      if (read.is_long) {
        EXPECT_LE(world_.reads().items - items_before, 300U);
      }
    }
    engine().CloseSnapshot(*at);
  }
}

// Goal: what follows a read that is left out, on its key, is left to whoever makes the read; other
// keys are not concerned.
TEST_P(LongReads, KeepTheOrderOfTheirKey) {
  Batch batch;
  batch.set_portion_bytes_max(kPortion);
  const auto words = [&](const Words& all) { return batch.scratch().Copy(TextsOperand(all)); };
  batch.Apply("list", Named("list-range"), words({"0", "-1"}));
  batch.Apply("list", Named("list-index"), words({"1"}));
  batch.Delete("list");
  batch.Apply("set", Named("set-length"), {});
  batch.Apply("set", Named("set-all"), {});
  batch.Apply("set", Named("set-remove"), words({Member(0)}));
  batch.Apply("hash", Named("hash-delete"), words({Member(0)}));
  engine().Execute(batch);
  const bool too_long[] = {true, false, false, false, true, false, false};
  const bool postponed[] = {false, true, true, false, false, true, false};
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.IsTooLong(slot), too_long[slot]) << slot;
    EXPECT_EQ(batch.outcome(slot).verdict == Verdict::kPostponed, postponed[slot]) << slot;
  }
  EXPECT_EQ(Call(engine(), "list", "list-length", {}).integer, kMembers);
  EXPECT_EQ(Call(engine(), "set", "set-length", {}).integer, kMembers);
  EXPECT_EQ(Call(engine(), "hash", "hash-length", {}).integer, kMembers - 1);
}

// Goal: a write that would copy more than the limit, a segment for each member that it changes or
// the elements that it takes, changes nothing, reads next to nothing and says so; one that would
// not is made, up to the limit. Without a limit all are made.
// Method: each kind of write just below the limit and just above it.
TEST_P(LongReads, WritesAreLeftOut) {
  constexpr int kSegment = 1024 / 4;  // of a collection that outgrows 1,024 bytes
  constexpr int kMost = kPortion / kSegment;
  constexpr int kElementsMost = kPortion / 14;  // of 13 bytes, and one more
  const auto number = [](int n) { return std::to_string(n); };
  const auto range = [&](int first, int last) {
    return RangeOperand(By::kRank, number(first).c_str(), number(last).c_str());
  };
  const auto scores = [&](int first, int last) {
    return RangeOperand(By::kScore, number(first).c_str(), number(last).c_str());
  };
  const auto draw = [&](int count) {
    Scratch scratch;
    return std::string(types::WriteDrawRequest({.seed = 7, .count = count}, scratch));
  };
  Words few;
  Words many;
  for (int i = 0; i < 100; ++i) (i < 60 ? few : many).push_back(Member(100000 + i));
  many.insert(many.end(), few.begin(), few.end());
  struct Write {
    std::string_view key, function;
    std::string operand;
    int members;  // after it, of kMembers, if it is made
    bool is_long;
  };
  const Write writes[] = {
      {"zset", "zset-cut", range(10, 9 + kMost), kMembers - kMost, false},
      {"zset", "zset-cut", range(10, 10 + kMost), 0, true},
      {"zset", "zset-cut", range(0, -1), 0, true},
      {"zset", "zset-cut", scores(100, 100), kMembers - kMost - 1, false},
      {"zset", "zset-cut", scores(100, 900), 0, true},
      {"zset", "zset-pop-lowest", TextsOperand({number(kMost + 1)}), 0, true},
      {"zset", "zset-pop-highest", TextsOperand({number(kMost)}), kMembers - 2 * kMost - 1, false},
      {"set", "set-pop", draw(kMost), kMembers - kMost, false},
      {"set", "set-pop", draw(kMost + 1), 0, true},
      {"set", "set-pop", draw(kMembers), 0, true},
      {"set", "set-add", TextsOperand(few), kMembers - kMost + 60, false},
      {"set", "set-add", TextsOperand(many), 0, true},
      {"set", "set-remove", TextsOperand(many), 0, true},
      {"list", "list-pop-left", TextsOperand({number(kElementsMost)}), kMembers - kElementsMost,
       false},
      {"list", "list-pop-right", TextsOperand({number(kElementsMost + 1)}), 0, true},
      {"list", "list-trim", TextsOperand({"400", "-1"}), 0, true},
      {"list", "list-trim", TextsOperand({"100", "-101"}), kMembers - kElementsMost - 200, false},
      {"list", "list-trim", TextsOperand({"1", "0"}), 0, false},
  };
  for (const Write& write : writes) {
    SCOPED_TRACE(std::string(write.function) + " " + std::to_string(&write - writes));
    const std::string length = std::string(write.key) + "-length";
    const int64_t before = Call(engine(), write.key, length, {}).integer;
    Batch batch;
    batch.set_portion_bytes_max(kPortion);
    batch.Apply(write.key, Named(write.function), write.operand);
    const uint64_t items_before = world_.reads().items;
    engine().AwaitRelease(engine().Execute(batch));
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    EXPECT_EQ(batch.IsTooLong(0), write.is_long);
    const int64_t after = Call(engine(), write.key, length, {}).integer;
    EXPECT_EQ(after, write.is_long ? before : write.members);
    if (write.is_long) {
      EXPECT_LE(world_.reads().items - items_before, 60U);
      EXPECT_LE(batch.work_bytes(), 4 * kPortion);
    }
    ASSERT_EQ(engine().Verify(), nullptr);
  }
  EXPECT_EQ(Call(engine(), "zset", "zset-cut", range(10, 1009)).integer, 1000);
  EXPECT_EQ(Call(engine(), "set", "set-pop", draw(1000)).integer, 1000);
  ASSERT_EQ(engine().Verify(), nullptr);
}

// Goal: cuts that arrive together are one write of a bounded size, and then another one.
// Method: 180 cuts of 16 members each, in a batch that stops as soon as it has done something; the
// work of each execution is counted.
TEST_P(LongReads, GroupsOfCutsAreBounded) {
  constexpr size_t kBoundMax = 3 * JointCalls::kWorkBytesMax;  // read, compared and written
  std::vector<Request> left;
  Batch requests;
  for (int i = 0; i < 180; ++i) {
    const std::string first = std::to_string(i % 7);
    const std::string last = std::to_string(i % 7 + 15);
    requests.Apply("zset", Named("zset-cut"),
                   requests.scratch().Copy(RangeOperand(By::kRank, first.c_str(), last.c_str())));
  }
  left.assign(requests.requests().begin(), requests.requests().end());
  size_t executions = 0;
  size_t work = 0;
  while (!left.empty()) {
    Batch batch;
    batch.set_portion_bytes_max(kPortion);
    batch.set_work_bytes_max(1);
    for (const Request& request : left) batch.Add(request);
    engine().AwaitRelease(engine().Execute(batch));
    EXPECT_LE(batch.work_bytes(), kBoundMax);
    ++executions;
    work += batch.work_bytes();
    uint32_t done = 0;
    while (done < left.size() && batch.outcome(done).verdict == Verdict::kDone) {
      EXPECT_EQ(batch.outcome(done).integer, 16);
      ++done;
    }
    ASSERT_GT(done, 0U);
    left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(done));
  }
  EXPECT_GT(work, 2 * kBoundMax);
  EXPECT_GT(executions, 2U);
  EXPECT_EQ(Call(engine(), "zset", "zset-length", {}).integer, kMembers - 180 * 16);
  ASSERT_EQ(engine().Verify(), nullptr);
}

// Goal: scans of members in portions return each member once, and each portion is not much longer
// than the limit.
TEST_P(LongReads, ScansComeInPortions) {
  for (const auto& [key, function, each] :
       {std::tuple("hash", "hash-scan", 2), std::tuple("set", "set-scan", 1)}) {
    std::vector<std::string> members;
    std::string from;
    size_t portions = 0;
    while (true) {
      Batch batch;
      batch.set_portion_bytes_max(kPortion);
      const std::string operand = TextsOperand({from, "9223372036854775807"});
      batch.Apply(key, Named(function), operand);
      engine().Execute(batch);
      ++portions;
      std::string_view rest = batch.outcome(0).value;
      EXPECT_LE(rest.size(), kPortion + 2 * 1024);
      std::optional<std::string_view> next;
      types::TakeMaybeText(rest, &next);
      std::vector<std::string_view> texts;
      types::TakeTexts(rest, &texts);
      for (size_t i = 0; i < texts.size(); i += each) members.emplace_back(texts[i]);
      if (!next) break;
      from = *next;
    }
    EXPECT_GT(portions, 5U);
    ASSERT_EQ(members.size(), static_cast<size_t>(kMembers));
    for (int i = 0; i < kMembers; ++i) EXPECT_EQ(members[i], Member(i));
  }
}

// Goal: at a snapshot, fields of a hash are due or not as when it was opened, however late they are
// read: so a count of them and the fields that are found agree.
TEST_P(LongReads, OfASnapshotAreOfItsTime) {
  Call(engine(), "hash", "hash-expire", FieldDeadlineOperand(1000, {Member(0), Member(1)}), 10);
  const auto at = engine().OpenSnapshot(500);
  Call(engine(), "set", "set-has", TextsOperand({"none"}), 5000);  // the engine knows that time
  Batch batch(Batch::Kind::kAtomic);
  batch.set_now_ms(5000);
  batch.set_snapshot(*at);
  batch.Apply("hash", Named("hash-length"), {});
  batch.Apply("hash", Named("hash-all"), {});
  engine().Execute(batch);
  EXPECT_EQ(batch.outcome(0).integer, kMembers);
  std::vector<std::string_view> texts;
  types::TakeTexts(batch.outcome(1).value, &texts);
  EXPECT_EQ(texts.size(), 2U * kMembers);
  engine().CloseSnapshot(*at);
  EXPECT_EQ(Call(engine(), "hash", "hash-length", {}, 5000).integer, kMembers - 2);
}

// Goal: a large collection that a part deletes before it stores another one under its key is not
// read; if another part asks for the key, that one finds what is stored then.
// Method: the items that scans find are counted.
TEST_P(LongReads, NotOfWhatIsDeletedFirst) {
  const std::string one = TextsOperand({"one"});
  const std::string two = TextsOperand({"two"});
  for (const bool has_other_part : {false, true}) {
    const std::string_view key = has_other_part ? "zset" : "set";
    Batch batch(Batch::Kind::kAtomic);
    batch.BeginPart();
    batch.Apply("hash", Named("hash-length"), {});
    batch.BeginPart();
    batch.Delete(key);
    const uint32_t added = batch.Apply(key, Named("set-add"), one);
    if (has_other_part) batch.BeginPart();
    const uint32_t again = batch.Apply(key, Named("set-add"), two);
    const uint64_t before = world_.reads().items;
    engine().AwaitRelease(engine().Execute(batch));
    ASSERT_TRUE(batch.applied());
    if (!has_other_part) EXPECT_LT(world_.reads().items - before, 5u);
    EXPECT_EQ(batch.outcome(added).integer, 1);
    EXPECT_EQ(batch.outcome(again).integer, 1);
    EXPECT_EQ(Call(engine(), key, "set-length", {}).integer, 2);
    world_.MaintainAll();
    ASSERT_EQ(engine().Verify(), nullptr);
  }
  EXPECT_EQ(world_.ContentsOf(Part::kScores).size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, LongReads, testing::Values("btree", "model"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace skep::collections

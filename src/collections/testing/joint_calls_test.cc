// Calls on large collections that are made together (joint_calls.h, atomic_calls.h).
#include "collections/joint_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collections/access.h"
#include "collections/list_calls.h"
#include "collections/testing/collection_world_test.h"
#include "types/large_record.h"
#include "types/sorted_set.h"

namespace skep::collections {
namespace {

class JointCallsTest : public testing::TestWithParam<std::string> {};

// The operand that gives each member this score.
std::string EntriesOperand(const Words& members, double score = 0) {
  std::string entries(1, '\0');
  for (const std::string& member : members) {
    entries.append(reinterpret_cast<const char*>(&score), sizeof(score));
    entries += TextsOperand({member});
  }
  return entries;
}

// Goal: an atomic batch of calls about a few members or elements costs what these do.
// Method: a collection is converted when it outgrows one value; batches that put it into one value
// would convert it again. Transfers, pops of several keys and calls beside other keys do not.
TEST_P(JointCallsTest, AtomicCallsLeaveTheRestWhereItIs) {
  World world(48, GetParam());
  Engine& engine = world.engine();
  Words words;
  for (int i = 0; i < 60; ++i) words.push_back("member " + std::to_string(i));
  const std::string all = TextsOperand(words);
  Batch fill;
  fill.Apply("set", Named("set-add"), all);
  fill.Apply("list", Named("list-push-right"), all);
  fill.Apply("other", Named("list-push-right"), all);
  fill.Apply("zset", Named("zset-add"), fill.scratch().Copy(EntriesOperand(words)));
  const std::string fields = FieldDeadlineOperand(1000, words);
  fill.Apply("hash", Named("hash-set-until"), fields);
  engine.AwaitRelease(engine.Execute(fill));
  const auto conversions = [&] {
    uint64_t count = 0;
    engine.Describe(0, [&](std::string_view name, uint64_t number) {
      if (name == "collection_conversions") count = number;
    });
    return count;
  };
  ASSERT_EQ(conversions(), 5u);
  const std::string one = TextsOperand({"1"});
  const std::string member = TextsOperand({words.front()});
  const std::string again = EntriesOperand({words.front()});
  const std::string middle = TextsOperand({"30", "set"});
  const std::string before_last = TextsOperand({"before", "set", "inserted"});
  const std::string inserted = TextsOperand({"0", "inserted"});
  const std::string whole = TextsOperand({"0", "-1"});
  const auto chained = [&](Batch& batch, uint32_t slot, std::string_view key) {
    batch.Add({.op = Op::kApply,
               .flags = Request::kOperandOfSlot | Request::kUnlessNone,
               .limit = slot,
               .key = key,
               .function = Named("list-push-left")});
  };
  for (int i = 0; i < 20; ++i) {
    Call(engine, "spring", "list-push-left", member);
    Call(engine, "drain", "list-pop-left", one);
    Batch batch(Batch::Kind::kAtomic);
    chained(batch, batch.Apply("list", Named("list-pop-left"), one), "other");
    chained(batch, batch.Apply("other", Named("list-pop-right"), one), "drain");
    chained(batch, batch.Apply("spring", Named("list-pop-right"), one), "list");
    batch.Apply("set", Named("set-remove"), member);
    batch.Apply("set", Named("set-has"), member);
    batch.Apply("set", Named("set-add"), member);
    batch.Apply("set", Named("set-length"), {});
    batch.Put("string", "value");
    batch.Apply("zset", Named("zset-pop-highest"), one);
    batch.Apply("zset", Named("zset-pop-lowest"), one);
    batch.Apply("zset", Named("zset-add"), again);
    batch.Apply("zset", Named("zset-pop-lowest"), one);
    batch.Apply("zset", Named("zset-add"), again);
    batch.Apply("list", Named("list-set"), middle);
    batch.Apply("list", Named("list-insert"), before_last);
    batch.Apply("list", Named("list-remove"), inserted);
    batch.Apply("list", Named("list-trim"), whole);
    const uint32_t length = batch.Apply("hash", Named("hash-length"), {});
    engine.AwaitRelease(engine.Execute(batch));
    ASSERT_TRUE(batch.applied());
    EXPECT_EQ(batch.outcome(9).integer, 60);
    EXPECT_EQ(batch.outcome(14).integer, 1);  // the first member came back, and was taken again
    EXPECT_EQ(batch.outcome(14).value, EntriesOperand({words.front()}).substr(1));
    EXPECT_EQ(batch.outcome(18).integer, 1);
    EXPECT_EQ(batch.outcome(length).integer, 30);
    ASSERT_EQ(engine.Verify(), nullptr);
  }
  EXPECT_EQ(conversions(), 5u);
}

// Goal: a pop sees what the calls before it have made of the members at its end.
// Method: calls of both kinds of batches that give members other scores, remove them and add them
// again, with pops between.
TEST_P(JointCallsTest, PopsSeeTheCallsBefore) {
  World world(48, GetParam());
  Engine& engine = world.engine();
  const auto name = [](int i) { return "member " + std::to_string(i); };
  for (const auto kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    for (int i = 0; i < 60; ++i) {
      Call(engine, "zset", "zset-add", EntriesOperand({name(i)}, i));
    }
    Batch batch(kind);
    const auto apply = [&](std::string_view function, const std::string& operand) {
      batch.Apply("zset", Named(function), batch.scratch().Copy(operand));
    };
    const std::string one = TextsOperand({"1"});
    apply("zset-add", EntriesOperand({name(0)}, 100));
    apply("zset-pop-lowest", one);
    apply("zset-pop-highest", one);
    apply("zset-add", EntriesOperand({name(30)}, -1));
    apply("zset-pop-lowest", one);
    apply("zset-remove", TextsOperand({name(2)}));
    apply("zset-pop-lowest", TextsOperand({"2"}));
    apply("zset-add", EntriesOperand({name(3)}, 3));
    apply("zset-pop-lowest", one);
    batch.Apply("other", Named("zset-length"), {});
    engine.AwaitRelease(engine.Execute(batch));
    const auto popped = [&](uint32_t slot) { return std::string(batch.outcome(slot).value); };
    const auto entry = [&](int i, double score) {
      return EntriesOperand({name(i)}, score).substr(1);
    };
    EXPECT_EQ(popped(1), entry(1, 1));
    EXPECT_EQ(popped(2), entry(0, 100));
    EXPECT_EQ(popped(4), entry(30, -1));
    EXPECT_EQ(popped(6), entry(3, 3) + entry(4, 4));
    EXPECT_EQ(popped(8), entry(3, 3));
    ASSERT_EQ(engine.Verify(), nullptr);
  }
}

// Goal: a collection that loses its last member within calls that are made together ends there:
// what the next call makes is another one, without the deadline.
// Method: a large set and a large list with deadlines are emptied and filled again by one batch.
TEST_P(JointCallsTest, EmptiedAndFilledInOneBatch) {
  World world(48, GetParam());
  Engine& engine = world.engine();
  Words words;
  for (int i = 0; i < 60; ++i) words.push_back("member " + std::to_string(i));
  const std::string all = TextsOperand(words);
  const auto deadline_of = [&](std::string_view key) {
    Batch look;
    look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
    engine.Execute(look);
    return look.outcome(0).present ? look.outcome(0).deadline_ms : UINT64_MAX;
  };
  const uint64_t later = uint64_t{1} << 50;
  for (const bool is_emptied : {false, true}) {
    Batch fill;
    fill.Apply("set", Named("set-add"), all);
    fill.Apply("list", Named("list-push-right"), all);
    fill.Expire("set", later);
    fill.Expire("list", later);
    engine.AwaitRelease(engine.Execute(fill));
    ASSERT_GT(world.ItemsOf(Part::kMembers) + world.ItemsOf(Part::kElements), 8u);
    Batch batch;
    const auto add = [&](std::string_view key, std::string_view function, const Words& operand) {
      batch.Apply(key, Named(function), batch.scratch().Copy(TextsOperand(operand)));
    };
    add("set", "set-remove", Words(words.begin() + 1, words.end()));
    add("set", "set-remove", {is_emptied ? words.front() : "none"});
    add("set", "set-add", {"new"});
    add("list", "list-pop-left", {is_emptied ? "60" : "59"});
    add("list", "list-push-left", {"new"});
    engine.AwaitRelease(engine.Execute(batch));
    EXPECT_EQ(batch.outcome(1).integer, is_emptied ? 1 : 0);
    EXPECT_EQ(batch.outcome(4).integer, is_emptied ? 1 : 2);
    EXPECT_EQ(deadline_of("set"), is_emptied ? 0 : later);
    EXPECT_EQ(deadline_of("list"), is_emptied ? 0 : later);
    EXPECT_EQ(Call(engine, "set", "set-length", {}).integer, is_emptied ? 1 : 2);
    ASSERT_EQ(engine.Verify(), nullptr);
    Batch clear;
    clear.Delete("set");
    clear.Delete("list");
    engine.AwaitRelease(engine.Execute(clear));
    world.MaintainAll();
  }
}

// Goal: a call without a function is refused, also beside calls on a large collection.
// Method: it stands between calls of both kinds of batches.
TEST_P(JointCallsTest, ACallWithoutAFunctionIsRefused) {
  World world(48, GetParam());
  Engine& engine = world.engine();
  Words words;
  for (int i = 0; i < 60; ++i) words.push_back("member " + std::to_string(i));
  Call(engine, "set", "set-add", TextsOperand(words));
  const std::string member = TextsOperand({words.front()});
  for (const auto kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    Batch batch(kind);
    batch.Apply("set", Named("set-has"), member);
    batch.Apply("set", nullptr, member);
    batch.Apply("set", Named("set-has"), member);
    batch.Put("string", "value");
    engine.AwaitRelease(engine.Execute(batch));
    EXPECT_EQ(batch.outcome(1).verdict, Verdict::kRefused);
    ASSERT_EQ(engine.Verify(), nullptr);
  }
}

// An engine that has no memory left, with a large list, set and sorted set of 300 members each.
class FullWorld : public World {
 public:
  explicit FullWorld(size_t value_bytes) : World(value_bytes) {
    for (int i = 0; i < 300; ++i) words_.push_back(std::string(60, 'm') + std::to_string(i));
    EXPECT_EQ(Call(engine(), "list", "list-push-right", TextsOperand(words_)).integer, 300);
    EXPECT_EQ(Call(engine(), "set", "set-add", TextsOperand(words_)).integer, 300);
    EXPECT_EQ(Call(engine(), "zset", "zset-add", EntriesOperand(words_)).integer, 300);
    Fill();
  }
  const std::string& word(int i) const { return words_[static_cast<size_t>(i)]; }
  // Nothing more can be stored. The engine first gives up what it can.
  void Fill() {
    Code code = Code::kOk;
    for (; code == Code::kOk; ++fills_) {
      budget().set_limit(budget().used() - 1);
      code = Call(engine(), "set", "set-add", TextsOperand({std::to_string(fills_)})).code;
    }
    ASSERT_EQ(code, Code::kOutOfMemory);
  }
  // What was freed is not to be had again.
  void Tighten() { budget().set_limit(std::min(budget().limit(), budget().used() - 1)); }

 private:
  Words words_;
  int fills_ = 0;
};

// Goal: where there is no memory, calls that leave fewer bytes than there were are done.
// Method: collections in parts and in one value; the limit is set to what is used; all members are
// taken out one by one, alone and in atomic batches.
TEST(JointCalls, WhatFreesMemoryIsDoneWithoutMemory) {
  for (const size_t value_bytes : {size_t{256}, size_t{1} << 20}) {
    FullWorld world(value_bytes);
    Engine& engine = world.engine();
    const std::string one = TextsOperand({"1"});
    for (int i = 0; i < 300; ++i) {
      const std::string word = TextsOperand({world.word(i)});
      ASSERT_EQ(Call(engine, "set", "set-remove", word).integer, 1) << i;
      Scratch scratch;
      const std::string lowest =
          Call(engine, "zset", "zset-range", types::WriteRangeRequest({}, "0", "0", scratch)).value;
      const std::string first = one + Call(engine, "list", "list-index", TextsOperand({"0"})).value;
      const std::string but_last = TextsOperand({"0", "-2"});
      Batch batch(i % 2 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      switch (i % 3) {
        case 0:
          batch.Apply("zset", Named("zset-remove"),
                      std::string_view(lowest).substr(sizeof(double)));
          batch.Apply("list", Named("list-pop-left"), one);
          break;
        case 1:
          batch.Apply("zset", Named("zset-pop-lowest"), one);
          batch.Apply("list", Named("list-remove"), first);
          break;
        default:
          batch.Apply("zset", Named("zset-pop-highest"), one);
          batch.Apply("list", Named("list-trim"), but_last);
      }
      engine.AwaitRelease(engine.Execute(batch));
      ASSERT_EQ(batch.outcome(0).integer, 1) << i;
      ASSERT_TRUE(batch.outcome(1).status.ok()) << i;
      ASSERT_EQ(Call(engine, "list", "list-length", {}).integer, 299 - i);
      world.Tighten();
    }
    ASSERT_EQ(engine.Verify(), nullptr);
  }
}

// Goal: of a transaction that has no memory the parts that may store are refused, and no others.
// Method: parts that delete, pop, add and read, beside and on large collections.
TEST(JointCalls, PartsThatStoreNothingAreDoneWithoutMemory) {
  FullWorld world(256);
  Engine& engine = world.engine();
  const std::string one = TextsOperand({"1"});
  const std::string much = TextsOperand({std::string(100'000, 'x')});
  const std::string word = TextsOperand({world.word(7)});
  Batch batch(Batch::Kind::kAtomic);
  const auto part = [&] { batch.BeginPart(); };
  part();
  batch.Apply("set", Named("set-remove"), word);
  part();
  batch.Apply("set", Named("set-add"), much);
  part();
  batch.Delete("list");
  part();
  batch.Put("string", std::string_view(much));
  part();
  batch.Apply("zset", Named("zset-pop-lowest"), one);
  part();
  batch.Apply("set", Named("set-has"), word);
  part();
  batch.Apply("list", Named("list-push-left"), much);
  engine.AwaitRelease(engine.Execute(batch));
  ASSERT_TRUE(batch.applied());
  EXPECT_EQ(batch.outcome(0).integer, 1);
  EXPECT_EQ(batch.outcome(1).status.code(), Code::kOutOfMemory);
  EXPECT_EQ(batch.outcome(2).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(3).status.code(), Code::kOutOfMemory);
  EXPECT_EQ(batch.outcome(4).integer, 1);
  EXPECT_EQ(batch.outcome(5).integer, 0);
  EXPECT_EQ(batch.outcome(6).status.code(), Code::kOutOfMemory);
  EXPECT_EQ(Call(engine, "list", "list-length", {}).integer, 0);
  EXPECT_EQ(Call(engine, "zset", "zset-length", {}).integer, 299);
  EXPECT_EQ(engine.Verify(), nullptr);
}

// How many items differ, are new or are gone.
size_t Differences(const std::map<std::string, std::string>& a,
                   const std::map<std::string, std::string>& b) {
  size_t count = 0;
  for (const auto& [key, value] : a) {
    const auto at = b.find(key);
    if (at == b.end() || at->second != value) ++count;
  }
  for (const auto& [key, value] : b) count += a.contains(key) ? 0 : 1;
  return count;
}

// Goal: an edit in the middle of a large list writes the segments that change, and no others.
// Method: the segments are compared before and after.
TEST_P(JointCallsTest, EditsOfListsWriteFewSegments) {
  World world(1024, GetParam());
  Engine& engine = world.engine();
  Words words;
  for (int i = 0; i < 3000; ++i) words.push_back("element " + std::to_string(i));
  Call(engine, "list", "list-push-right", TextsOperand(words));
  const auto written = [&](std::string_view function, const Words& operand, int64_t integer) {
    const auto before = world.ContentsOf(Part::kElements);
    const Reply reply = Call(engine, "list", function, TextsOperand(operand));
    EXPECT_EQ(reply.code, Code::kOk) << reply.text;
    EXPECT_EQ(reply.integer, integer);
    EXPECT_EQ(engine.Verify(), nullptr);
    return Differences(before, world.ContentsOf(Part::kElements));
  };
  ASSERT_GT(world.ItemsOf(Part::kElements), 100u);
  EXPECT_EQ(written("list-set", {"1500", "one"}, 1), 1u);
  EXPECT_EQ(written("list-set", {"-2", "two"}, 1), 1u);
  EXPECT_EQ(written("list-insert", {"after", "one", "three"}, 3001), 1u);
  EXPECT_EQ(written("list-insert", {"before", "nothing", "three"}, -1), 0u);
  EXPECT_EQ(written("list-remove", {"-1", "element 2000"}, 1), 1u);
  EXPECT_EQ(written("list-remove", {"0", "nothing"}, 0), 0u);
  EXPECT_EQ(written("list-trim", {"1", "-3"}, 0), 2u);
  EXPECT_EQ(Call(engine, "list", "list-length", {}).integer, 2997);
}

// Goal: segments in the middle of a list stay about as long as others, and as many as are needed.
// Method: elements are inserted at one place, and then nearly all are removed; the segments are
// measured all the while.
TEST_P(JointCallsTest, SegmentsOfListsStayBalanced) {
  constexpr size_t kSegmentBytes = 64;
  World world(4 * kSegmentBytes, GetParam());
  Engine& engine = world.engine();
  Words words;
  for (int i = 0; i < 400; ++i) words.push_back("e" + std::to_string(i));
  Call(engine, "list", "list-push-right", TextsOperand(words));
  size_t longest = 0;
  for (int i = 0; i < 400; ++i) {
    Call(engine, "list", "list-insert", TextsOperand({"after", "e200", std::to_string(i)}));
    for (const auto& [key, value] : world.ContentsOf(Part::kElements)) {
      longest = std::max(longest, value.size());
    }
  }
  EXPECT_GT(longest, 2 * kSegmentBytes);
  EXPECT_LE(longest, (ListCalls::kGrowthMax + 1) * kSegmentBytes);
  for (int i = 0; i < 400; ++i) {
    if (i != 5 && i != 395) Call(engine, "list", "list-remove", TextsOperand({"1", words[i]}));
    if (i < 400) Call(engine, "list", "list-remove", TextsOperand({"1", std::to_string(i)}));
    ASSERT_EQ(engine.Verify(), nullptr);
  }
  EXPECT_EQ(Call(engine, "list", "list-length", {}).integer, 2);
  EXPECT_EQ(Call(engine, "list", "list-range", TextsOperand({"0", "-1"})).value,
            TextsOperand({"e5", "e395"}));
  EXPECT_LE(world.ItemsOf(Part::kElements), ListCalls::kSparsity);
}

// Goal: changes that were computed together are refused where the collection would have been empty
// in between, whatever the members were when they were computed.
// Method: the function is called with records of different numbers of members.
TEST(LargeRecord, IsNotEmptyInBetween) {
  const Function* const change = Named("large-set-change");
  const auto code = [&](uint64_t members, int64_t added, int64_t fewest) {
    const types::LargeRecord record = {.id = 7, .members = members};
    const types::RecordChange operand = {.id = 7, .members = added, .bytes = 0, .fewest = fewest};
    Scratch scratch;
    return change
        ->body({.value = types::BytesOf(record),
                .operand = {reinterpret_cast<const char*>(&operand), sizeof(operand)},
                .scratch = &scratch,
                .function = change})
        .status.code();
  };
  EXPECT_EQ(code(3, -1, -2), Code::kOk);
  EXPECT_EQ(code(3, -1, -3), Code::kAborted);
  EXPECT_EQ(code(3, 2, -4), Code::kAborted);
  EXPECT_EQ(code(3, -3, -3), Code::kOk);  // it is empty at the end
}

std::string EntryBytes(double score, const std::string& member) {
  return std::string(reinterpret_cast<const char*>(&score), sizeof score) + TextsOperand({member});
}

std::string CutOperand(types::RangeRequest::By by, const std::string& low, const std::string& high,
                       bool reverse = false) {
  Scratch scratch;
  const types::RangeRequest request = {.by = by, .reverse = reverse ? uint8_t{1} : uint8_t{0}};
  return std::string(types::WriteRangeRequest(request, low, high, scratch));
}

// Goal: a cut that leaves nothing tells the deadline of its own set, not that of another one.
TEST_P(JointCallsTest, CutsOfAllTellTheirOwnDeadlines) {
  World world(512, GetParam());
  Engine& engine = world.engine();
  std::string entries(1, '\0');
  for (int i = 0; i < 500; ++i) entries += EntryBytes(i, "member" + std::to_string(i));
  for (const char* const key : {"a", "b", "c"}) Call(engine, key, "zset-add", entries);
  Batch expire;
  expire.Expire("b", 5000);
  engine.AwaitRelease(engine.Execute(expire));
  const std::string all = CutOperand(types::RangeRequest::By::kRank, "0", "-1");
  Batch batch(Batch::Kind::kAtomic);
  for (const char* const key : {"a", "b", "c"}) batch.Apply(key, Named("zset-cut"), all);
  engine.AwaitRelease(engine.Execute(batch));
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone);
    EXPECT_EQ(batch.outcome(slot).deadline_ms, slot == 1 ? 5000u : 0u);
  }
}

// Goal: cuts of a large sorted set in a transaction, or that arrive together, do not copy it whole,
// and these calls see each other.
// Method: batches of both kinds of cuts by score, rank and member among adds, removes and pops go
// to a set of thousands of members with many equal scores and to one in one value; answers and
// contents are equal. Now and then a cut takes all. Then the items that an add and a cut behind it
// read are counted.
TEST_P(JointCallsTest, CutsAreMadeWhereTheyLie) {
  using By = types::RangeRequest::By;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  World parts(512, GetParam());
  World whole(0, GetParam());
  const auto member = [&] {
    return std::string(1, static_cast<char>(rng())) + std::to_string(rng() % 4000);
  };
  for (int round = 0; round < 120; ++round) {
    std::vector<std::pair<std::string, std::string>> calls;
    std::string added(1, '\0');
    for (int i = 0; i < (round % 30 == 0 ? 3000 : 40); ++i) {
      added += EntryBytes(round < 30 ? 1 : static_cast<double>(rng() % 60), member());
    }
    if (round % 30 == 0) calls.emplace_back("zset-add", added);
    for (size_t left = round % 30 == 0 ? 0 : rng() % 8 + 1; left > 0; --left) {
      const int at = static_cast<int>(rng() % 3000) - 1500;
      const std::string score = std::to_string(rng() % 60);
      const int width = static_cast<int>(rng() % 40) - 1;
      const std::string from = member();
      const std::pair<std::string, std::string> any[] = {
          {"zset-add", added},
          {"zset-pop-lowest", TextsOperand({"3"})},
          {"zset-cut", CutOperand(By::kScore, score, score, rng() % 2 == 0)},
          {"zset-cut", CutOperand(By::kRank, std::to_string(at), std::to_string(at + width))},
          {"zset-cut", CutOperand(By::kRank, std::to_string(at), std::to_string(at + width), true)},
          {"zset-remove", TextsOperand({member(), member(), member()})},
          {"zset-cut", CutOperand(By::kMember, "[" + from, "(" + from + "5")},
          {"zset-length", ""}};
      calls.push_back(any[rng() % std::size(any)]);
    }
    if (round % 30 == 29) calls.emplace_back("zset-cut", CutOperand(By::kRank, "0", "-1"));
    const auto kind = round % 2 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
    const auto run = [&](World& world) {
      Batch batch(kind);
      batch.Put("other", "x");
      for (const auto& [function, operand] : calls) batch.Apply("z", Named(function), operand);
      world.engine().AwaitRelease(world.engine().Execute(batch));
      std::vector<Reply> replies;
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        replies.push_back(ReplyOf(batch.outcome(slot)));
      }
      replies.push_back(Call(world.engine(), "z", "zset-range", CutOperand(By::kRank, "0", "-1")));
      return replies;
    };
    ASSERT_EQ(run(parts), run(whole)) << "round " << round;
    if (round % 20 == 0) {
      ASSERT_EQ(parts.engine().Verify(), nullptr) << "round " << round;
    }
  }
  std::string many(1, '\0');
  for (int i = 0; i < 3000; ++i) many += EntryBytes(i % 60, std::to_string(i));
  Call(parts.engine(), "z", "zset-add", many);
  const uint64_t segments = parts.ItemsOf(Part::kScores);
  Batch batch(Batch::Kind::kAtomic);
  const std::string ranks = CutOperand(By::kRank, "1000", "1004");
  const std::string added = std::string(1, '\0') + EntryBytes(5, "new");
  batch.Apply("z", Named("zset-add"), added);
  batch.Apply("z", Named("zset-cut"), ranks);
  batch.Apply("z", Named("zset-cut"), ranks);
  parts.reads().items = 0;
  parts.engine().AwaitRelease(parts.engine().Execute(batch));
  EXPECT_EQ(batch.outcome(1).integer, 5);
  EXPECT_EQ(batch.outcome(2).integer, 5);
  EXPECT_LT(parts.reads().items.load(), segments / 2);
}

// Goal: calls on a collection that has gone since its record was read are made by nobody.
// Method: nothing of it is left where its members are looked for; the calls name few and many.
TEST_P(JointCallsTest, OfACollectionThatHasGone) {
  World world(48, GetParam());
  Words words;
  for (int i = 0; i < 60; ++i) words.push_back("member " + std::to_string(i));
  Call(world.engine(), "set", "set-add", TextsOperand(words));
  const auto record = Access(world.reads(), 0, 48).Record("set", types::kSet);
  ASSERT_TRUE(record);
  Batch batch;
  batch.Delete("set");
  world.engine().AwaitRelease(world.engine().Execute(batch));
  world.MaintainAll();
  ASSERT_EQ(world.ItemsOf(Part::kMembers), 0u);
  for (const Words& named : {Words{"new"}, Words{"a", "member 1", "z"}, words}) {
    Access access(world.reads(), 0, 48);
    const std::string operand = TextsOperand(named);
    const std::vector<FunctionCall> calls(3, {.function = Named("set-add"), .operand = operand});
    std::vector<Answer> answers;
    EXPECT_FALSE(JointCalls::Of(access, "set", types::kSet, *record)->Run(calls, &answers));
    EXPECT_TRUE(answers.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, JointCallsTest, testing::Values("btree", "model"),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace skep::collections

// Calls on large collections that are made together (joint_calls.h, atomic_calls.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "collections/testing/collection_world_test.h"
#include "types/large_record.h"

namespace skep::collections {
namespace {

class JointCallsTest : public testing::TestWithParam<std::string> {};

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
  engine.AwaitRelease(engine.Execute(fill));
  const auto conversions = [&] {
    uint64_t count = 0;
    engine.Describe(0, [&](std::string_view name, uint64_t number) {
      if (name == "collection_conversions") count = number;
    });
    return count;
  };
  ASSERT_EQ(conversions(), 3u);
  const std::string one = TextsOperand({"1"});
  const std::string member = TextsOperand({words.front()});
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
    engine.AwaitRelease(engine.Execute(batch));
    ASSERT_TRUE(batch.applied());
    EXPECT_EQ(batch.outcome(9).integer, 60);
    ASSERT_EQ(engine.Verify(), nullptr);
  }
  EXPECT_EQ(conversions(), 3u);
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

// Goal: where there is no memory, calls that leave fewer bytes than there were are done.
// Method: collections in parts and in one value; the limit is set to what is used; all members are
// taken out one by one, alone and in atomic batches.
TEST(JointCalls, WhatFreesMemoryIsDoneWithoutMemory) {
  for (const size_t value_bytes : {size_t{256}, size_t{1} << 20}) {
    World world(value_bytes);
    Engine& engine = world.engine();
    Words words;
    for (int i = 0; i < 300; ++i) words.push_back(std::string(60, 'm') + std::to_string(i));
    std::string entries(1, '\0');
    for (const std::string& word : words) {
      entries.append(sizeof(double), '\0');
      entries += TextsOperand({word});
    }
    ASSERT_EQ(Call(engine, "list", "list-push-right", TextsOperand(words)).integer, 300);
    ASSERT_EQ(Call(engine, "set", "set-add", TextsOperand(words)).integer, 300);
    ASSERT_EQ(Call(engine, "zset", "zset-add", entries).integer, 300);
    // The engine first gives up what it can.
    Code code = Code::kOk;
    for (int i = 0; code == Code::kOk; ++i) {
      world.budget().set_limit(world.budget().used() - 1);
      code = Call(engine, "set", "set-add", TextsOperand({std::to_string(i)})).code;
    }
    ASSERT_EQ(code, Code::kOutOfMemory);
    for (int i = 0; i < 300; ++i) {
      const std::string word = TextsOperand({words[static_cast<size_t>(i)]});
      const std::string one = TextsOperand({"1"});
      ASSERT_EQ(Call(engine, "set", "set-remove", word).integer, 1) << i;
      Batch batch(i % 2 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      batch.Apply("zset", Named("zset-remove"), word);
      batch.Apply("list", Named("list-pop-left"), one);
      engine.AwaitRelease(engine.Execute(batch));
      ASSERT_EQ(batch.outcome(0).integer, 1) << i;
      ASSERT_EQ(batch.outcome(1).integer, 1) << i;
      // What the members took is free by and by.
      world.budget().set_limit(std::min(world.budget().limit(), world.budget().used() - 1));
    }
    ASSERT_EQ(engine.Verify(), nullptr);
  }
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

INSTANTIATE_TEST_SUITE_P(Engines, JointCallsTest, testing::Values("btree", "model"),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace skep::collections

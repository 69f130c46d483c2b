// Atomic batches with Batch::set_portion_bytes_max, which are left out where they would be long, or
// would wait for what is.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

class LeftOut : public testing::Test {
 protected:
  using By = types::RangeRequest::By;
  static constexpr size_t kPortion = 4096;
  static constexpr int kMembers = 3000;

  LeftOut() {
    for (int i = 0; i < kMembers; ++i) {
      Call(engine(), "set", "set-add", TextsOperand({Member(i)}));
      Call(engine(), "zset", "zset-add", EntryOf(i, i));
    }
  }

  static std::string Member(int i) { return "member" + std::to_string(10000 + i); }
  static std::string EntryOf(int i, double score) {
    std::string entry(1, '\0');
    entry.append(reinterpret_cast<const char*>(&score), sizeof score);
    return entry + TextsOperand({Member(i)});
  }
  static std::string RangeOperand(By by, const char* low, const char* high) {
    Scratch scratch;
    return std::string(types::WriteRangeRequest({.by = by}, low, high, scratch));
  }
  static bool IsLeftOut(const Batch& batch) {
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      if (batch.outcome(slot).verdict != Verdict::kPostponed) return false;
    }
    return !batch.applied();
  }

  // Executes the batch, which stores `name` under "plain", with the limit, and then without.
  void ExpectLeftOut(Batch& batch, std::string_view name, bool is_left_out) {
    const int64_t before = Length("zset");
    const uint64_t items_before = world_.reads().items;
    batch.set_portion_bytes_max(kPortion);
    engine().AwaitRelease(engine().Execute(batch));
    EXPECT_EQ(IsLeftOut(batch), is_left_out);
    EXPECT_EQ(batch.applied(), !is_left_out);
    // A portion has some 4,096 / 32 members.
    EXPECT_LE(world_.reads().items - items_before, 4 * kPortion / 16);
    Batch get;
    get.Get("plain");
    engine().Execute(get);
    EXPECT_EQ(get.outcome(0).value == name, !is_left_out);
    if (!is_left_out) return;
    EXPECT_EQ(Length("zset"), before);
    batch.set_portion_bytes_max(SIZE_MAX);
    engine().AwaitRelease(engine().Execute(batch));
    EXPECT_TRUE(batch.applied());
    ASSERT_EQ(engine().Verify(), nullptr);
  }

  Engine& engine() { return world_.engine(); }
  int64_t Length(std::string_view key) {
    return Call(engine(), key, std::string(key) + "-length", {}).integer;
  }
  // Executes on another thread, which ends: it has waited for nothing that this one holds.
  void ExecuteElsewhere(Batch& batch) {
    std::thread([&] { engine().Execute(batch); }).join();
  }

  World world_{1024};
};

// Goal: an atomic batch in which a call is long, or all calls together are, changes nothing and
// says so, having read little. Without the limit it is done; one of short calls is done with it.
TEST_F(LeftOut, IsWhatIsLong) {
  struct Case {
    const char* name;
    std::function<void(Batch&)> fill;
    bool is_left_out;
  };
  const auto cut = [](const char* first, const char* last) {
    return RangeOperand(By::kRank, first, last);
  };
  const std::string long_cut = cut("10", "1009");
  const std::string short_cut = cut("10", "12");
  const std::string all = cut("0", "-1");
  const std::string many = cut("0", "39");
  const std::string one = TextsOperand({Member(1)});
  const std::string entry = EntryOf(1, 7);
  const auto apply = [](Batch& batch, const char* key, const char* function,
                        std::string_view operand) { batch.Apply(key, Named(function), operand); };
  const Case cases[] = {
      {"a cut", [&](Batch& b) { apply(b, "zset", "zset-cut", long_cut); }, true},
      {"a short one", [&](Batch& b) { apply(b, "zset", "zset-cut", short_cut); }, false},
      {"reads", [&](Batch& b) { apply(b, "zset", "zset-range", all); }, true},
      {"a short read", [&](Batch& b) { apply(b, "zset", "zset-range", short_cut); }, false},
      {"a whole", [&](Batch& b) { b.Add({.op = Op::kGet, .type = types::kSet, .key = "set"}); },
       true},
      {"a part",
       [&](Batch& b) {
         apply(b, "set", "set-has", one);
         b.BeginPart();
         apply(b, "zset", "zset-cut", long_cut);
       },
       true},
      {"many short ones",
       [&](Batch& b) {
         for (int i = 0; i < 40; ++i) apply(b, "zset", "zset-cut", short_cut);
       },
       true},
      {"many short reads",
       [&](Batch& b) {
         for (int i = 0; i < 40; ++i) apply(b, "zset", "zset-range", many);
       },
       true},
      {"what is put into one value",
       [&](Batch& b) {
         apply(b, "zset", "zset-add", entry);
         b.Delete("zset");
       },
       true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Batch batch(Batch::Kind::kAtomic);
    batch.Put("plain", c.name);
    c.fill(batch);
    ExpectLeftOut(batch, c.name, c.is_left_out);
  }
}

// Goal: the same of batches that only read, which are answered at one snapshot.
TEST_F(LeftOut, IsWhatReadsMuch) {
  const std::string all = RangeOperand(By::kRank, "0", "-1");
  const std::string some = RangeOperand(By::kRank, "0", "39");
  for (const auto& [count, operand, is_left_out] :
       {std::tuple(1, &all, true), std::tuple(2, &some, false), std::tuple(60, &some, true)}) {
    Batch batch(Batch::Kind::kAtomic);
    batch.set_portion_bytes_max(kPortion);
    for (int i = 0; i < count; ++i) batch.Apply("zset", Named("zset-range"), *operand);
    const uint64_t items_before = world_.reads().items;
    engine().Execute(batch);
    EXPECT_EQ(IsLeftOut(batch), is_left_out) << count;
    EXPECT_LE(world_.reads().items - items_before, 1024u);
    EXPECT_EQ(engine().Statistics().snapshots, 0u);
    batch.set_portion_bytes_max(SIZE_MAX);
    engine().Execute(batch);
    EXPECT_TRUE(batch.applied());
    EXPECT_GT(batch.outcome(0).value.size(), 40u * 10);
  }
}

// Goal: while a call has the turn at a key, neither an atomic batch nor a call about the key waits,
// if their batches leave out what is long: they change nothing, and say so.
// Method: a cut whose attempts all fail, because a member is given another score before each batch
// of them, until such a write stays postponed: the cut has its turn then.
TEST_F(LeftOut, IsWhatWouldWaitForATurn) {
  int writes = 0;
  bool has_turn = false;
  std::function<void()> disturb = [&] {
    Batch write;
    write.set_portion_bytes_max(kPortion);
    write.Apply("zset", Named("zset-add"), write.scratch().Copy(EntryOf(500, 500 + ++writes % 2)));
    engine().Execute(write);
    has_turn = write.outcome(0).verdict == Verdict::kPostponed;
    ASSERT_LT(writes, 1000);
    if (!has_turn) return world_.reads().Interrupt(0, disturb);
    Batch atomic(Batch::Kind::kAtomic);
    atomic.set_portion_bytes_max(kPortion);
    atomic.Put("plain", "x");
    atomic.Apply("zset", Named("zset-score"), write.scratch().Copy(TextsOperand({Member(1)})));
    ExecuteElsewhere(atomic);
    EXPECT_TRUE(IsLeftOut(atomic));
    EXPECT_EQ(atomic.outcome(1).verdict, Verdict::kPostponed);
  };
  world_.reads().Interrupt(0, disturb);
  const Reply cut = Call(engine(), "zset", "zset-cut", RangeOperand(By::kRank, "400", "599"));
  EXPECT_TRUE(has_turn);
  EXPECT_EQ(cut.integer, 200);
  Batch atomic(Batch::Kind::kAtomic);
  atomic.set_portion_bytes_max(kPortion);
  atomic.Put("plain", "x");
  const std::string score = TextsOperand({Member(1)});
  atomic.Apply("zset", Named("zset-score"), score);
  engine().Execute(atomic);
  EXPECT_TRUE(atomic.applied());
}

// Goal: while an atomic batch has the lock of a key, neither another one nor a call that makes the
// key's collection a large one waits, if their batches leave out what is long.
TEST_F(LeftOut, IsWhatWouldWaitForALock) {
  Call(engine(), "small", "set-add", TextsOperand({Member(0)}));
  bool was_held = false;
  Batch holder(Batch::Kind::kAtomic);
  const std::string one = TextsOperand({Member(1)});
  holder.Apply("small", Named("set-add"), one);
  std::string grows;
  for (int i = 0; i < 200; ++i) grows += TextsOperand({Member(i)});
  world_.reads().Interrupt(0, [&] {
    Batch atomic(Batch::Kind::kAtomic);
    atomic.set_portion_bytes_max(kPortion);
    atomic.Put("plain", "x");
    atomic.Apply("small", Named("set-has"), one);
    ExecuteElsewhere(atomic);
    EXPECT_TRUE(IsLeftOut(atomic));
    Batch call;
    call.set_portion_bytes_max(64 * kPortion);
    call.Apply("small", Named("set-add"), grows);
    ExecuteElsewhere(call);
    EXPECT_EQ(call.outcome(0).verdict, Verdict::kPostponed);
    was_held = true;
  });
  engine().Execute(holder);
  EXPECT_TRUE(was_held);
  EXPECT_TRUE(holder.applied());
  EXPECT_EQ(Call(engine(), "small", "set-add", grows).integer, 198);
  EXPECT_EQ(Call(engine(), "small", "set-length", {}).integer, 200);
  ASSERT_EQ(engine().Verify(), nullptr);
}

// Goal: the sweep does not wait for the lock of a key that a call has, says that there is nothing
// more to do then, and comes back to what it has left.
TEST_F(LeftOut, IsNotWaitedForByTheSweep) {
  std::string members;
  for (int i = 0; i < kMembers; ++i) members += TextsOperand({Member(i)});
  Call(engine(), "gone", "set-add", members);
  const uint64_t items = world_.ItemsOf(Part::kMembers);
  Batch erase;
  erase.Delete("gone");
  engine().AwaitRelease(engine().Execute(erase));
  bool has_more = true;
  Batch holder(Batch::Kind::kAtomic);
  const std::string one = TextsOperand({Member(1)});
  holder.Apply("set", Named("set-add"), one);
  world_.reads().Interrupt(0, [&] {
    std::thread([&] {
      for (int i = 0; i < 10'000 && has_more; ++i) has_more = engine().Maintain(0);
    }).join();
  });
  engine().Execute(holder);
  EXPECT_TRUE(holder.applied());
  EXPECT_FALSE(has_more);
  world_.MaintainAll();
  EXPECT_LT(world_.ItemsOf(Part::kMembers), items);
  ASSERT_EQ(engine().Verify(), nullptr);
}

}  // namespace
}  // namespace skep::collections

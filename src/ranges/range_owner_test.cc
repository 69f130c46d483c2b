// Servers that know a map of ranges, and move ranges, beside a simulated coordinator.
#include "ranges/range_owner.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ranges/range_world_test.h"

namespace skep::ranges {
namespace {

using Phase = RangeMap::Phase;
using World = RangeWorld;

const RangeMap kTwo = {
    .entries = {{.lower = "", .target = "s0:1"}, {.lower = "m", .target = "s1:1"}}};

bool Serves(World& world, size_t server, std::string_view key) {
  return world.Get(server, key).verdict != Verdict::kRefused;
}
Code CodeOf(const Outcome& outcome) { return outcome.status.code(); }

TEST(RangeOwnerTest, ServesWhatTheMapSays) {
  World world(2);
  EXPECT_EQ(CodeOf(world.Get(0, "a")), Code::kUnavailable) << "there is no map yet";
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  EXPECT_EQ(world.Put(0, "a", "1").verdict, Verdict::kDone);
  EXPECT_EQ(CodeOf(world.Put(1, "a", "2")), Code::kMoved);
  world.Run(10'000);
  EXPECT_TRUE(Serves(world, 0, "a")) << "leases are renewed";
}

TEST(RangeOwnerTest, OneBatchOfSeveralRanges) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  Batch batch;
  batch.Put("a", "1");
  batch.Put("x", "2");
  batch.Get("a");
  world.owner(0).Execute(batch);
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(CodeOf(batch.outcome(1)), Code::kMoved);
  EXPECT_EQ(batch.outcome(2).value, "1");
  Batch atomic(Batch::Kind::kAtomic);
  atomic.Put("a", "3");
  atomic.Put("x", "4");
  world.owner(0).Execute(atomic);
  EXPECT_FALSE(atomic.applied());
  EXPECT_EQ(world.Get(0, "a").value, "1");
}

TEST(RangeOwnerTest, AFloorBelowItsRangesIsNotFound) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "x"); }));
  Batch left;  // as a copy that was broken off has left them
  left.Put("b", "foreign");
  world.engine(1).Execute(left);
  for (const char* const key : {"p", "q", "r"}) world.Put(1, key, "own");
  const auto scan = [&](std::string_view key, uint32_t limit) {
    Request request = {.op = Op::kScan,
                       .flags = Request::kSeekFloor | Request::kNoUpperBound,
                       .limit = limit,
                       .key = key};
    world.Do(1, request);
    std::string keys;
    for (const Item& item : world.batch.items(0)) keys += std::string(item.key) + " ";
    return keys;
  };
  EXPECT_EQ(scan("n", 3), "p q ");
  EXPECT_EQ(scan("n", kNoLimit), "p q r ");
  EXPECT_EQ(scan("q1", kNoLimit), "q r ");
  EXPECT_EQ(scan("n", 1), "");
  EXPECT_TRUE(world.batch.outcome(0).more);
  EXPECT_GE(world.batch.outcome(0).value, "m");
}

TEST(RangeOwnerTest, MovesARange) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  for (const char* const key : {"a", "f", "g", "l", "lz"}) world.Put(0, key, key);
  world.Put(1, "x", "x");
  Batch stale;  // an earlier copy has left it
  stale.Put("h", "stale");
  world.engine(1).Execute(stale);
  bool was_read_only = false;
  world.before_copy = [&] {
    was_read_only = CodeOf(world.Put(0, "g", "new")) == Code::kUnavailable &&
                    world.Get(0, "g").value == "g" &&
                    world.Put(0, "a", "A").verdict == Verdict::kDone;
  };
  ASSERT_TRUE(world.BeginMove("g", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "g"); }));
  EXPECT_TRUE(was_read_only);
  EXPECT_EQ(CodeOf(world.Get(0, "g")), Code::kMoved);
  EXPECT_EQ(world.Get(1, "lz").value, "lz");
  EXPECT_EQ(world.Get(1, "h").verdict, Verdict::kAbsent);
  EXPECT_EQ(world.Get(0, "f").value, "f");
  world.Run(100);
  EXPECT_EQ(world.ItemsAt(0), 2u) << "the keys are deleted where they were";
  EXPECT_EQ(world.ItemsAt(1), 4u);
  const RangeMap after = {.entries = {{.lower = "", .target = "s0:1"},
                                      {.lower = "g", .target = "s1:1"},
                                      {.lower = "m", .target = "s1:1"}}};
  RangeMap merged = after;
  merged.Merge();
  EXPECT_EQ(world.Map(), merged);
  // And back.
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "A");
}

// Goal: a write that is under way when the range becomes read-only is in the copy.
TEST(RangeOwnerTest, WaitsForBatchesUnderWay) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.engine(0).MeddleOnce([&] {
    ASSERT_TRUE(world.BeginMove("", 1).ok());
    world.Run(500);
    EXPECT_EQ(world.copies, 0);
  });
  EXPECT_EQ(world.Put(0, "a", "1").verdict, Verdict::kDone);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

// Goal: nobody serves a range while a read of it by the older map is under way.
TEST(RangeOwnerTest, OpensBehindReadsUnderWay) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  ASSERT_TRUE(Serves(world, 0, "a")) << "it is read-only";
  world.engine(0).MeddleOnce([&] {
    world.Run(500);
    EXPECT_FALSE(Serves(world, 1, "a"));
  });
  world.Get(0, "a");
  EXPECT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
}

// Goal: a server that is cut off stops before its range is given to another one, and says nothing
// that it has done without a lease.
TEST(RangeOwnerTest, StopsWithItsLease) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.Stop(0);  // its thread, so that it asks for no lease
  const uint64_t stopped_ns = world.sim.Now();
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  while (Serves(world, 0, "a")) {
    ASSERT_FALSE(Serves(world, 1, "a"));
    world.Step();
  }
  EXPECT_LE(world.sim.Now() - stopped_ns, World::kSessionMs * kMs * 3 / 4 + 5 * kMs);
  EXPECT_EQ(CodeOf(world.Get(0, "a")), Code::kUnavailable);
}

// Goal: a server of the service that is cut off from the majority gives no lease.
TEST(RangeOwnerTest, AMinorityGivesNoLease) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Run(
      200);  // it has told its version: a request that a majority must answer is never answered
  world.SetLink(0, SimCoordinatorLink::kMinority);
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  while (!Serves(world, 1, "a")) world.Step();
  EXPECT_FALSE(Serves(world, 0, "a"));
}

TEST(RangeOwnerTest, TellsNothingThatWasDoneAfterItsLease) {
  World world(1);
  world.Make({.entries = {{.lower = "", .target = "s0:1"}}});
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.Stop(0);
  world.engine(0).MeddleOnce([&] { world.Run(World::kSessionMs); });
  EXPECT_EQ(CodeOf(world.Put(0, "a", "1")), Code::kUnavailable);
}

// Goal: the range of a server that is gone can be given away, once its session has ended.
TEST(RangeOwnerTest, OpensWhenTheOtherIsGone) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  world.Kill(0);
  EXPECT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
}

// Goal: a range that went back to its server while it was copied is copied anew.
TEST(RangeOwnerTest, ACopyOfAnEarlierMoveIsNotUsed) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "old");
  world.copy_ns = 200 * kMs;
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  world.Stop(1);
  RangeMap map = world.Map();
  ASSERT_TRUE(map.CancelMove("").ok());
  ASSERT_TRUE(world.Replace(map));
  ASSERT_TRUE(world.RunUntil([&] { return world.Put(0, "a", "new").verdict == Verdict::kDone; }));
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  world.Run(100);
  world.Resume(1);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "new");
  EXPECT_EQ(world.copies, 2);
}

TEST(RangeOwnerTest, ACancelledMoveLeavesNothing) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.copy_ns = 1000 * kMs;
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  EXPECT_EQ(world.ItemsAt(1), 1u);
  EXPECT_EQ(world.BeginMove("", 1).code(), Code::kUnavailable);
  RangeMap map = world.Map();
  ASSERT_TRUE(map.CancelMove("").ok());
  ASSERT_TRUE(world.Replace(map));
  world.Run(2000);
  EXPECT_EQ(world.ItemsAt(1), 0u);
  EXPECT_EQ(world.Put(0, "a", "2").verdict, Verdict::kDone);
}

TEST(RangeOwnerTest, AServerThatComesBackIsCopied) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.Stop(0);
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  world.Run(2 * World::kSessionMs);  // the service has ended its session
  EXPECT_EQ(world.copies, 0);
  world.Resume(0);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

TEST(RangeOwnerTest, ACopyThatFailsIsBegunAgain) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.before_copy = [&] {
    world.engine(0).MeddleOnce(
        [&] { world.Stop(0), world.Run(World::kSessionMs), world.Resume(0); });
  };
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.copies, 2);
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

}  // namespace
}  // namespace skep::ranges

// Calls about members of large sorted sets whose segments of scores, or of members, nobody reads.
#include "collections/exchanges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/testing/collection_world_test.h"
#include "types/sorted_set.h"

namespace skep::collections {
namespace {

struct NamedCall {
  std::string function;
  std::string operand;
};

std::string AdditionOf(uint8_t rule, const std::vector<types::Entry>& entries) {
  Scratch scratch;
  return static_cast<char>(rule) + std::string(types::WriteEntries(entries, scratch));
}
NamedCall Add(double score, std::string_view member, uint8_t rule = 0) {
  return {"zset-add", AdditionOf(rule, {{.score = score, .member = member}})};
}
NamedCall PopOf(bool is_highest, uint64_t count) {
  return {is_highest ? "zset-pop-highest" : "zset-pop-lowest",
          TextsOperand({std::to_string(count)})};
}

class ExchangesTest : public testing::TestWithParam<std::string> {
 protected:
  // Executes the calls as one batch; returns their replies.
  static std::vector<Reply> Run(Engine& engine, const std::vector<NamedCall>& calls) {
    Batch batch;
    for (const NamedCall& call : calls) batch.Apply("zset", Named(call.function), call.operand);
    engine.AwaitRelease(engine.Execute(batch));
    std::vector<Reply> replies;
    for (uint32_t slot = 0; slot < calls.size(); ++slot) {
      replies.push_back(ReplyOf(batch.outcome(slot)));
    }
    return replies;
  }
  static std::string Member(uint64_t i) { return "member:" + std::to_string(i); }
  // Makes a sorted set of so many members, whose segments are known.
  void MakeSet(World& world, uint64_t members) {
    std::mt19937 rng(1);
    for (uint64_t from = 0; from < members; from += 200) {
      std::vector<NamedCall> calls;
      for (uint64_t i = from; i < from + 200; ++i) {
        calls.push_back(Add(static_cast<double>(i * 7919 % 100003), Member(i)));
      }
      Run(world.engine(), calls);
    }
    for (int round = 0; round < 10; ++round) {
      std::vector<NamedCall> calls;
      for (int i = 0; i < 200; ++i) {
        calls.push_back(Add(static_cast<double>(rng() % 100003), Member(rng() % members)));
      }
      Run(world.engine(), calls);
    }
  }
};

// Random calls on a sorted set. Scores are few, so that many are equal, with infinite ones and
// minus zero, or all different; members are of all byte values and up to 300 bytes; options are all
// there are.
class RandomCalls {
 public:
  explicit RandomCalls(unsigned seed) : rng_(seed) {}
  uint64_t Below(uint64_t end) { return rng_() % end; }
  void set_few_scores(bool few) { few_scores_ = few; }
  double Score() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double odd[] = {-kInfinity, kInfinity, -0.0, 0.0, -1e-300, 1e300, -7};
    if (Below(20) == 0) return odd[Below(std::size(odd))];
    return few_scores_ ? static_cast<double>(Below(5)) : static_cast<double>(rng_()) / 64 - 3e7;
  }
  std::string Member() {
    if (Below(100) == 0) return std::string(Below(300), static_cast<char>(rng_()));
    return static_cast<char>(Below(4) == 0 ? rng_() : 'a') + std::to_string(Below(1500));
  }
  uint8_t Rule() {
    using enum types::AddRule;
    const int rules[] = {kAddNew,
                         kAddExisting,
                         kAddGreater,
                         kAddLess,
                         kAddOne,
                         kAddChanged,
                         kAddOne | kAddNew,
                         kAddOne | kAddExisting,
                         kAddOne | kAddGreater,
                         kAddExisting | kAddGreater | kAddChanged,
                         kAddLess | kAddChanged};
    return Below(2) == 0 ? uint8_t{0} : static_cast<uint8_t>(rules[Below(std::size(rules))]);
  }
  NamedCall Addition() {
    Words names(Below(10) == 0 ? Below(4) : 1);
    std::vector<types::Entry> entries;
    for (std::string& name : names) {
      name = Member();
      entries.push_back({.score = Score(), .member = name});
    }
    return {"zset-add", AdditionOf(Rule(), entries)};
  }
  NamedCall Any() {
    switch (Below(12)) {
      case 0:
        return {"zset-remove", TextsOperand({Member(), Member()})};
      case 1:
        return {"zset-score", TextsOperand({Member()})};
      case 2:
      case 3:
      case 4:
        return PopOf(Below(2) == 0, Below(8) == 0 ? Below(100) : Below(3));
      default:
        return Addition();
    }
  }

 private:
  std::mt19937 rng_;
  bool few_scores_ = false;
};

// Goal: calls made so do what they do to a sorted set in one value, whatever else is done to it
// between them.
// Method: batches of random calls go to sorted sets of segments of 64 bytes, or of 1 KiB, and to
// one in one value; replies are equal, and so are the sorted sets at the end, and all invariants
// hold.
TEST_P(ExchangesTest, AgreeWithOneValue) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomCalls random(seed);
  for (const size_t value_bytes : {256, 8192}) {
    World parts(value_bytes, GetParam());
    World whole(0, GetParam());
    for (int round = 0; round < 150; ++round) {
      random.set_few_scores(round % 40 < 10);
      const bool only_adds = random.Below(2) == 0;
      std::vector<NamedCall> calls(random.Below(4) == 0 ? random.Below(4) + 1 : random.Below(150));
      for (NamedCall& call : calls) call = only_adds ? random.Addition() : random.Any();
      if (random.Below(100) == 0) calls.push_back({"zset-add", "odd"});
      ASSERT_EQ(Run(parts.engine(), calls), Run(whole.engine(), calls)) << "round " << round;
      if (round % 60 == 59) {
        for (World* const world : {&parts, &whole}) {
          Batch batch;
          batch.Delete("zset");
          world->engine().AwaitRelease(world->engine().Execute(batch));
          world->MaintainAll();
        }
      }
      if (round % 10 == 9) {
        ASSERT_EQ(parts.engine().Verify(), nullptr) << "round " << round;
      }
    }
    Scratch scratch;
    const std::string all(types::WriteRangeRequest({}, "0", "-1", scratch));
    EXPECT_EQ(Call(parts.engine(), "zset", "zset-range", all),
              Call(whole.engine(), "zset", "zset-range", all));
    EXPECT_EQ(parts.engine().Verify(), nullptr);
    EXPECT_EQ(parts.engine().Statistics().items, whole.engine().Statistics().items);
  }
}

// Goal: a group of additions reads the segments of its members and the record, and no segment of
// scores and no node of counts; it is one write.
TEST_P(ExchangesTest, AdditionsReadNoScores) {
  World world(8192, GetParam());
  MakeSet(world, 6000);
  ReadCounter& counts = world.reads();
  std::vector<NamedCall> calls;
  // Members and scores that lie apart.
  for (uint64_t i = 0; i < 100; ++i) {
    calls.push_back(Add(static_cast<double>(i * 1000) + 0.5, Member(i * 57)));
  }
  const uint64_t batches = counts.batches;
  const uint64_t gets = counts.gets;
  const uint64_t scans = counts.scans;
  const uint64_t applies = counts.applies;
  Run(world.engine(), calls);
  EXPECT_EQ(counts.scans - scans, 0u);
  // The record before, with the segments of members, and what is mended.
  EXPECT_LE(counts.gets - gets, 100u + 2 + 4);
  EXPECT_LE(counts.batches - batches, 3u + 3);
  // A member takes its segment and two of scores; the nodes and the record are written once.
  const uint64_t nodes = world.ItemsOf(Part::kCounts) + world.ItemsOf(CountsPart(1));
  EXPECT_GT(counts.applies - applies, 200u);
  EXPECT_LE(counts.applies - applies, 300u + nodes + 1 + 8);
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

// Goal: a group of pops reads the segments of scores at the end, and no segment of members.
TEST_P(ExchangesTest, PopsReadNoMembers) {
  World world(8192, GetParam());
  MakeSet(world, 6000);
  ReadCounter& counts = world.reads();
  const uint64_t gets = counts.gets;
  const uint64_t scans = counts.scans;
  const uint64_t batches = counts.batches;
  const std::vector<NamedCall> calls(100, PopOf(false, 1));
  Run(world.engine(), calls);
  // The record, what is mended, and a scan of the end: the members would be 90 segments.
  EXPECT_LE(counts.scans - scans, 4u);
  EXPECT_LE(counts.gets - gets, 20u);
  EXPECT_LE(counts.batches - batches, 20u);
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

// Goal: pops that are made together read no member alone where segments have few entries, either.
// Method: many members come to the low end, spread among the other ones by name, and most of them
// go again, so that segments of scores have a bit more than one that is joined with its neighbour.
// What is read by its key is counted, which is a segment for each member that is read alone.
TEST_P(ExchangesTest, PopsOfSparseSegmentsReadAhead) {
  World world(8192, GetParam());
  MakeSet(world, 6000);
  std::vector<NamedCall> additions;
  std::vector<NamedCall> removals;
  for (uint64_t i = 0; i < 1500; ++i) {
    const std::string name = Member(4 * i) + "+";
    additions.push_back(Add(static_cast<double>(2 * i), name));
    if (i % 4 != 0) removals.push_back({"zset-remove", TextsOperand({name})});
  }
  Run(world.engine(), additions);
  Run(world.engine(), removals);
  const uint64_t gets = world.reads().gets;
  const auto replies = Run(world.engine(), std::vector<NamedCall>(250, PopOf(false, 1)));
  EXPECT_LE(world.reads().gets - gets, 40u);
  for (const Reply& reply : replies) EXPECT_FALSE(reply.value.empty());
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

// Goal: a member whose score stays writes nothing, beside others or alone.
TEST_P(ExchangesTest, WriteNothingThatStays) {
  World world(8192, GetParam());
  MakeSet(world, 3000);
  std::vector<NamedCall> calls;
  for (uint64_t i = 0; i < 50; ++i) calls.push_back(Add(static_cast<double>(i), Member(i)));
  Run(world.engine(), calls);
  const auto scores = world.ContentsOf(Part::kScores);
  for (const Reply& reply : Run(world.engine(), calls)) EXPECT_EQ(reply.integer, 0);
  EXPECT_EQ(world.ContentsOf(Part::kScores), scores);
  calls.push_back(Add(100.5, Member(100)));
  Run(world.engine(), calls);
  size_t changed = 0;
  for (const auto& [key, value] : world.ContentsOf(Part::kScores)) {
    const auto old = scores.find(key);
    changed += old == scores.end() || old->second != value ? 1 : 0;
  }
  EXPECT_GE(changed, 1u);
  EXPECT_LE(changed, 2u);
}

// Goal: segments that exchanges have made long are divided, and those of which they have left
// little are joined.
TEST_P(ExchangesTest, SegmentsAreMended) {
  World world(8192, GetParam());
  MakeSet(world, 6000);
  constexpr size_t kSegmentBytes = 1024;
  std::mt19937 rng(3);
  // All scores come into a few segments, but only some with each batch.
  for (int round = 0; round < 300; ++round) {
    std::vector<NamedCall> calls;
    for (uint64_t i = 0; i < 20; ++i) {
      calls.push_back(
          Add(static_cast<double>(rng() % 10) * 1e4 + 1e-3 * static_cast<double>(rng() % 1000),
              Member(rng() % 6000)));
    }
    Run(world.engine(), calls);
    for (const auto& [key, value] : world.ContentsOf(Part::kScores)) {
      ASSERT_LE(types::ReadSegment(value)->body.size(), kSegmentBytes) << round;
    }
  }
  ASSERT_EQ(world.engine().Verify(), nullptr);
  // Most members go, by pops, from segments of all members.
  const uint64_t before = world.ItemsOf(Part::kMembers);
  for (int round = 0; round < 290; ++round) {
    Run(world.engine(), std::vector<NamedCall>(20, PopOf(round % 2 == 0, 1)));
  }
  EXPECT_EQ(Call(world.engine(), "zset", "zset-length", {}).integer, 200);
  EXPECT_LT(world.ItemsOf(Part::kMembers) * 5, before);
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

// Goal: neighbours that one group empties leave no empty segment: no later call would come to it.
// Method: members of 300 bytes, three to a segment, come at the end and go at the front.
TEST_P(ExchangesTest, NeighboursThatBecomeEmptyGo) {
  World world(8192, GetParam());
  const auto long_member = [](uint64_t i) {
    std::string name = std::to_string(i);
    return std::string(300 - name.size(), 'm') + name;
  };
  constexpr uint64_t kMembers = 600;
  uint64_t last = 0;
  for (; last < kMembers; ++last) {
    Run(world.engine(), {Add(static_cast<double>(last), long_member(last))});
  }
  for (uint64_t first = 0; first < 3 * kMembers;) {
    std::vector<NamedCall> calls;
    for (int i = 0; i < 20; ++i, ++last) {
      calls.push_back(Add(static_cast<double>(last), long_member(last)));
    }
    Run(world.engine(), calls);
    calls.clear();
    for (int i = 0; i < 20; ++i, ++first) {
      calls.push_back({"zset-remove", TextsOperand({long_member(first)})});
    }
    for (const Reply& reply : Run(world.engine(), calls)) ASSERT_EQ(reply.integer, 1);
    for (const Part part : {Part::kScores, Part::kMembers}) {
      size_t empty = 0;
      for (const auto& [key, value] : world.ContentsOf(part)) {
        empty += types::ReadSegment(value)->pieces == 0 ? 1 : 0;
      }
      ASSERT_LE(empty, 1u) << first;  // the last one may be
    }
  }
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

// Goal: whatever hints say, a group changes what its calls say or nothing, and a group that is
// tried again with corrected hints succeeds.
// Method: hints of a sorted set are read; then its segments are divided and joined by others, who
// have hints of their own; calls are made with the old hints until they succeed.
TEST_P(ExchangesTest, WrongHintsAreCorrected) {
  World world(8192, GetParam());
  MakeSet(world, 3000);
  std::mt19937 rng(7);
  int64_t wrong = 0;
  for (int round = 0; round < 20; ++round) {
    SegmentHints hints;
    Access loads(world.reads(), 0, 1024, {}, &hints);
    const auto record = loads.Record("zset", types::kSortedSet);
    ASSERT_TRUE(record);
    ASSERT_TRUE(hints.Want(loads, record->id, SegmentHints::kWanted));
    // Segments are divided, or joined.
    std::vector<NamedCall> others;
    for (uint64_t i = 0; i < 200; ++i) {
      others.push_back(round % 2 == 0 ? Add(static_cast<double>(rng() % 3000), Member(rng()))
                                      : PopOf(rng() % 2 == 0, 2));
    }
    Run(world.engine(), others);
    for (int call = 0; call < 20; ++call) {
      const std::string name = "new:" + std::to_string(round * 100 + call);
      const auto score = static_cast<double>(rng() % (round % 2 == 0 ? 3000 : 100003));
      const std::string operand = Add(score, name).operand;
      bool is_done = false;
      // Each try corrects a hint at least.
      for (int tries = 0; tries < 100 && !is_done; ++tries) {
        Access access(world.reads(), 0, 1024, {}, &hints);
        const auto now = access.Record("zset", types::kSortedSet);
        ASSERT_TRUE(now);
        const FunctionCall one = {.function = Named("zset-add"), .operand = operand};
        std::vector<Answer> answers;
        is_done = JointCalls::Of(access, "zset", types::kSortedSet, *now)
                      ->Run(std::span(&one, 1), &answers);
        if (is_done) {
          ASSERT_EQ(answers.front().integer, 1);
        } else {
          ASSERT_TRUE(access.TakeWrongHint());
          ++wrong;
        }
      }
      ASSERT_TRUE(is_done) << "round " << round;
    }
    ASSERT_EQ(world.engine().Verify(), nullptr) << "round " << round;
  }
  EXPECT_GT(wrong, 20) << "hardly any hint was wrong";
}

// Goal: between the reads of a group and its write another call may change any of its members, and
// the segments; each call still takes effect at one instant.
// Method: scores of a few members are counted up by zset-add with kAddOne, also by a call in
// between any two batches of another one; no addition is lost.
TEST_P(ExchangesTest, NothingIsLostInBetween) {
  World world(8192, GetParam());
  MakeSet(world, 3000);
  std::vector<NamedCall> zero;
  for (uint64_t i = 0; i < 30; ++i) zero.push_back(Add(0, Member(i * 100)));
  Run(world.engine(), zero);
  double expected = 0;
  for (int others = 0; others < 8; ++others) {
    for (const bool pops : {false, true}) {
      std::vector<NamedCall> calls;
      for (uint64_t i = 0; i < 30; ++i) calls.push_back(Add(1, Member(i * 100), types::kAddOne));
      if (pops) calls.push_back(PopOf(true, 3));
      world.reads().Interrupt(others, [&] {
        Run(world.engine(), {Add(1, Member(100), types::kAddOne), PopOf(true, 2)});
        expected += 1;
      });
      Run(world.engine(), calls);
      world.reads().Interrupt(0, nullptr);
      expected += 1;
    }
  }
  std::string score =
      Call(world.engine(), "zset", "zset-score", TextsOperand({Member(100)})).value.substr(1);
  double found = 0;
  ASSERT_EQ(score.size(), sizeof(found));
  std::memcpy(&found, score.data(), sizeof(found));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(world.engine().Verify(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, ExchangesTest, testing::Values("btree", "model"),
                         [](const auto& with) { return with.param; });

}  // namespace
}  // namespace skep::collections

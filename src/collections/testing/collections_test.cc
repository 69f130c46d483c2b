// Collections in parts agree with collections in one value, and are whole at every moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "collections/layout.h"
#include "collections/pieces.h"
#include "collections/sweeper.h"
#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

// Draws operands: few members, so that they meet, of all kinds of bytes and lengths.
class Draws {
 public:
  explicit Draws(unsigned seed) : rng_(seed) {}

  size_t Below(size_t bound) { return rng_() % bound; }
  std::string Member() {
    static const std::string kBytes("\x00\x01 az\x7f\x80\xff", 9);
    const size_t kind = Below(20);
    if (kind == 0) return {};
    if (kind == 1) return std::string(120 + Below(12), kBytes[Below(kBytes.size())]);
    std::string text;
    for (size_t i = Below(3) + 1; i > 0; --i) text += kBytes[Below(kBytes.size())];
    return text;
  }
  std::string Number() { return std::to_string(static_cast<int>(Below(9)) - 4); }
  Words Members(size_t most) {
    Words words;
    for (size_t i = Below(most) + 1; i > 0; --i) words.push_back(Member());
    return words;
  }
  double Score() {
    static const double kScores[] = {0,      -0.0,     1,         -1,     2.5, 1e300,
                                     -1e300, HUGE_VAL, -HUGE_VAL, 1e-300, 7};
    return kScores[Below(std::size(kScores))];
  }
  std::string Entries(uint8_t rule, size_t most) {
    std::string operand(1, static_cast<char>(rule));
    for (size_t i = Below(most) + 1; i > 0; --i) {
      const double score = Score();
      operand.append(reinterpret_cast<const char*>(&score), sizeof score);
      operand += TextsOperand({Member()});
    }
    return operand;
  }
  std::string ScoreBound() {
    static const char* const kBounds[] = {"-inf", "+inf", "0", "(0", "1", "(1", "2.5", "(-1", "7"};
    return kBounds[Below(std::size(kBounds))];
  }
  std::string MemberBound() {
    const size_t kind = Below(6);
    if (kind == 0) return "-";
    if (kind == 1) return "+";
    return (kind < 4 ? "[" : "(") + Member();
  }
  std::string RangeOperand() {
    types::RangeRequest request;
    if (Below(3) == 0) {
      request.offset = static_cast<int64_t>(Below(5)) - 1;
      request.count = static_cast<int64_t>(Below(6)) - 1;
    }
    request.reverse = static_cast<uint8_t>(Below(2));
    request.by = static_cast<types::RangeRequest::By>(Below(3));
    std::string operand(reinterpret_cast<const char*>(&request), sizeof request);
    switch (request.by) {
      case types::RangeRequest::By::kRank:
        return operand + TextsOperand({Rank(), Rank()});
      case types::RangeRequest::By::kScore:
        return operand + TextsOperand({ScoreBound(), ScoreBound()});
      case types::RangeRequest::By::kMember:
        return operand + TextsOperand({MemberBound(), MemberBound()});
    }
    return operand;
  }
  std::string Rank() { return std::to_string(static_cast<int>(Below(60)) - 30); }

 private:
  std::mt19937 rng_;
};

struct Step {
  std::string key;
  std::string function;
  std::string operand;
};

Step HashStep(Draws& draws) {
  switch (draws.Below(9)) {
    case 0:
    case 1:
    case 2: {
      Words words;
      for (const std::string& field : draws.Members(draws.Below(8) == 0 ? 20 : 3)) {
        words.push_back(field);
        words.push_back(draws.Number());
      }
      return {"hash", "hash-set", TextsOperand(words)};
    }
    case 3:
      return {"hash", "hash-set-new", TextsOperand({draws.Member(), draws.Member()})};
    case 4:
      return {"hash", "hash-get", TextsOperand(draws.Members(12))};
    case 5:
      return {"hash", "hash-value-bytes", TextsOperand({draws.Member()})};
    case 6:
      return {"hash", "hash-delete", TextsOperand(draws.Members(draws.Below(9) == 0 ? 60 : 4))};
    case 7:
      return {"hash", "hash-add", TextsOperand({draws.Member(), draws.Number()})};
    default:
      return {"hash", "hash-length", {}};
  }
}

Step SetStep(Draws& draws) {
  switch (draws.Below(7)) {
    case 0:
    case 1:
      return {"set", "set-add", TextsOperand(draws.Members(5))};
    case 2:
      return {"set", "set-remove", TextsOperand(draws.Members(draws.Below(9) == 0 ? 60 : 4))};
    case 3:
      return {"set", "set-has", TextsOperand(draws.Members(6))};
    case 4:
      return {"set", "set-all", {}};
    case 5:
      return {"set", "set-take", TextsOperand({draws.Member()})};
    default:
      return {"set", "set-length", {}};
  }
}

Step SortedSetStep(Draws& draws) {
  static constexpr uint8_t kRules[] = {0, 0, 0, 1, 2, 4, 8, 16, 20, 6, 18};
  switch (draws.Below(11)) {
    case 9:
    case 10:
      return {"zset", draws.Below(2) == 0 ? "zset-pop-lowest" : "zset-pop-highest",
              TextsOperand({std::to_string(draws.Below(draws.Below(9) == 0 ? 90 : 4))})};
    case 0:
    case 1:
    case 2:
      return {"zset", "zset-add", draws.Entries(kRules[draws.Below(std::size(kRules))], 4)};
    case 3:
      return {"zset", "zset-add", draws.Entries(32, 1)};
    case 4:
      return {"zset", "zset-remove", TextsOperand(draws.Members(draws.Below(9) == 0 ? 60 : 3))};
    case 5:
      return {"zset", "zset-score", TextsOperand(draws.Members(5))};
    case 6:
      return {"zset", draws.Below(2) == 0 ? "zset-rank" : "zset-rank-from-end",
              TextsOperand({draws.Member()})};
    case 7:
      return {"zset", draws.Below(3) == 0 ? "zset-count" : "zset-range", draws.RangeOperand()};
    default:
      return {"zset", draws.Below(3) == 0 ? "zset-cut" : "zset-range", draws.RangeOperand()};
  }
}

Step ListStep(Draws& draws) {
  static const char* const kEnds[] = {"left", "right"};
  static const char* const kSides[] = {"before", "after"};
  const std::string end = kEnds[draws.Below(2)];
  switch (draws.Below(11)) {
    case 0:
    case 1:
    case 2:
      return {"list", "list-push-" + end, TextsOperand(draws.Members(4))};
    case 3:
      return {"list", "list-pushx-" + end, TextsOperand(draws.Members(2))};
    case 4:
      return {"list", "list-pop-" + end,
              TextsOperand({std::to_string(draws.Below(draws.Below(9) == 0 ? 90 : 4))})};
    case 5:
      return {"list", "list-rotate", TextsOperand({end, kEnds[draws.Below(2)]})};
    case 6:
      return {"list", "list-range", TextsOperand({draws.Rank(), draws.Rank()})};
    case 7:
      if (draws.Below(2) == 0) {
        return {"list", "list-index",
                TextsOperand({draws.Below(9) == 0 ? draws.Member() : draws.Rank()})};
      }
      return {"list", "list-find",
              TextsOperand({draws.Member(), draws.Number(), std::to_string(draws.Below(4)),
                            std::to_string(draws.Below(3) * 17)})};
    case 8:
      return {"list", "list-set", TextsOperand({draws.Rank(), draws.Member()})};
    case 9:
      return {"list", "list-remove", TextsOperand({draws.Number(), draws.Member()})};
    default:
      if (draws.Below(4) == 0) return {"list", "list-trim", TextsOperand({"1", "-2"})};
      if (draws.Below(20) == 0) {
        return {"list", "list-trim", TextsOperand({draws.Rank(), draws.Rank()})};
      }
      return {"list", "list-insert",
              TextsOperand({kSides[draws.Below(2)], draws.Member(), draws.Member()})};
  }
}

Step AnyStep(Draws& draws) {
  switch (draws.Below(4)) {
    case 0:
      return HashStep(draws);
    case 1:
      return SetStep(draws);
    case 2:
      return SortedSetStep(draws);
    default:
      return ListStep(draws);
  }
}

class CollectionsTest : public testing::TestWithParam<std::string> {
 protected:
  // What both answer to the same batch, and what is left, must be equal.
  void Compare(World& parts, World& whole, Draws& draws, int steps) {
    for (int step = 0; step < steps; ++step) {
      const Step next = AnyStep(draws);
      SCOPED_TRACE(testing::Message() << "step " << step << " " << next.function);
      ASSERT_EQ(Call(parts.engine(), next.key, next.function, next.operand),
                Call(whole.engine(), next.key, next.function, next.operand));
      if (step % 32 == 0) {
        ASSERT_EQ(parts.engine().Verify(), nullptr);
        parts.MaintainAll();
      }
    }
  }
};

// Goal: every function answers for a collection in parts what it answers for one in one value.
// Method: the same random calls go to an engine whose collections are cut after 40 bytes, and to
// one whose collections are whole; every answer is compared, and the invariants are checked.
TEST_P(CollectionsTest, AgreeWithCollectionsInOneValue) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Draws draws(seed);
  for (const size_t bytes : {40, 300}) {
    World parts(bytes, GetParam());
    World whole(0, GetParam());
    Compare(parts, whole, draws, 3000);
    ASSERT_EQ(parts.engine().Statistics().items, whole.engine().Statistics().items);
  }
}

// Goal: in a batch, requests on one key keep their order, whichever are set aside.
// Method: batches of several calls, with deletes, gets and renames of the same keys between them,
// go to both engines; all verdicts, numbers and values must be equal.
TEST_P(CollectionsTest, BatchesKeepTheOrderOfAKey) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Draws draws(seed);
  World parts(48, GetParam());
  World whole(0, GetParam());
  for (int round = 0; round < 1200; ++round) {
    // In most rounds calls on one key follow each other, which are made together.
    const size_t kind_of_steps = draws.Below(4);
    const bool is_atomic = round % 3 != 1;
    const bool has_parts = round % 3 == 0;
    const auto kind = is_atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
    std::vector<Step> steps;
    for (size_t i = draws.Below(12) + 1; i > 0; --i) {
      Step step = kind_of_steps == 0   ? SortedSetStep(draws)
                  : kind_of_steps == 1 ? ListStep(draws)
                                       : AnyStep(draws);
      const size_t other = draws.Below(kind_of_steps < 2 ? 60 : 14);
      if (other == 0) step.function = "delete";
      if (other == 1) step.function = "look";
      if (other == 2 && is_atomic) step.function = "move";
      if (other == 3) step.function = "put";
      if (is_atomic && draws.Below(8) == 0) step.function = "transfer";
      steps.push_back(step);
    }
    const std::string one = TextsOperand({"1"});
    const auto run = [&](World& world, std::vector<Reply>* replies) {
      Batch batch(kind);
      for (const Step& step : steps) {
        if (has_parts) batch.BeginPart();
        if (step.function == "delete") {
          batch.Delete(step.key);
        } else if (step.function == "look") {
          batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = 9, .key = step.key});
        } else if (step.function == "move") {
          batch.Move(step.key, "other");
        } else if (step.function == "put") {
          batch.Put(step.key, "a string");
        } else if (step.function == "transfer") {
          const bool leaves = step.operand.size() % 2 == 0;
          const uint32_t taken =
              batch.Apply(leaves ? "list" : "other", Named("list-pop-left"), one);
          batch.Add({.op = Op::kApply,
                     .flags = Request::kOperandOfSlot | Request::kUnlessNone,
                     .limit = taken,
                     .key = leaves ? "other" : "list",
                     .function = Named("list-push-right")});
        } else {
          batch.Apply(step.key, Named(step.function), step.operand);
        }
      }
      world.engine().AwaitRelease(world.engine().Execute(batch));
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        replies->push_back(ReplyOf(batch.outcome(slot)));
      }
    };
    std::vector<Reply> in_parts;
    std::vector<Reply> in_one;
    run(parts, &in_parts);
    run(whole, &in_one);
    ASSERT_EQ(in_parts.size(), in_one.size());
    for (size_t i = 0; i < in_one.size(); ++i) {
      ASSERT_EQ(in_parts[i], in_one[i])
          << "round " << round << " slot " << i << (is_atomic ? " atomic" : "");
    }
    ASSERT_EQ(parts.engine().Verify(), nullptr) << "round " << round;
    if (round % 16 == 0) parts.MaintainAll();
  }
}

// Goal: scans, counts, samples and deletes of ranges see keys and no parts.
// Method: large collections lie among strings; every kind of range is asked for, from both ends and
// beyond the keys that a user can have.
TEST_P(CollectionsTest, RangesSeeNoParts) {
  World world(64, GetParam());
  Engine& engine = world.engine();
  for (int i = 0; i < 200; ++i) {
    Call(engine, "set", "set-add", TextsOperand({"member" + std::to_string(i)}));
  }
  Batch put;
  put.Put("a", "1");
  put.Put(std::string_view("\xff\xff\xff\xff\xff\xff\xff", 7), "2");
  engine.AwaitRelease(engine.Execute(put));
  const std::string beyond = std::string(kHiddenFrom) + "x";
  Batch batch;
  batch.Scan(Range::All());
  batch.Scan(Range::All(), {.reverse = true});
  batch.Scan(Range::From(beyond));
  batch.Scan(Range::From(beyond), {.seek_floor = true});
  batch.Count(Range::All());
  batch.Count(Range::Between("b", beyond));
  engine.AwaitRelease(engine.Execute(batch));
  EXPECT_EQ(batch.items(0).size(), 3u);
  EXPECT_EQ(batch.items(1).size(), 3u);
  EXPECT_EQ(batch.items(2).size(), 0u);
  ASSERT_EQ(batch.items(3).size(), 1u);
  EXPECT_EQ(batch.items(3).front().key.size(), 7u);
  EXPECT_EQ(batch.outcome(4).integer, 3);
  EXPECT_EQ(batch.outcome(5).integer, 2);
  EXPECT_EQ(engine.Statistics().items, 3u);
  for (uint64_t i = 0; i < 200; ++i) {
    Batch sample;
    sample.Sample(i * 0x9e3779b97f4a7c15u);
    engine.Execute(sample);
    ASSERT_EQ(sample.items(0).size(), 1u);
    EXPECT_LT(sample.items(0).front().key, kHiddenFrom);
  }
  Batch refused;
  refused.Get(beyond);
  refused.Put(beyond, "x");
  refused.Delete(kHiddenFrom);
  refused.Add({.op = Op::kPut, .type = types::kSegment, .key = "a", .value = "x"});
  refused.Apply("set", Named("large-set-change"), "x");
  refused.Get("a");
  engine.Execute(refused);
  for (uint32_t slot = 0; slot < 5; ++slot) {
    EXPECT_EQ(refused.outcome(slot).status.code(), Code::kInvalidArgument) << slot;
  }
  EXPECT_EQ(refused.outcome(5).value, "1");
  EXPECT_FALSE(engine.Watch(beyond, 0).has_value());
  Batch range;
  range.DeleteRange(Range::From("b"));
  engine.AwaitRelease(engine.Execute(range));
  EXPECT_EQ(range.outcome(0).integer, 2);
  EXPECT_EQ(Call(engine, "set", "set-length", {}).integer, 0);
  world.MaintainAll();
  EXPECT_EQ(engine.Statistics().items, 1u);
  EXPECT_EQ(engine.Verify(), nullptr);
}

uint64_t Described(Engine& engine, std::string_view name) {
  uint64_t found = 0;
  engine.Describe(0, [&](std::string_view own, uint64_t value) {
    if (own == name) found = value;
  });
  return found;
}

// Goal: a sample in an atomic batch is of the state that the batch has seen there, and of no part
// of a collection, also where nearly all items are parts. It cannot be drawn again later.
TEST_P(CollectionsTest, AtomicSamplesSeeNoParts) {
  World world(64, GetParam());
  Engine& engine = world.engine();
  for (int i = 0; i < 3000; ++i) Call(engine, "set", "set-add", TextsOperand({std::to_string(i)}));
  std::map<std::string, int> drawn;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string key = "new" + std::to_string(i);
    const std::string before = "new" + std::to_string(i - 1);
    Batch batch(Batch::Kind::kAtomic);
    batch.Sample(i * 0x9e3779b97f4a7c15u);
    batch.Put(key, "x");
    batch.Delete(before);
    engine.AwaitRelease(engine.Execute(batch));
    ASSERT_TRUE(batch.applied());
    ASSERT_EQ(batch.items(0).size(), 1u);
    ++drawn[std::string(batch.items(0).front().key)];
    EXPECT_NE(batch.items(0).front().key, key) << "it was put behind the sample";
  }
  if (GetParam() != "model") {  // which takes the next key that is seen
    EXPECT_GT(drawn["set"], 20);
    EXPECT_LT(drawn["set"], 80);
  }
  EXPECT_LT(drawn.rbegin()->first, kHiddenFrom);
}

// Goal: a deleted collection is gone at once, its parts go in bounded pieces, and one that was
// renamed, or has taken its name, stays.
// Method: the items that each Maintain deletes are counted.
TEST_P(CollectionsTest, PartsAreSweptInPieces) {
  World world(64, GetParam());
  Engine& engine = world.engine();
  const auto fill = [&](const char* key) {
    for (int i = 0; i < 3000; ++i) {
      Call(engine, key, "set-add", TextsOperand({"member" + std::to_string(i)}));
    }
  };
  fill("gone");
  fill("kept");
  world.MaintainAll();
  const uint64_t all = Described(engine, "collection_items");
  EXPECT_GT(all, 400u);
  Batch batch(Batch::Kind::kAtomic);
  batch.Delete("gone");
  batch.Move("kept", "gone");
  engine.AwaitRelease(engine.Execute(batch));
  EXPECT_EQ(Call(engine, "gone", "set-length", {}).integer, 3000);
  EXPECT_EQ(Call(engine, "kept", "set-length", {}).integer, 0);
  uint64_t before = Described(engine, "collection_items_swept");
  bool more = true;
  while (more) {
    more = engine.Maintain(0);
    const uint64_t now = Described(engine, "collection_items_swept");
    EXPECT_LE(now - before, kSweepItems);
    EXPECT_EQ(engine.Statistics().items, 1u);
    before = now;
  }
  EXPECT_NEAR(static_cast<double>(Described(engine, "collection_items")),
              static_cast<double>(all) / 2, static_cast<double>(all) / 20);
  EXPECT_EQ(Call(engine, "gone", "set-has", TextsOperand({"member2999"})).integer, 1);
  EXPECT_EQ(engine.Verify(), nullptr);
}

// Goal: a step of the sweep looks at no more than kSweepIds collections, however many there are.
// Method: a round goes through collections that somebody has; the scans of its steps are counted,
// of which a look needs one for its id.
TEST_P(CollectionsTest, ASweepLooksAtFewCollectionsAStep) {
  constexpr size_t kCollections = 5 * kSweepIds;
  World world(64, GetParam());
  Engine& engine = world.engine();
  for (size_t i = 0; i < kCollections + 1; ++i) {
    Words members;
    for (int of = 0; of < 20; ++of) members.push_back("member" + std::to_string(of));
    Call(engine, "key" + std::to_string(i), "set-add", TextsOperand(members));
  }
  world.MaintainAll();
  Batch batch;
  batch.Delete("key0");
  engine.AwaitRelease(engine.Execute(batch));
  int steps = 0;
  bool more = true;
  for (; more; ++steps) {
    world.reads().scans = 0;
    more = engine.Maintain(0);
    EXPECT_LE(world.reads().scans.load(), kSweepIds + 1);
  }
  EXPECT_GE(steps, static_cast<int>(kCollections / kSweepIds));
  EXPECT_EQ(engine.Statistics().items, kCollections);
}

// Goal: an engine that was loaded from files of a version whose records have other bytes is told
// from one that has none, or those of this version.
// Method: the record of a large collection is cut short, or taken away, in the engine below.
TEST_P(CollectionsTest, RecordsOfAnotherVersionAreFound) {
  for (const bool has_record : {true, false}) {
    World world(64, GetParam());
    auto& engine = dynamic_cast<CollectionEngine&>(world.engine());
    EXPECT_TRUE(engine.ReadsRecords());
    for (const char* const key : {"a", "b"}) {
      for (int i = 0; i < 30; ++i) {
        Call(engine, key, "set-add", TextsOperand({"member" + std::to_string(i)}));
      }
    }
    EXPECT_TRUE(engine.ReadsRecords());
    constexpr auto kType = static_cast<uint8_t>(types::kLargeForm + types::kSet);
    Batch batch;
    batch.Delete("a");
    batch.Add({.op = Op::kPut, .type = kType, .key = "b", .value = std::string_view("old")});
    if (!has_record) batch.Delete("b");
    world.reads().AwaitRelease(world.reads().Execute(batch));
    EXPECT_EQ(engine.ReadsRecords(), !has_record);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, CollectionsTest, testing::Values("btree", "model"),
                         [](const auto& tested) { return tested.param; });

// Goal: places and sort keys have the same order, and separators divide.
// Method: all pairs of scores and members of a list of awkward ones.
TEST(Pieces, SortKeysAreInTheOrderOfPlaces) {
  const double scores[] = {-HUGE_VAL, -1e300, -2, -1e-300, 0, 1e-300, 1, 1.5, 1e300, HUGE_VAL};
  const std::string members[] = {"", std::string(1, '\0'), "a", std::string("a\0", 2), "b", "\xff"};
  std::vector<Place> places;
  for (const double score : scores) {
    for (const std::string& member : members) places.push_back({.score = score, .member = member});
  }
  for (const Place& a : places) {
    for (const Place& b : places) {
      EXPECT_EQ(a < b, SortKey(Form::kEntry, a) < SortKey(Form::kEntry, b));
    }
  }
}

}  // namespace
}  // namespace skep::collections

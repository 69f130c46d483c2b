// Hints of where segments begin.
#include "collections/segment_hints.h"

#include <gtest/gtest.h>

#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "collections/access.h"
#include "collections/testing/collection_world_test.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"

namespace skep::collections {
namespace {

constexpr uint64_t kId = 7;

class RefusingEngine final : public ForwardingEngine {
 public:
  explicit RefusingEngine(Engine& inner) : ForwardingEngine(inner) {}
  Version Execute(Batch& batch) override {
    BatchWriter(batch).RefuseAll({Code::kUnavailable, "not now"});
    return 0;
  }
};

class SegmentHintsTest : public testing::Test {
 protected:
  void Store(uint64_t id, Part part, const std::string& separator) {
    Batch batch;
    batch.Add({.op = Op::kPut,
               .type = types::kSegment,
               .key = batch.scratch().Copy(SegmentKey(id, part, separator)),
               .value = "bytes"});
    world_.engine().AwaitRelease(world_.engine().Execute(batch));
  }
  // Wants as many places as it takes until keys are read.
  bool Load(uint64_t id) { return hints_.Want(access_, id, SegmentHints::kWanted); }
  std::optional<std::string> Find(uint64_t id, Part part, std::string_view place) {
    SegmentHints::Reading reading(hints_, id);
    if (!reading) return std::nullopt;
    reading.BeginPart(part);
    const auto found = reading.Find(place);
    return found ? std::optional<std::string>(*found) : std::nullopt;
  }

  World world_{0};
  Access access_{world_.engine(), 0, 1024};
  SegmentHints hints_;
};

// Goal: a hint is the greatest separator that is not above the place, in whatever order places are
// asked for, also when keys come and go.
// Method: random separators of all byte values in three parts, beside std::set.
TEST_F(SegmentHintsTest, FindTheFloor) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const Part parts[] = {CountsPart(1), Part::kCounts, Part::kMembers};
  std::set<std::string> model[3];
  const auto text = [&] {
    std::string bytes(rng() % 4, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng() % 3 == 0 ? rng() : 'a' + rng() % 3);
    return bytes;
  };
  for (int i = 0; i < 300; ++i) {
    const size_t part = rng() % 3;
    const std::string separator = i < 3 ? std::string() : text();
    Store(kId, parts[i < 3 ? static_cast<size_t>(i) : part], separator);
    model[i < 3 ? static_cast<size_t>(i) : part].insert(separator);
  }
  Store(kId + 1, Part::kMembers, "other");
  ASSERT_TRUE(Load(kId));
  for (int round = 0; round < 200; ++round) {
    const size_t part = rng() % 3;
    const std::string separator = text();
    const std::string key = SegmentKey(kId, parts[part], separator);
    if (rng() % 2 == 0) {
      hints_.Learn(kId, std::span(&key, 1));
      model[part].insert(separator);
    } else if (!separator.empty()) {
      hints_.Correct(kId, parts[part], key, std::nullopt, separator);
      model[part].erase(separator);
    }
    SegmentHints::Reading reading(hints_, kId);
    ASSERT_TRUE(reading);
    for (size_t of = 0; of < 3; ++of) {
      reading.BeginPart(parts[of]);
      for (int i = 0; i < 20; ++i) {
        const std::string place = text();
        const auto found = reading.Find(place);
        ASSERT_TRUE(found);
        ASSERT_EQ(*found, *std::prev(model[of].upper_bound(place)));
      }
    }
    reading.BeginPart(Part::kScores);
    ASSERT_FALSE(reading.Find("x"));
  }
}

// Goal: an item that ends before the place teaches the key of the next one; an item that has the
// place, and bytes that are none, teach nothing.
TEST_F(SegmentHintsTest, AreCorrected) {
  Store(kId, Part::kMembers, "");
  ASSERT_TRUE(Load(kId));
  const std::string key = SegmentKey(kId, Part::kMembers, "");
  const std::string bytes =
      types::WriteSegment({.stamp = 1, .fence = "m", .pieces = 0, .body = {}});
  hints_.Correct(kId, Part::kMembers, key, bytes, "a");
  hints_.Correct(kId, Part::kMembers, key, "", "z");
  EXPECT_EQ(Find(kId, Part::kMembers, "z"), "");
  hints_.Correct(kId, Part::kMembers, key, bytes, "z");
  EXPECT_EQ(Find(kId, Part::kMembers, "z"), "m");
  EXPECT_EQ(Find(kId, Part::kMembers, "a"), "");
}

// Goal: keys are read when kWanted places were asked for and not before, kLoadMax of them at a time
// and as many places apart; a collection does not lose its hints to one that is asked for less.
TEST_F(SegmentHintsTest, AreReadWhenTheyAreWanted) {
  const uint64_t rival = kId + SegmentHints::kCollections;
  Batch batch;
  for (uint32_t i = 0; i < SegmentHints::kLoadMax + 10; ++i) {
    const std::string key = SegmentKey(kId, Part::kMembers, i == 0 ? "" : std::to_string(i));
    batch.Add({.op = Op::kPut,
               .type = types::kSegment,
               .key = batch.scratch().Copy(key),
               .value = "bytes"});
  }
  world_.engine().AwaitRelease(world_.engine().Execute(batch));
  Store(rival, Part::kMembers, "");
  const auto items = [&] { return world_.reads().items.load(); };
  EXPECT_FALSE(hints_.Want(access_, kId, SegmentHints::kWanted - 1));
  EXPECT_EQ(items(), 0u);
  EXPECT_FALSE(hints_.Want(access_, kId, 1));
  EXPECT_EQ(items(), SegmentHints::kLoadMax);
  EXPECT_FALSE(hints_.Want(access_, kId, SegmentHints::kWanted - 1));
  EXPECT_TRUE(hints_.Want(access_, kId, 1));
  EXPECT_EQ(items(), SegmentHints::kLoadMax + 10);

  // The rival wants places, but between them others are asked for.
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(hints_.Want(access_, rival, SegmentHints::kWanted - 1));
    EXPECT_TRUE(Find(kId, Part::kMembers, "1"));
  }
  EXPECT_EQ(items(), SegmentHints::kLoadMax + 10);
  EXPECT_FALSE(hints_.Want(access_, rival, SegmentHints::kWanted - 1));
  EXPECT_TRUE(hints_.Want(access_, rival, 1));
  EXPECT_TRUE(Find(rival, Part::kMembers, "1"));
  EXPECT_FALSE(Find(kId, Part::kMembers, "1"));
}

// Goal: what is read tells of a wrong hint only if it is read: a key whose read is refused is not
// taken for one that is gone.
// Method: the engine refuses every read; the batch is one whose write of the item was refused.
TEST_F(SegmentHintsTest, AReadThatIsRefusedCorrectsNothing) {
  Store(kId, Part::kMembers, "");
  Store(kId, Part::kMembers, "m");
  ASSERT_TRUE(Load(kId));
  const std::string key = SegmentKey(kId, Part::kMembers, "m");
  Batch batch(Batch::Kind::kAtomic);
  batch.Put(key, "bytes");
  BatchWriter(batch).Refuse(0, {Code::kAborted, "the segment is another one"});
  RefusingEngine refusing(world_.engine());
  Access access(refusing, 0, 1024);
  EXPECT_FALSE(hints_.CorrectRefused(access, batch, 0, "z"));
  EXPECT_EQ(Find(kId, Part::kMembers, "z"), "m");
  Batch erase;
  erase.Delete(key);
  world_.engine().Execute(erase);
  EXPECT_TRUE(hints_.CorrectRefused(access_, batch, 0, "z"));
  EXPECT_EQ(Find(kId, Part::kMembers, "z"), "");
}

// Goal: what lists hold is charged until their collection has ended, and without memory no keys are
// read.
TEST_F(SegmentHintsTest, AreChargedUntilTheyAreForgotten) {
  constexpr size_t kNameBytes = 1000;
  const uint64_t other = kId + 1;
  for (char c = 'a'; c <= 'z'; ++c) Store(kId, Part::kMembers, std::string(kNameBytes, c));
  Store(other, Part::kMembers, "x");
  MemoryBudget budget(1);
  {
    SegmentHints hints(&budget);
    budget.Charge(2);
    EXPECT_FALSE(hints.Want(access_, kId, SegmentHints::kWanted));
    EXPECT_EQ(hints.bytes(), 0u);
    budget.set_limit(0);
    budget.Release(2);
    ASSERT_TRUE(hints.Want(access_, kId, SegmentHints::kWanted));
    ASSERT_TRUE(hints.Want(access_, other, SegmentHints::kWanted));
    EXPECT_GE(hints.bytes(), 26 * kNameBytes);
    // Each of the two has one block.
    EXPECT_LE(hints.bytes(), 27 * kNameBytes + 2 * PartHints::kBlockBytes);
    EXPECT_EQ(budget.used(), hints.bytes());
    const std::string made = SegmentKey(kId, Part::kMembers, std::string(kNameBytes, 'A'));
    const size_t before = hints.bytes();
    hints.Learn(kId, std::span(&made, 1));
    EXPECT_GE(hints.bytes(), before + kNameBytes);
    EXPECT_EQ(budget.used(), hints.bytes());
    hints.Forget(kId + SegmentHints::kCollections);  // has no hints
    EXPECT_GE(hints.bytes(), 27 * kNameBytes);
    hints.Forget(kId);
    EXPECT_FALSE(SegmentHints::Reading(hints, kId));
    EXPECT_TRUE(SegmentHints::Reading(hints, other));
    EXPECT_LE(hints.bytes(), PartHints::kBlockBytes + 64);
    EXPECT_EQ(budget.used(), hints.bytes());
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: the hints of a collection that is deleted, alone or with all others, are forgotten.
TEST(SegmentHintsOfAnEngine, EndWithTheirCollections) {
  World world(1024);
  const auto bytes = [&] {
    uint64_t found = 0;
    world.engine().Describe(0, [&](std::string_view name, uint64_t value) {
      if (name == "collection_hint_bytes") found = value;
    });
    return found;
  };
  for (const bool deletes_all : {false, true}) {
    for (uint64_t i = 0; i < 3 * SegmentHints::kWanted; ++i) {
      Call(world.engine(), "set", "set-add", TextsOperand({"member" + std::to_string(i)}));
    }
    EXPECT_GT(bytes(), 100u);
    Batch erase;
    deletes_all ? erase.DeleteAll() : erase.Delete("set");
    world.engine().AwaitRelease(world.engine().Execute(erase));
    if (!deletes_all) world.MaintainAll();
    EXPECT_EQ(bytes(), 0u);
  }
}

// Goal: a collection with too many keys has no hints, and its keys are read no further.
TEST_F(SegmentHintsTest, TakeLittleMemory) {
  const std::string long_name(SegmentHints::kBytesMax / 16, 'x');
  Store(kId, Part::kMembers, "");
  ASSERT_TRUE(Load(kId));
  for (int i = 0; i < 20; ++i) {
    const std::string key = SegmentKey(kId, Part::kMembers, long_name + std::to_string(i));
    hints_.Learn(kId, std::span(&key, 1));
  }
  EXPECT_FALSE(Find(kId, Part::kMembers, "a"));
  const uint64_t scans = world_.reads().scans;
  EXPECT_FALSE(Load(kId));
  EXPECT_EQ(world_.reads().scans, scans);
}

// Goal: keys that come and go take no hints away, however many there were.
TEST_F(SegmentHintsTest, KeysThatComeAndGoTakeNoMemory) {
  Store(kId, Part::kMembers, "");
  ASSERT_TRUE(Load(kId));
  const std::string long_name(SegmentHints::kBytesMax / 64, 'x');
  for (int i = 0; i < 300; ++i) {
    const std::string key = SegmentKey(kId, Part::kMembers, long_name + std::to_string(i));
    hints_.Learn(kId, std::span(&key, 1));
    hints_.Correct(kId, Part::kMembers, key, std::nullopt, {});
  }
  EXPECT_TRUE(Find(kId, Part::kMembers, "a"));
}

}  // namespace
}  // namespace skep::collections

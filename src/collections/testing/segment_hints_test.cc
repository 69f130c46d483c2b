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

namespace skep::collections {
namespace {

constexpr uint64_t kId = 7;

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

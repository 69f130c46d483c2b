// Calls that put members into large collections without reading them.
#include "collections/puts_in_place.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collections/testing/collection_world_test.h"
#include "types/large_record.h"

namespace skep::collections {
namespace {

class PutsInPlaceTest : public testing::TestWithParam<std::string> {
 protected:
  // Executes a batch of calls of one function on the key; returns their replies.
  std::vector<Reply> Run(Engine& engine, std::string_view key, std::string_view function,
                         const std::vector<Words>& calls) {
    batch_.Clear();
    for (const Words& words : calls) {
      batch_.Apply(key, Named(function), batch_.scratch().Copy(TextsOperand(words)));
    }
    engine.AwaitRelease(engine.Execute(batch_));
    std::vector<Reply> replies;
    for (uint32_t slot = 0; slot < calls.size(); ++slot) {
      replies.push_back(ReplyOf(batch_.outcome(slot)));
    }
    return replies;
  }
  static std::string Member(uint64_t i) { return "member:" + std::to_string(i); }
  // Makes a large set of members 0, 2, 4, ..., whose segments are known.
  void MakeSet(World& world, uint64_t members) {
    for (uint64_t from = 0; from < members; from += 200) {
      std::vector<Words> calls;
      for (uint64_t i = from; i < from + 200; ++i) calls.push_back({Member(2 * i)});
      Run(world.engine(), "set", "set-add", calls);
    }
    std::mt19937 rng(1);
    for (int round = 0; round < 10; ++round) {
      std::vector<Words> calls;
      for (int i = 0; i < 200; ++i) calls.push_back({Member(2 * (rng() % members))});
      Run(world.engine(), "set", "set-add", calls);
    }
  }

  Batch batch_;
};

// Goal: puts made in place do what they do to a collection in one value, whatever else is done to
// the collection between them.
// Method: batches of calls go to collections of segments of 64 bytes, or of 1 KiB, and to those in
// one value; replies are equal, and at the end so are the collections and all invariants hold.
// Members are of all byte values and up to 300 bytes; removals join segments, deadlines of fields
// come and go, and the key is deleted and made again.
TEST_P(PutsInPlaceTest, AgreeWithOneValue) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const size_t value_bytes : {256, 8192}) {
    World parts(value_bytes, GetParam());
    World whole(0, GetParam());
    const auto member = [&] {
      if (rng() % 100 == 0) return std::string(rng() % 300, static_cast<char>(rng()));
      return static_cast<char>(rng() % 4 == 0 ? rng() : 'a') + std::to_string(rng() % 1000);
    };
    for (int round = 0; round < 150; ++round) {
      const bool is_hash = rng() % 2 == 0;
      const std::string key = is_hash ? "hash" : "set";
      std::string function = is_hash ? "hash-set" : "set-add";
      const size_t kind = rng() % 40;
      if (kind == 0) function = is_hash ? "hash-delete" : "set-remove";
      if (kind > 1 && kind < 8 && is_hash) function = "hash-set-new";
      const bool has_values = function.starts_with("hash-set");
      std::vector<Words> calls;
      for (size_t i = rng() % 4 == 0 ? rng() % 4 + 1 : rng() % 150; i > 0; --i) {
        Words& words = calls.emplace_back();
        for (size_t each = rng() % 10 == 0 ? rng() % 4 : 1; each > 0; --each) {
          words.push_back(member());
          if (has_values) words.push_back(std::string(rng() % 12, static_cast<char>(rng())));
        }
        if (rng() % 200 == 0) words.push_back("odd");
      }
      ASSERT_EQ(Run(parts.engine(), key, function, calls),
                Run(whole.engine(), key, function, calls))
          << "round " << round;
      if (kind == 1) {
        const std::string operand = FieldDeadlineOperand(1 << 20, {member(), member()});
        ASSERT_EQ(Call(parts.engine(), "hash", "hash-expire", operand),
                  Call(whole.engine(), "hash", "hash-expire", operand));
      }
      if (round % 60 == 59) {
        for (World* const world : {&parts, &whole}) {
          batch_.Clear();
          batch_.Delete("hash");
          world->engine().AwaitRelease(world->engine().Execute(batch_));
          world->MaintainAll();
        }
      }
      if (round % 50 == 49) {
        ASSERT_EQ(parts.engine().Verify(), nullptr) << "round " << round;
      }
    }
    EXPECT_EQ(Call(parts.engine(), "set", "set-all", {}),
              Call(whole.engine(), "set", "set-all", {}));
    EXPECT_EQ(Call(parts.engine(), "hash", "hash-length", {}),
              Call(whole.engine(), "hash", "hash-length", {}));
    EXPECT_EQ(parts.engine().Verify(), nullptr);
    EXPECT_EQ(parts.engine().Statistics().items, whole.engine().Statistics().items);
  }
}

// Goal: calls are made together 256 at a time; a group reads the record, and no segment and no
// node; it is one write, with one function for each member, for each node and for the record.
TEST_P(PutsInPlaceTest, ReadNothing) {
  World world(8192, GetParam());
  MakeSet(world, 6000);
  ReadCounter& counts = world.reads();
  const uint64_t nodes = world.ItemsOf(Part::kCounts) + world.ItemsOf(CountsPart(1));
  for (const uint64_t calls : {200, 256, 257, 600}) {
    std::vector<Words> members;
    for (uint64_t i = 0; i < calls; ++i) members.push_back({Member(2 * (i * 9 % 6000))});
    const uint64_t groups = (calls + 255) / 256;
    const uint64_t batches = counts.batches;
    const uint64_t gets = counts.gets;
    const uint64_t scans = counts.scans;
    const uint64_t applies = counts.applies;
    Run(world.engine(), "set", "set-add", members);
    // A batch that reads the record, and one that writes.
    EXPECT_EQ(counts.batches - batches, 2 * groups) << calls;
    EXPECT_EQ(counts.gets - gets, groups) << calls;
    EXPECT_EQ(counts.scans - scans, 0u) << calls;
    EXPECT_GT(counts.applies - applies, calls) << calls;
    EXPECT_LE(counts.applies - applies, calls + (nodes + 1) * groups) << calls;
  }
}

// Goal: what changes nothing writes nothing: neither segments, nor counts, nor the record.
TEST_P(PutsInPlaceTest, WriteNothingThatIsThere) {
  World world(8192, GetParam());
  MakeSet(world, 3000);
  const auto all = [&] {
    std::map<std::string, std::string> items;
    Batch batch;
    batch.Scan(Range::All(), {.any_type = true});
    world.reads().Execute(batch);
    for (const Item& item : batch.items(0)) items.emplace(item.key, item.value);
    return items;
  };
  const auto before = all();
  std::vector<Words> members;
  for (uint64_t i = 0; i < 100; ++i) members.push_back({Member(2 * (i * 29 % 3000))});
  for (const Reply& reply : Run(world.engine(), "set", "set-add", members)) {
    EXPECT_EQ(reply.integer, 0);
  }
  for (uint32_t slot = 0; slot < members.size(); ++slot) {
    EXPECT_EQ(batch_.outcome(slot).version, 0u);
  }
  EXPECT_EQ(all(), before);
  // One new member is one segment, a node of each level and the record.
  const size_t levels = world.ItemsOf(CountsPart(1)) > 0 ? 2 : 1;
  members.push_back({Member(1)});
  Run(world.engine(), "set", "set-add", members);
  EXPECT_GT(batch_.outcome(0).version, 0u);
  size_t changed = 0;
  for (const auto& [key, value] : all()) {
    const auto old = before.find(key);
    changed += old == before.end() || old->second != value ? 1 : 0;
  }
  EXPECT_EQ(changed, levels + 2);
}

// Goal: segments that puts have made long are divided, and of one segment there are no more than
// kPutsOfSegmentMax puts in place.
TEST_P(PutsInPlaceTest, DivideLongSegments) {
  World world(8192, GetParam());
  MakeSet(world, 2000);
  constexpr size_t kSegmentBytes = 1024;
  for (uint64_t from = 0; from < 2000; from += 50) {
    std::vector<Words> members;
    for (uint64_t i = from; i < from + 50; ++i)
      members.push_back({Member(2 * (i * 37 % 2000) + 1)});
    Run(world.engine(), "set", "set-add", members);
    for (const auto& [key, value] : world.ContentsOf(Part::kMembers)) {
      ASSERT_LE(types::ReadSegment(value)->body.size(), kSegmentBytes);
    }
  }
  EXPECT_EQ(world.engine().Verify(), nullptr);
  // Members that are neighbours are read, and written once.
  const uint64_t applies = world.reads().applies;
  std::vector<Words> members;
  for (uint64_t i = 0; i < 40; ++i) members.push_back({Member(20000 + i)});
  Run(world.engine(), "set", "set-add", members);
  EXPECT_LT(world.reads().applies - applies, 40u);
}

INSTANTIATE_TEST_SUITE_P(Engines, PutsInPlaceTest, testing::Values("btree", "model"),
                         [](const auto& with) { return with.param; });

}  // namespace
}  // namespace skep::collections

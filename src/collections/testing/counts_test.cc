// Ranks of large collections: their counts, what they read, and what is drawn at random.
#include "collections/counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

std::string EntryOf(double score, const std::string& member) {
  return std::string(reinterpret_cast<const char*>(&score), sizeof score) + TextsOperand({member});
}

std::string DrawOperand(uint64_t seed, int64_t count) {
  Scratch scratch;
  return std::string(types::WriteDrawRequest({.seed = seed, .count = count}, scratch));
}

std::string RangeOperand(const types::RangeRequest& request, const std::string& low,
                         const std::string& high) {
  Scratch scratch;
  return std::string(types::WriteRangeRequest(request, low, high, scratch));
}

// The upper levels of counts of the only collection that there is.
uint64_t Levels(World& world) {
  uint64_t levels = 0;
  while (world.ItemsOf(CountsPart(levels + 1)) > 0) ++levels;
  return levels;
}

class CountsTest : public testing::TestWithParam<std::string> {};

// Goal: entries and nodes follow the members that come and go, one by one and all at once, and
// every rank is right all the while.
// Method: members with many equal scores are added in a random order to a sorted set, in calls of
// few or of very many, then taken out again. The bounds of the header are checked on all nodes, and
// ranks are compared with those of a std::set.
TEST_P(CountsTest, FollowTheMembers) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const size_t in_a_call : {7, 40000}) {
    World world(256, GetParam());
    Engine& engine = world.engine();
    const size_t members = in_a_call == 7 ? 3000 : 80000;
    std::set<std::pair<double, std::string>> model;
    std::vector<std::pair<double, std::string>> all;
    for (size_t i = 0; i < members; ++i) {
      std::string member = std::to_string(i);
      member.insert(0, 1, static_cast<char>(rng()));
      all.emplace_back(static_cast<double>(rng() % 500), member);
    }
    std::ranges::shuffle(all, rng);
    const auto check = [&] {
      const std::vector<std::pair<double, std::string>> sorted(model.begin(), model.end());
      for (int i = 0; i < 20; ++i) {
        const size_t at = rng() % sorted.size();
        const std::string operand = TextsOperand({sorted[at].second});
        ASSERT_EQ(Call(engine, "z", "zset-rank", operand).integer, static_cast<int64_t>(at));
        ASSERT_EQ(Call(engine, "z", "zset-rank-from-end", operand).integer,
                  static_cast<int64_t>(sorted.size() - 1 - at));
        const std::string rank = std::to_string(at);
        ASSERT_EQ(Call(engine, "z", "zset-range", RangeOperand({}, rank, rank)).value,
                  EntryOf(sorted[at].first, sorted[at].second));
      }
    };
    for (size_t begin = 0; begin < all.size(); begin += in_a_call) {
      std::string operand(1, '\0');
      for (size_t i = begin; i < std::min(all.size(), begin + in_a_call); ++i) {
        operand += EntryOf(all[i].first, all[i].second);
        model.insert(all[i]);
      }
      Call(engine, "z", "zset-add", operand);
      if (in_a_call == 7 && begin % 700 < 7) check();
    }
    check();
    ASSERT_EQ(engine.Verify(), nullptr);
    EXPECT_EQ(Levels(world), in_a_call == 7 ? 0u : 1u);
    for (uint64_t level = 0; level <= Levels(world); ++level) {
      for (const auto& [key, value] : world.ContentsOf(CountsPart(level))) {
        const auto node = types::ReadCountNode(value);
        ASSERT_TRUE(node.has_value());
        EXPECT_LE(node->entries.size(), kNodeEntriesMax);
        if (level > 0) continue;
        for (const auto& entry : node->entries) EXPECT_LE(entry.count, kEntryMax);
      }
    }
    for (size_t begin = 0; begin + 100 < all.size(); begin += in_a_call) {
      Words words;
      for (size_t i = begin; i < std::min(all.size() - 100, begin + in_a_call); ++i) {
        words.push_back(all[i].second);
        model.erase(all[i]);
      }
      Call(engine, "z", "zset-remove", TextsOperand(words));
      if (in_a_call == 7 && begin % 700 < 7) check();
    }
    check();
    ASSERT_EQ(engine.Verify(), nullptr);
    if (in_a_call == 7) {
      EXPECT_LE(world.ItemsOf(Part::kCounts), 2u);
    }
  }
}

// Goal: a collection that grows by small calls gets upper levels, whose nodes are split and joined.
// Method: a set of 12,000 members with long common heads, so that nodes are full of bytes
// before they are full of entries; then most of them go.
TEST_P(CountsTest, LevelsGrow) {
  World world(2048, GetParam());
  Engine& engine = world.engine();
  const auto member = [](size_t i) {
    const std::string number = std::to_string(i * 7919 % 12000);
    return std::string(1000, 'h') + std::string(5 - number.size(), '0') + number;
  };
  for (size_t i = 0; i < 12000; i += 50) {
    Words words;
    for (size_t of = i; of < i + 50; ++of) words.push_back(member(of));
    Call(engine, "s", "set-add", TextsOperand(words));
  }
  EXPECT_GE(Levels(world), 1u);
  ASSERT_EQ(engine.Verify(), nullptr);
  for (const auto& [key, value] : world.ContentsOf(Part::kCounts)) {
    // A separator of one more entry may be what has made it too large.
    EXPECT_LE(value.size(), kNodeBytesMax + 1100);
  }
  for (size_t i = 0; i < 11950; i += 50) {
    Words words;
    for (size_t of = i; of < i + 50; ++of) words.push_back(member(of));
    Call(engine, "s", "set-remove", TextsOperand(words));
  }
  ASSERT_EQ(engine.Verify(), nullptr);
  EXPECT_LE(world.ItemsOf(Part::kCounts), 16u);
}

// Goal: a rank, a count and a draw read a node of each level, all of the highest one, and the
// segments of one range, as the header says, however large the collection is.
// Method: the items that scans of the engine below find are counted, in sorted sets of three sizes.
TEST_P(CountsTest, RanksReadFewItems) {
  std::mt19937 rng(5);
  for (const size_t members : {2000, 20000, 100000}) {
    World world(4096, GetParam());
    Engine& engine = world.engine();
    std::string operand(1, '\0');
    const auto member = [](size_t i) { return "member:" + std::to_string(i); };
    for (size_t i = 0; i < members; ++i) operand += EntryOf(static_cast<double>(i), member(i));
    Call(engine, "z", "zset-add", operand);
    // A range of kEntryMax members has so many segments of 1 KiB, of which most are half full, and
    // its first one may begin before it.
    constexpr uint64_t kSegments = kEntryMax * 20 / 512 + 2;
    const uint64_t nodes = Levels(world) + kTopNodesMax + 1;
    uint64_t most = 0;
    for (int i = 0; i < 200; ++i) {
      const size_t at = rng() % members;
      const std::string rank = std::to_string(at);
      const auto count = [&](const char* function, const std::string& words) {
        world.reads().items = 0;
        const Reply reply = Call(engine, "z", function, words);
        most = std::max(most, world.reads().items.load());
        return reply;
      };
      ASSERT_EQ(count("zset-rank", TextsOperand({member(at)})).integer, static_cast<int64_t>(at));
      ASSERT_EQ(count("zset-range", RangeOperand({}, rank, rank)).value,
                EntryOf(static_cast<double>(at), member(at)));
      const types::RangeRequest by_score = {.by = types::RangeRequest::By::kScore};
      ASSERT_EQ(count("zset-count", RangeOperand(by_score, "-inf", rank)).integer,
                static_cast<int64_t>(at + 1));
      count("zset-draw", DrawOperand(rng(), 1));
    }
    EXPECT_LE(most, nodes + 2 * kSegments + 1) << members;
    EXPECT_GE(most, 3u);
  }
}

// Goal: each member is drawn as often as any other, by each function that draws, by a draw of one
// and of several, although ranges and segments have different numbers of members.
// Method: Pearson's chi-square of many draws with fixed seeds, of a collection whose members have
// lengths of which some segments hold few and some many. With 399 degrees of freedom the sum has
// the mean 399 and the standard deviation 28, so 560 is out of reach of chance; draws that take a
// segment before they take a member of it exceed that many times.
TEST_P(CountsTest, DrawsAreUniform) {
  constexpr size_t kMembers = 400;
  const auto member = [](size_t i) {
    const std::string name = std::to_string(1000 + i);
    return name + std::string(i % 100 < 16 ? 200 : 1, '.');
  };
  const auto chi_square = [&](const std::map<std::string, uint64_t>& drawn, uint64_t draws) {
    const double expected = static_cast<double>(draws) / kMembers;
    double sum = 0;
    for (size_t i = 0; i < kMembers; ++i) {
      const auto at = drawn.find(member(i));
      const double seen = at == drawn.end() ? 0 : static_cast<double>(at->second);
      sum += (seen - expected) * (seen - expected) / expected;
    }
    return sum;
  };
  World world(512, GetParam());
  Engine& engine = world.engine();
  Words fields;
  Words members;
  std::string entries(1, '\0');
  for (size_t i = 0; i < kMembers; ++i) {
    fields.insert(fields.end(), {member(i), "v"});
    members.push_back(member(i));
    entries += EntryOf(static_cast<double>(i % 3), member(i));
  }
  Call(engine, "h", "hash-set", TextsOperand(fields));
  Call(engine, "s", "set-add", TextsOperand(members));
  Call(engine, "z", "zset-add", entries);
  for (const auto& [key, function] : std::map<std::string, std::string>{
           {"h", "hash-draw"}, {"s", "set-draw"}, {"z", "zset-draw"}}) {
    for (const int64_t count : {1, -7, 40}) {
      SCOPED_TRACE(testing::Message() << function << " " << count);
      std::map<std::string, uint64_t> drawn;
      uint64_t draws = 0;
      for (uint64_t seed = 0; draws < 8000; ++seed) {
        const std::string value = Call(engine, key, function, DrawOperand(seed, count)).value;
        std::string_view rest = value;
        while (!rest.empty()) {
          std::string_view text;
          types::Entry entry;
          if (key == "z") {
            ASSERT_TRUE(types::TakeEntry(rest, &entry));
            text = entry.member;
          } else {
            ASSERT_TRUE(types::TakeText(rest, &text));
            std::string_view field;
            ASSERT_TRUE(key != "h" || types::TakeText(rest, &field));
          }
          ++drawn[std::string(text)];
          ++draws;
        }
      }
      EXPECT_LT(chi_square(drawn, draws), 560);
    }
  }
}

// A set, what a std::set says that it has, and calls on both, a batch at a time.
class Pops {
 public:
  static constexpr size_t kMembers = 400;

  explicit Pops(const std::string& engine) : world_(512, engine) {
    for (size_t i = 0; i < kMembers; ++i) model_.insert(MemberOf(i));
    Call(world_.engine(), "s", "set-add", TextsOperand({model_.begin(), model_.end()}));
  }

  // Pops among adds and removes. All members but three that were taken out go back at the end.
  void Round(Batch::Kind kind) {
    Batch batch(kind);
    std::vector<std::pair<std::string, Words>> calls;
    for (size_t left = rng_() % 10 + 1; left > 0; --left) {
      calls.push_back(Draw());
      const auto& [function, words] = calls.back();
      const std::string operand = function == "set-pop"
                                      ? DrawOperand(rng_(), std::stol(words.front()))
                                      : TextsOperand(words);
      batch.Apply("s", Named(function), batch.scratch().Copy(operand));
    }
    world_.engine().AwaitRelease(world_.engine().Execute(batch));
    for (uint32_t slot = 0; slot < calls.size(); ++slot) {
      Follow(calls[slot].first, calls[slot].second, batch.outcome(slot));
    }
    for (; back_.size() > 3; back_.erase(back_.begin())) {
      Call(world_.engine(), "s", "set-add", TextsOperand({back_.front()}));
      model_.insert(back_.front());
    }
  }
  void Check() {
    ASSERT_EQ(world_.engine().Verify(), nullptr);
    const Reply all = Call(world_.engine(), "s", "set-all", {});
    ASSERT_EQ(all.value, TextsOperand({model_.begin(), model_.end()}));
  }
  // Pearson's sum over the members that no call removes.
  double ChiSquare() const {
    const double expected = static_cast<double>(pops_) / (kMembers * 2 / 3.0);
    double sum = 0;
    for (size_t i = 0; i < kMembers; ++i) {
      if (i % 3 == 0) continue;
      const auto at = popped_.find(MemberOf(i));
      const double off = (at == popped_.end() ? 0 : static_cast<double>(at->second)) - expected;
      sum += off * off / expected;
    }
    return sum;
  }

 private:
  static std::string MemberOf(size_t i) {
    return std::to_string(1000 + i) + std::string(i % 100 < 16 ? 200 : 1, '.');
  }

  std::pair<std::string, Words> Draw() {
    const size_t kind = rng_() % 8;
    if (kind < 2 && !back_.empty()) {
      const std::string member = back_.back();
      back_.pop_back();
      return {"set-add", {member}};
    }
    if (kind == 2) {
      const auto any = [&] { return MemberOf(rng_() % (kMembers / 3) * 3); };
      return {"set-remove", {any(), any()}};
    }
    return {"set-pop", {std::to_string(kind == 3 ? rng_() % 30 : 1)}};
  }
  void Follow(const std::string& function, const Words& words, const Outcome& outcome) {
    if (function == "set-add") model_.insert(words.begin(), words.end());
    if (function == "set-remove") {
      for (const std::string& word : words) model_.erase(word);
      back_.insert(back_.end(), words.begin(), words.end());
    }
    if (function != "set-pop") return;
    std::string_view rest = outcome.value;
    std::string_view text;
    int64_t taken = 0;
    for (; !rest.empty(); ++taken) {
      ASSERT_TRUE(types::TakeText(rest, &text));
      const std::string member(text);
      ASSERT_EQ(model_.erase(member), 1u);
      back_.push_back(member);
      if (std::stoul(member) % 3 == 1000 % 3) continue;
      ++popped_[member];
      ++pops_;
    }
    ASSERT_EQ(taken, outcome.integer);
    ASSERT_EQ(taken, std::stol(words.front()));
  }

  World world_;
  std::mt19937_64 rng_{11};
  std::set<std::string> model_;
  std::map<std::string, uint64_t> popped_;
  uint64_t pops_ = 0;
  Words back_;
};

// Goal: pops of a set that are made together see what the calls before them have made, take no
// member twice, and are as fair to members that these calls have added as to any others.
// Method: batches of pops of one and of several members among adds and removes; a std::set knows
// which members each pop may take. Members that were popped go back, in some batches within the
// batch. Two members out of three are never removed otherwise; with 265 degrees of freedom the sum
// of their frequencies has the standard deviation 23.
TEST_P(CountsTest, PopsTogetherAreFair) {
  Pops pops(GetParam());
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    pops.Round(round % 3 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    if (round % 100 == 0) pops.Check();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_LT(pops.ChiSquare(), 400);
}

INSTANTIATE_TEST_SUITE_P(Engines, CountsTest, testing::Values("btree"),
                         [](const auto& tested) { return tested.param; });

// Goal: of two workers that divide what was one entry when they read it, the second one changes
// nothing: what it has counted begins where that entry did.
TEST(Counts, ADivisionIsOfTheEntryThatWasRead) {
  World world(0);
  const std::vector<types::CountEntry> entries = {{.count = 300}, {.separator = "m", .count = 200}};
  const std::string node = types::WriteCountNode(std::nullopt, entries);
  const auto divide = [&](std::string_view begin, std::string_view separator, uint64_t left) {
    Batch batch;
    std::string operand = TextsOperand({std::string(begin), std::string(separator)});
    AppendVarint(operand, left);
    batch.Apply("node", Named("large-counts-divide"), operand);
    world.engine().AwaitRelease(world.engine().Execute(batch));
    return batch.outcome(0).status.code();
  };
  Batch put;
  put.Add({.op = Op::kPut, .type = types::kSegment, .key = "node", .value = node});
  world.engine().AwaitRelease(world.engine().Execute(put));
  EXPECT_EQ(divide("", "f", 130), Code::kOk);
  EXPECT_EQ(divide("", "h", 155), Code::kAborted);
  EXPECT_EQ(divide("f", "h", 25), Code::kOk);
  EXPECT_EQ(divide("m", "n", 201), Code::kAborted);
  Batch get;
  get.Add({.op = Op::kGet, .type = types::kSegment, .key = "node"});
  world.engine().Execute(get);
  const auto now = types::ReadCountNode(get.outcome(0).value);
  ASSERT_TRUE(now);
  std::vector<uint64_t> counts;
  for (const types::CountEntry& entry : now->entries) counts.push_back(entry.count);
  EXPECT_EQ(counts, (std::vector<uint64_t>{130, 25, 145, 200}));
}

}  // namespace
}  // namespace skep::collections

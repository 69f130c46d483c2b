// The state of the index servers: what entries make of it, and that a hash server's and a sorted
// server's come to the same verdicts.
#include "pool/index_state.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/model_engine.h"
#include "pool/index_memory_test.h"

namespace skep::pool {
namespace {

using Kind = LogEntry::Kind;
using Condition = LogEntry::Condition;
using Verdict = CommitVerdict::Kind;

constexpr DigestKeys kKeys = {.index = {1, 2}, .tag = {3, 4}};

// A state with a hash index, one with a tree, or one with both.
class StateUnderTest {
 public:
  StateUnderTest(bool has_hash, bool has_tree) {
    if (has_hash) {
      hash_ = memory_.Create({.first_depth = 1, .read_limit_ns = 1});
      state.set_hash(hash_.get(), true);
    }
    if (has_tree) {
      EngineOptions options;
      options.budget = &budget_;
      tree_ = ModelEngine::kInfo.make(options);
      state.set_tree(tree_.get(), true);
    }
  }

  // One batch with these entries; the last one's verdict.
  CommitVerdict Apply(const std::vector<LogEntry>& entries) {
    LogBatch batch(state.applied() + 1);
    for (const LogEntry& entry : entries) batch.Add(entry);
    std::vector<CommitVerdict> verdicts;
    state.Apply(batch, &verdicts);
    EXPECT_EQ(verdicts.size(), entries.size());
    return verdicts.back();
  }

  IndexState state{kKeys};

 private:
  MemoryBudget budget_;
  IndexMemory memory_{1024, 1024};
  std::unique_ptr<HashIndex> hash_;
  std::unique_ptr<Engine> tree_;
};

Slot SlotAt(std::string_view key, uint32_t chunk, uint32_t unit, uint8_t gen = 0) {
  return Slot(DigestOf(kKeys, key).signature(), 1, gen, chunk, unit);
}

LogEntry Put(std::string_view key, uint64_t sequence, Slot slot,
             Condition condition = Condition::kNone, Slot expected = {}) {
  return {.kind = Kind::kPut,
          .condition = condition,
          .client = 1,
          .sequence = sequence,
          .key = key,
          .slot = slot,
          .expected = expected};
}

// Client 1 has chunk 0 of the ten chunks of server 9.
const std::vector<LogEntry> kBegin = {
    {.kind = Kind::kServer, .range = {.server = 9, .first = 0, .count = 10}},
    {.kind = Kind::kJoin, .client = 1},
    {.kind = Kind::kLease, .client = 1, .chunk = 0, .frames = {0, kNoFrame}}};

class IndexStateTest : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  IndexStateTest() { subject_.Apply(kBegin); }
  StateUnderTest subject_{GetParam().first, GetParam().second};
};

INSTANTIATE_TEST_SUITE_P(Indexes, IndexStateTest,
                         testing::Values(std::pair(true, false), std::pair(false, true),
                                         std::pair(true, true)),
                         [](const auto& indexes) {
                           return std::string(indexes.param.first ? "Hash" : "") +
                                  (indexes.param.second ? "Tree" : "");
                         });

TEST_P(IndexStateTest, ConditionsAreJudgedByTheStateThatIs) {
  const Slot a = SlotAt("key", 0, 1);
  const Slot b = SlotAt("key", 0, 2);
  EXPECT_EQ(subject_.Apply({Put("key", 1, a, Condition::kIfPresent)}).kind, Verdict::kNotMet);
  EXPECT_EQ(subject_.Apply({Put("key", 2, a, Condition::kIfAbsent)}).kind, Verdict::kDone);
  EXPECT_EQ(subject_.Apply({Put("key", 3, b, Condition::kIfAbsent)}).kind, Verdict::kNotMet);
  EXPECT_EQ(subject_.Apply({Put("key", 4, b, Condition::kIfSlot, b)}).kind, Verdict::kNotMet);
  const CommitVerdict swapped = subject_.Apply({Put("key", 5, b, Condition::kIfSlot, a)});
  EXPECT_EQ(swapped.kind, Verdict::kDone);
  EXPECT_EQ(swapped.before, a);
  EXPECT_EQ(subject_.state.Find("key"), b);
  const LogEntry erase = {.kind = Kind::kDelete, .client = 1, .sequence = 6, .key = "key"};
  EXPECT_EQ(subject_.Apply({erase}).before, b);
  EXPECT_EQ(subject_.state.Find("key"), Slot());
  EXPECT_EQ(
      subject_.Apply({{.kind = Kind::kDelete, .client = 1, .sequence = 7, .key = "key"}}).kind,
      Verdict::kNotMet);
}

// H4: an operation that is sent again, in the same batch or a later one, is done once.
TEST_P(IndexStateTest, AnOperationIsDoneOnce) {
  const LogEntry first = Put("key", 1, SlotAt("key", 0, 1), Condition::kIfAbsent);
  const CommitVerdict done = subject_.Apply({first});
  EXPECT_EQ(done.kind, Verdict::kDone);
  EXPECT_EQ(subject_.Apply({Put("key", 2, SlotAt("key", 0, 2))}).before, first.slot);
  EXPECT_EQ(subject_.Apply({first}), done);
  EXPECT_EQ(subject_.state.Find("key"), SlotAt("key", 0, 2));
  const LogEntry third = Put("other", 3, SlotAt("other", 0, 3), Condition::kIfAbsent);
  EXPECT_EQ(subject_.Apply({third, third}).kind, Verdict::kDone);
  EXPECT_EQ(subject_.state.chunks().all()[0].items, 2u);
}

TEST_P(IndexStateTest, OlderThanTheWindowIsUnknown) {
  for (uint64_t i = 1; i <= Sessions::kWindow + 1; ++i) {
    subject_.Apply({Put("key", i, SlotAt("key", 0, static_cast<uint32_t>(i)))});
  }
  EXPECT_EQ(subject_.Apply({Put("key", 2, SlotAt("key", 0, 2))}).kind, Verdict::kDone);
  EXPECT_EQ(subject_.Apply({Put("key", 1, SlotAt("key", 0, 1))}).kind, Verdict::kUnknown);
  EXPECT_EQ(subject_.Apply({Put("key", 0, SlotAt("key", 0, 1))}).kind, Verdict::kUnknown);
}

// H11, on the index's side: a client that has ended commits nothing more, and nobody commits an
// item of a chunk that is not the client's.
TEST_P(IndexStateTest, OnlyAChunksClientCommits) {
  EXPECT_EQ(subject_.Apply({Put("key", 1, SlotAt("key", 5, 1))}).kind, Verdict::kUnknown);
  EXPECT_EQ(subject_.Apply({Put("key", 2, SlotAt("key", 0, 1, 1))}).kind, Verdict::kUnknown);
  EXPECT_EQ(subject_.Apply({Put("key", 3, SlotAt("key", 99, 1))}).kind, Verdict::kUnknown);
  EXPECT_EQ(subject_.Apply({Put("key", 4, SlotAt("key", 0, 1))}).kind, Verdict::kDone);
  subject_.Apply({{.kind = Kind::kLeave, .client = 1}});
  EXPECT_EQ(subject_.Apply({Put("key", 5, SlotAt("key", 0, 2))}).kind, Verdict::kUnknown);
  EXPECT_EQ(subject_.state.Find("key"), SlotAt("key", 0, 1));
  EXPECT_EQ(subject_.state.chunks().all()[0].state, Chunks::State::kSealed);
}

TEST_P(IndexStateTest, AChunkIsRecycledWhenItIsSealedAndEmpty) {
  const auto chunk = [this] { return subject_.state.chunks().all()[0]; };
  const LogEntry recycle = {.kind = Kind::kRecycle, .chunk = 0};
  subject_.Apply({Put("key", 1, SlotAt("key", 0, 1))});
  subject_.Apply({recycle});
  EXPECT_EQ(chunk().state, Chunks::State::kLeased);
  subject_.Apply({{.kind = Kind::kSeal, .client = 1, .chunk = 0}, recycle});
  EXPECT_EQ(chunk().state, Chunks::State::kSealed);
  EXPECT_EQ(chunk().sealed_index, 6u);
  subject_.Apply({{.kind = Kind::kDelete, .client = 1, .sequence = 2, .key = "key"}, recycle});
  EXPECT_EQ(chunk().state, Chunks::State::kFree);
  EXPECT_EQ(chunk().gen, 1);
}

// Both kinds of servers apply the same random entries and come to the same verdicts.
TEST(IndexState, AllServersAgree) {
  SeededRandom random(7);
  StateUnderTest hash(true, false);
  StateUnderTest tree(false, true);
  StateUnderTest both(true, true);
  for (StateUnderTest* state : {&hash, &tree, &both}) state->Apply(kBegin);
  uint64_t sequence = 0;
  std::vector<std::string> keys;
  for (int i = 0; i < 30; ++i) keys.push_back("key" + std::to_string(i));
  std::map<std::string, Slot> last;
  for (int round = 0; round < 500; ++round) {
    LogBatch batch(hash.state.applied() + 1);
    for (uint64_t i = random.Below(20); i < 20; ++i) {
      const std::string& key = keys[random.Below(keys.size())];
      const auto units = static_cast<uint32_t>(1 + random.Below(300));
      const auto unit = static_cast<uint32_t>(random.Below(kChunkUnits - units));
      const Slot slot(DigestOf(kKeys, key).signature(), units, 0, 0, unit);
      LogEntry entry = Put(key, 0, slot);
      entry.sequence = random.Chance(1, 10) ? 1 + random.Below(sequence + 1) : ++sequence;
      entry.condition = static_cast<Condition>(random.Below(4));
      // A condition on a slot names one.
      entry.expected = last[key] ? last[key] : slot;
      if (random.Chance(1, 4)) {
        entry.kind = Kind::kDelete;
        if (entry.condition == Condition::kIfAbsent) entry.condition = Condition::kNone;
      } else {
        last[key] = slot;
      }
      batch.Add(entry);
    }
    std::vector<CommitVerdict> of_hash, of_tree, of_both;
    hash.state.Apply(batch, &of_hash);
    tree.state.Apply(batch, &of_tree);
    both.state.Apply(batch, &of_both);
    ASSERT_EQ(of_hash, of_tree);
    ASSERT_EQ(of_hash, of_both);
  }
  uint64_t units = 0;
  for (const std::string& key : keys) {
    EXPECT_EQ(hash.state.Find(key), tree.state.Find(key));
    EXPECT_EQ(hash.state.Find(key), both.state.Find(key));
    units += hash.state.Find(key).units();
  }
  EXPECT_EQ(hash.state.items(), tree.state.items());
  EXPECT_EQ(hash.state.chunks().all()[0].items, hash.state.items());
  EXPECT_EQ(hash.state.chunks().live_units(), units) << "as a count of all items comes to";
  EXPECT_EQ(hash.state.chunks().all(), tree.state.chunks().all());
  EXPECT_EQ(hash.state.chunks().all(), both.state.chunks().all());
}

}  // namespace
}  // namespace skep::pool

#include "bench/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "bench/answer_checksum.h"
#include "bench/key_sweep.h"
#include "bench/keyspace_target.h"
#include "bench/op_generator.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

// A target, its session, and its answers so far.
struct Player {
  explicit Player(Result<std::unique_ptr<YcsbTarget>> opened) : target(std::move(*opened)) {
    session = std::move(*target->Connect());
  }
  void Run(const OpStream& stream) {
    constexpr size_t kBatch = 16;
    for (size_t first = 0; first < stream.size(); first += kBatch) {
      const size_t count = std::min(kBatch, stream.size() - first);
      EXPECT_TRUE(session->Execute(stream, first, count, tally).ok());
    }
  }

  std::unique_ptr<YcsbTarget> target;
  std::unique_ptr<YcsbSession> session;
  Tally tally;
};

Result<std::unique_ptr<YcsbTarget>> OpenModel(const ValuePool& values) {
  auto target = KeyspaceTarget::Open({.engine = "model", .keyspaces = 1}, values);
  if (!target) return Fail(target.error());
  return std::move(*target);
}

constexpr uint64_t kItems = 500;

OpStream SweepOf(const KeyFormat& format, OpKind kind, size_t count) {
  OpStream stream(format);
  KeySweep(kind, kItems, 0, 1, 3).Fill(stream, count);
  return stream;
}

OpStream MixOf(const KeyFormat& format, const char* workload, size_t count) {
  OpStream stream(format);
  const Workload found = *FindWorkload(workload);
  OpGenerator({.workload = found,
               .distribution = found.distribution,
               .records = kItems,
               .ops = count,
               .threads = 1,
               .seed = 3},
              0)
      .Fill(stream, count);
  return stream;
}

class PeerTest : public testing::TestWithParam<const PeerInfo*> {
 protected:
  const PeerInfo& peer() const { return *GetParam(); }
  Result<std::unique_ptr<YcsbTarget>> Open(size_t key_bytes, const ValuePool& values) const {
    return peer().open({.key_bytes = key_bytes, .values = values, .items_max = 3 * kItems});
  }
  // Expects equal answers, except for errors: a peer that cannot tell whether a key existed has
  // fewer.
  static void ExpectEqual(const Player& player, const Player& model) {
    EXPECT_EQ(player.tally.checksum, model.tally.checksum);
    EXPECT_EQ(player.tally.items_scanned, model.tally.items_scanned);
    EXPECT_EQ(player.tally.errors, model.tally.errors) << player.tally.first_error;
  }
  void ExpectAnswersOfTheModel(const KeyFormat& format, const ValuePool& values) const {
    Player player(Open(format.bytes(), values));
    Player model(OpenModel(values));
    const auto run = [&](const OpStream& stream) {
      player.Run(stream);
      model.Run(stream);
      ExpectEqual(player, model);
    };
    run(SweepOf(format, OpKind::kInsert, kItems));
    for (const char* workload : {"get", "a", "update", "f"}) run(MixOf(format, workload, 300));
    if (peer().ordered) run(MixOf(format, "scan24", 100));
    run(MixOf(format, "d", 300));
    run(SweepOf(format, OpKind::kDelete, kItems / 2));
    if (peer().ordered) run(MixOf(format, "scan3", 100));
    EXPECT_EQ(player.tally.errors, 0u) << player.tally.first_error;
    run(MixOf(format, "get", 300));
    EXPECT_GT(player.tally.errors, 0u) << "deleted keys were asked for";
    EXPECT_NE(player.tally.checksum, 0u);
  }
};

// Goal: a peer answers every operation as Skep's oracle engine does, for every size that it
// supports, so that its keys are in the order of their bytes and nothing is lost or left.
// Method: the same streams run through both; the checksums have all answers. Workloads that scan do
// not write, since a batch's scans may or may not see its own insertions.
TEST_P(PeerTest, AnswersAsTheModelEngine) {
  {
    SCOPED_TRACE("4 + 4");
    ExpectAnswersOfTheModel(KeyFormat::Random(4), ValuePool(4, 1));
  }
  for (size_t key_bytes : {8, 16, 24, 32}) {
    for (size_t value_bytes : {8, 16, 24, 32}) {
      SCOPED_TRACE(testing::Message() << key_bytes << " + " << value_bytes);
      ExpectAnswersOfTheModel(KeyFormat::Random(key_bytes), ValuePool(value_bytes, 1));
    }
  }
}

// Goal: a peer answers as the oracle engine does on mixed sizes too.
TEST_P(PeerTest, AnswersAsTheModelEngineOnMixedSizes) {
  ExpectAnswersOfTheModel(KeyFormat::Mixed(), ValuePool::Mixed(1));
}

// Goal: the memory that a peer reports, if it does, is not less than its items.
TEST_P(PeerTest, HoldsItsItems) {
  const ValuePool values(16, 1);
  Player player(Open(16, values));
  player.Run(SweepOf(KeyFormat::Random(16), OpKind::kInsert, kItems));
  const auto footprint = player.target->Measure();
  ASSERT_TRUE(footprint);
  EXPECT_GE(footprint->bytes_per_item.value_or(32), 32);
}

// Goal: sessions of several threads do not disturb each other, if the peer supports several.
// Method: two sessions in turn: each reads what the other has written, also between its own writes.
TEST_P(PeerTest, SessionsSeeEachOther) {
  if (!peer().threads) GTEST_SKIP() << "one session only";
  const KeyFormat format = KeyFormat::Random(16);
  const ValuePool values(16, 1);
  Player player(Open(16, values));
  auto second = std::move(*player.target->Connect());
  const OpStream inserts = SweepOf(format, OpKind::kInsert, 100);
  const OpStream reads = SweepOf(format, OpKind::kRead, 100);
  Tally tally;
  for (size_t at = 0; at < inserts.size(); at += 10) {
    EXPECT_TRUE(player.session->Execute(inserts, at, 10, tally).ok());
    EXPECT_TRUE(second->Execute(reads, 0, at + 10, tally).ok());
  }
  EXPECT_EQ(tally.errors, 0u) << tally.first_error;
}

INSTANTIATE_TEST_SUITE_P(All, PeerTest, testing::ValuesIn([] {
                           std::vector<const PeerInfo*> built;
                           for (const PeerInfo& peer : AllPeers()) {
                             if (peer.open != nullptr) built.push_back(&peer);
                           }
                           return built;
                         }()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::erase(name, '-');
                           return name;
                         });

// Goal: wrong outcomes are counted, once for each operation.
TEST(AbslPeer, CountsWrongOutcomes) {
  const ValuePool values(16, 1);
  Player player(OpenAbsl({.key_bytes = 16, .values = values, .items_max = 10}));
  const auto errors = [&](OpKind kind, uint64_t number, uint32_t items = 0) {
    OpStream stream{KeyFormat(16)};
    stream.Add(kind, number, items);
    player.tally = {};
    player.Run(stream);
    return player.tally.errors;
  };
  EXPECT_EQ(errors(OpKind::kRead, 1), 1u);
  EXPECT_EQ(errors(OpKind::kScan, 1, 5), 1u);
  EXPECT_EQ(errors(OpKind::kReadModifyWrite, 1), 1u);
  EXPECT_EQ(errors(OpKind::kUpdate, 1), 1u);
  EXPECT_EQ(errors(OpKind::kDelete, 1), 1u);
  EXPECT_EQ(errors(OpKind::kInsert, 1), 0u);
  EXPECT_EQ(errors(OpKind::kInsert, 1), 1u);
  EXPECT_EQ(errors(OpKind::kReadModifyWrite, 1), 0u);
  EXPECT_EQ(errors(OpKind::kScan, 1, 5), 0u);
  EXPECT_EQ(errors(OpKind::kDelete, 1), 0u);
  EXPECT_EQ(errors(OpKind::kRead, 1), 1u);
}

TEST(AbslPeer, RefusesOtherSizes) {
  for (const auto& [key_bytes, value_bytes] : {std::pair{15, 16}, {16, 100}, {40, 16}, {16, 0}}) {
    const ValuePool values(value_bytes, 1);
    const auto target =
        OpenAbsl({.key_bytes = static_cast<size_t>(key_bytes), .values = values, .items_max = 10});
    ASSERT_FALSE(target);
    EXPECT_THAT(target.error().what(), HasSubstr("8, 16, 24 or 32"));
  }
}

// Goal: a difference in the bytes, in the order of items or in the slot of an answer changes the
// checksum; in long ones, in a word of any line and at both ends.
TEST(AnswerChecksum, SeesBytesAndPositions) {
  EXPECT_NE(SumOfBytes("abcdefgh12345678"), SumOfBytes("12345678abcdefgh"));
  EXPECT_NE(SumOfBytes("abc"), SumOfBytes("abd"));
  EXPECT_NE(SumOfBytes("abcdefgh1"), SumOfBytes("abcdefgh2"));
  EXPECT_NE(SumOfBytes("abcdefgh1"), SumOfBytes("Abcdefgh1"));
  EXPECT_NE(SumOfBytes(std::string_view("a\0", 2)), SumOfBytes("a"));
  const std::string text(200, 'x');
  for (const size_t at : {0, 7, 64, 128, 192, 199}) {
    std::string changed = text;
    changed[at] = 'y';
    EXPECT_NE(SumOfBytes(text), SumOfBytes(changed)) << at;
  }
  EXPECT_NE(ChecksumOfValue(0, "a") + ChecksumOfValue(1, "b"),
            ChecksumOfValue(0, "b") + ChecksumOfValue(1, "a"));
  EXPECT_NE(AddItem(AddItem(0, "a", "x"), "b", "y"), AddItem(AddItem(0, "b", "y"), "a", "x"));
  EXPECT_NE(AddItem(0, "a", "x"), AddItem(0, "x", "a"));
}

}  // namespace
}  // namespace skep::bench

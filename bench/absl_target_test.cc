#include "bench/absl_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "bench/answer_checksum.h"
#include "bench/keyspace_target.h"
#include "bench/ordered_load.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

// A target, its session, and what it answered so far.
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

OpStream StreamOf(const KeyFormat& format, const char* load, uint64_t items, size_t count) {
  OpStream stream(format);
  const OrderedShare share = {.items = items, .thread = 0, .threads = 1, .seed = 3};
  const OrderedLoad found = *FindOrderedLoad(load);
  const bool sweeps = found.kind == OpKind::kInsert || found.kind == OpKind::kDelete;
  (sweeps ? MakeSweep(found.kind, share) : MakeChoices(found, share))->Fill(stream, count);
  return stream;
}

std::unique_ptr<YcsbTarget> OpenModel(const ValuePool& values) {
  return std::move(*KeyspaceTarget::Open("model", values));
}

// Goal: the peer answers every operation as Skep's oracle engine does, for every size it takes, so
// that its keys are in the order of their bytes and nothing is lost or left.
// Method: the same streams through both; every byte of every answer is in the checksum.
TEST(AbslTarget, AnswersAsTheModelEngine) {
  constexpr uint64_t kItems = 500;
  for (size_t key_bytes : {8, 16, 24, 32}) {
    for (size_t value_bytes : {8, 16, 24, 32}) {
      SCOPED_TRACE(testing::Message() << key_bytes << " + " << value_bytes);
      const KeyFormat format = KeyFormat::Random(key_bytes);
      const ValuePool values(value_bytes, 1);
      Player absl(OpenAbslTarget(key_bytes, values, kItems));
      Player model(OpenModel(values));
      for (const auto& [load, count] : {std::pair{"insert", kItems},
                                        {"get", 300},
                                        {"scan24", 100},
                                        {"update", 300},
                                        {"get_zipf", 300},
                                        {"delete", kItems / 2},
                                        {"scan3", 100},
                                        {"get", 300}}) {
        SCOPED_TRACE(load);
        const OpStream stream = StreamOf(format, load, kItems, count);
        absl.Run(stream);
        model.Run(stream);
        EXPECT_EQ(absl.tally.checksum, model.tally.checksum);
        EXPECT_EQ(absl.tally.items_scanned, model.tally.items_scanned);
        EXPECT_EQ(absl.tally.errors, model.tally.errors);
      }
      EXPECT_GT(absl.tally.errors, 0u) << "deleted keys were asked for";
      EXPECT_NE(absl.tally.checksum, 0u);
    }
  }
}

// Goal: what must not happen is counted, once for each operation; but an update stores what was
// absent in one and not in the other, as each calls it.
TEST(AbslTarget, CountsWrongOutcomes) {
  const ValuePool values(16, 1);
  Player player(OpenAbslTarget(16, values, 10));
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

TEST(AbslTarget, RefusesOtherSizes) {
  for (const auto& [key_bytes, value_bytes] : {std::pair{15, 16}, {16, 100}, {40, 16}, {16, 0}}) {
    const ValuePool values(value_bytes, 1);
    const auto target = OpenAbslTarget(key_bytes, values, 10);
    ASSERT_FALSE(target);
    EXPECT_THAT(target.error().what(), HasSubstr("8, 16, 24 or 32"));
  }
}

// Goal: a difference in any byte, in the order of items or in the slot of an answer shows.
TEST(AnswerChecksum, SeesBytesAndPositions) {
  EXPECT_NE(SumOfBytes("abcdefgh12345678"), SumOfBytes("12345678abcdefgh"));
  EXPECT_NE(SumOfBytes("abc"), SumOfBytes("abd"));
  EXPECT_NE(SumOfBytes("abcdefgh1"), SumOfBytes("abcdefgh2"));
  EXPECT_NE(SumOfBytes(std::string_view("a\0", 2)), SumOfBytes("a"));
  EXPECT_NE(ChecksumOfValue(0, "a") + ChecksumOfValue(1, "b"),
            ChecksumOfValue(0, "b") + ChecksumOfValue(1, "a"));
  EXPECT_NE(ChecksumOfItem(0, "a", "x") + ChecksumOfItem(1, "b", "y"),
            ChecksumOfItem(0, "b", "y") + ChecksumOfItem(1, "a", "x"));
  EXPECT_NE(ChecksumOfItem(0, "a", "x"), ChecksumOfItem(0, "x", "a"));
}

}  // namespace
}  // namespace skep::bench

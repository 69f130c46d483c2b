// The function that finds one member in a segment.
#include "types/large_find.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "types/hash.h"
#include "types/hash_fields.h"
#include "types/large_segment.h"
#include "types/set.h"
#include "types/sorted_set.h"
#include "types/text.h"
#include "types/value_type.h"

namespace skep::types {
namespace {

std::string Text(std::string_view text) {
  Scratch scratch;
  return std::string(JoinTexts(std::span(&text, 1), scratch));
}

// The piece of a member of a collection of this kind.
std::string PieceOf(uint8_t kind, const std::string& member, std::mt19937& rng) {
  if (kind == kSet) return Text(member);
  if (kind == kSortedSet) return Text(member) + std::string(8, static_cast<char>(rng() % 0x7f));
  std::string piece;
  if (rng() % 4 == 0) piece = std::string(1, '\0') + std::string(8, '\x11');  // a deadline
  return piece + Text(member) + Text(std::string(rng() % 200, 'v'));
}

FunctionEffect Find(uint8_t kind, std::optional<std::string_view> segment, std::string_view member,
                    Scratch& scratch) {
  const auto function =
      std::ranges::find(LargeFindFunctions(), FindFunctionName(kind), &TypeFunction::name);
  return function->body({.value = segment,
                         .operand = member,
                         .scratch = &scratch,
                         .function = nullptr,
                         .value_bytes_max = 1 << 20,
                         .now_ms = 0});
}

SegmentFinding FindingOf(const FunctionEffect& effect) {
  return static_cast<SegmentFinding>(effect.integer);
}

// Goal: the finding is that of a std::map, and says where the segment ends.
// Method: random segments of each kind, with a fence or without, members of all byte values and
// lengths around that from which a length takes two bytes. A segment that is cut short has a piece
// of the whole one, or none, or is refused, and is never read beyond its end (ASan looks).
TEST(LargeFind, AgreesWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  std::vector<std::string> members = {"", std::string(1, '\0'), "\xff", "a", "ab", "member:12"};
  for (const size_t bytes : {125, 126, 127, 128, 300}) members.emplace_back(bytes, 'm');
  for (int i = 0; i < 30; ++i) members.push_back("member:" + std::to_string(rng() % 100));
  for (int round = 0; round < 500; ++round) {
    const uint8_t kind = std::vector<uint8_t>{kHash, kSet, kSortedSet}[round % 3];
    std::map<std::string, std::string> model;
    for (size_t i = rng() % 20; i > 0; --i) {
      const std::string& member = members[rng() % members.size()];
      model[member] = PieceOf(kind, member, rng);
    }
    std::optional<std::string> fence;
    if (rng() % 2 == 0) fence = members[rng() % members.size()];
    if (fence) model.erase(model.lower_bound(*fence), model.end());
    std::string body;
    for (const auto& [member, piece] : model) body += piece;
    const std::string segment =
        WriteSegment({.stamp = 1, .fence = fence, .pieces = model.size(), .body = body});
    for (const std::string& member : members) {
      Scratch scratch;
      const FunctionEffect effect = Find(kind, segment, member, scratch);
      ASSERT_TRUE(effect.status.ok());
      EXPECT_EQ(effect.action, FunctionEffect::Action::kKeep);
      const auto known = model.find(member);
      if (fence && member >= *fence) {
        EXPECT_EQ(FindingOf(effect), SegmentFinding::kEndsBefore);
        EXPECT_EQ(effect.returned, *fence);
      } else if (known != model.end()) {
        EXPECT_EQ(FindingOf(effect), SegmentFinding::kPiece);
        EXPECT_EQ(effect.returned, known->second);
      } else {
        EXPECT_EQ(FindingOf(effect), SegmentFinding::kNone);
        EXPECT_EQ(effect.returned, "");
      }
      const std::string cut(segment.data(), rng() % segment.size());
      const FunctionEffect of_cut = Find(kind, cut, member, scratch);
      if (of_cut.status.ok() && FindingOf(of_cut) == SegmentFinding::kPiece) {
        EXPECT_EQ(of_cut.returned, model.at(member));
      }
    }
  }
}

// Goal: the answer of a piece is that of the function on a collection of that member alone, or of
// none; for a field with a deadline there is no such answer.
TEST(LargeFind, AnswersAsTheFunctionDoes) {
  std::mt19937 rng(1);
  Scratch scratch;
  const auto answer_of = [&](uint8_t kind, std::optional<std::string_view> value,
                             std::string_view operand) {
    const auto named = [](std::span<const TypeFunction> functions, std::string_view name) {
      return *std::ranges::find(functions, name, &TypeFunction::name);
    };
    const TypeFunction function = kind == kHash  ? named(HashFunctions(), "hash-get")
                                  : kind == kSet ? named(SetFunctions(), "set-has")
                                                 : named(SortedSetFunctions(), "zset-score");
    return function.body({.value = value,
                          .operand = operand,
                          .scratch = &scratch,
                          .function = nullptr,
                          .value_bytes_max = 1 << 20,
                          .now_ms = 0});
  };
  const auto expect_same = [](const FunctionEffect& found, const FunctionEffect& wanted) {
    EXPECT_TRUE(wanted.status.ok());
    EXPECT_EQ(found.returned, wanted.returned);
    EXPECT_EQ(found.integer, wanted.integer);
  };
  for (const uint8_t kind : {kHash, kSet, kSortedSet}) {
    for (int i = 0; i < 100; ++i) {
      const std::string member(rng() % 300, 'm');
      const std::string piece = PieceOf(kind, member, rng);
      const auto found = AnswerOfPiece(kind, piece, scratch);
      if (kind == kHash && HasDeadlineForm(piece)) {
        EXPECT_FALSE(found);
        continue;
      }
      ASSERT_TRUE(found);
      // In one value the score of a sorted set stands in front of the member.
      const size_t score = kind == kSortedSet ? piece.size() - 8 : 0;
      const std::string value = "\1" + piece.substr(score) + piece.substr(0, score);
      expect_same(*found, answer_of(kind, value, Text(member)));
    }
    const auto of_none = AnswerOfPiece(kind, std::nullopt, scratch);
    ASSERT_TRUE(of_none);
    expect_same(*of_none, answer_of(kind, std::nullopt, Text("a")));
  }
}

// Goal: a segment that is gone is told, and bytes that are no segment are refused.
TEST(LargeFind, TellsWhatIsGone) {
  Scratch scratch;
  for (const uint8_t kind : {kHash, kSet, kSortedSet}) {
    EXPECT_EQ(FindingOf(Find(kind, std::nullopt, "a", scratch)), SegmentFinding::kNoSegment);
    EXPECT_FALSE(Find(kind, "short", "a", scratch).status.ok());
    const std::string segment = WriteSegment(
        {.stamp = 1, .fence = std::nullopt, .pieces = 1, .body = std::string(1, '\x05')});
    EXPECT_FALSE(Find(kind, segment, "a", scratch).status.ok());
  }
}

}  // namespace
}  // namespace skep::types

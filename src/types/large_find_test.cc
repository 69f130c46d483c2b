// The function that finds one member in a segment.
#include "types/large_find.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "types/hash_fields.h"
#include "types/large_segment.h"
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
  if (kind == kSortedSet) return Text(member) + std::string(8, static_cast<char>(rng()));
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

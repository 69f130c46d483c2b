// Exchanges of pieces in segments of sorted sets.
#include "types/large_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "types/large_segment.h"
#include "types/score.h"
#include "types/text.h"

namespace skep::types {
namespace {

constexpr uint32_t kBytesMax = 400;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class LargeExchange : public testing::TestWithParam<bool> {
 protected:
  using Member = std::pair<double, std::string>;

  bool by_score() const { return GetParam(); }
  std::string PieceOf(const Member& member) {
    TextWriter writer(scratch_, 8 + TextBytes(member.second));
    if (by_score()) writer.Fixed(member.first);
    writer.Text(member.second);
    if (!by_score()) writer.Fixed(member.first);
    return std::string(writer.bytes());
  }
  // Whether `a` is before `b` in the segment.
  bool IsBefore(const Member& a, const Member& b) const {
    return by_score() ? a < b : a.second < b.second;
  }
  // What separators are compared with.
  std::string PlaceOf(const Member& member) const {
    std::string bytes;
    const uint64_t number = NumberOfScore(member.first);
    for (int shift = 56; by_score() && shift >= 0; shift -= 8) {
      bytes += static_cast<char>(number >> shift);
    }
    return bytes + member.second;
  }
  std::string SegmentOf(const std::vector<Member>& members,
                        std::optional<std::string_view> fence = {}) {
    std::string body;
    for (const Member& member : members) body += PieceOf(member);
    return WriteSegment({.stamp = 1, .fence = fence, .pieces = members.size(), .body = body});
  }
  FunctionEffect Run(const std::optional<std::string>& segment, const std::string& edits,
                     uint32_t bytes_max = kBytesMax) {
    const std::string_view operand = WriteExchange(
        {.stamp = 9, .bytes_max = bytes_max, .by_score = by_score(), .edits = edits}, scratch_);
    return RunWith(segment, operand);
  }
  FunctionEffect RunWith(const std::optional<std::string>& segment, std::string_view operand) {
    FunctionInput input{.value = {},
                        .operand = operand,
                        .scratch = &scratch_,
                        .function = nullptr,
                        .value_bytes_max = 1 << 20,
                        .now_ms = 0};
    if (segment) input.value = scratch_.Copy(*segment);
    return LargeExchangeFunctions().front().body(input);
  }
  std::string Removal(const Member& member) {
    std::string edits;
    AppendRemoval(PieceOf(member), edits);
    return edits;
  }
  std::string Insertion(const Member& member) {
    std::string edits;
    AppendInsertion(PieceOf(member), edits);
    return edits;
  }

  Scratch scratch_;
};

// Goal: an exchange makes of a segment what its edits say, or changes nothing.
// Method: members of few names and scores, equal ones and infinite ones among them, of all byte
// values; random removals and insertions, of which one may be of a piece that is not so. The result
// is that of a sorted list.
TEST_P(LargeExchange, AgreesWithAList) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const double scores[] = {-kInfinity, -1.5, 0, 1e-300, 1, kInfinity};
  const auto random_member = [&] {
    std::string name(rng() % 3, '\0');
    for (char& byte : name) byte = static_cast<char>(rng() % 2 == 0 ? 'a' + rng() % 4 : rng());
    if (rng() % 40 == 0) name.resize(130, 'x');
    return Member(scores[rng() % std::size(scores)], name);
  };
  const auto is_before = [&](const Member& a, const Member& b) { return IsBefore(a, b); };
  const auto same_place = [&](const Member& a, const Member& b) {
    return !IsBefore(a, b) && !IsBefore(b, a);
  };
  int done = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Member> members(rng() % 12);
    std::ranges::generate(members, random_member);
    std::ranges::sort(members, is_before);
    members.erase(std::unique(members.begin(), members.end(), same_place), members.end());
    std::vector<Member> places(1 + rng() % 4);
    std::ranges::generate(places, random_member);
    if (!members.empty() && rng() % 2 == 0) places[0] = members[rng() % members.size()];
    std::ranges::sort(places, is_before);
    places.erase(std::unique(places.begin(), places.end(), same_place), places.end());
    std::vector<Member> expected = members;
    std::string edits;
    bool is_so = true;
    size_t removed = 0;
    for (const Member& place : places) {
      const auto at = std::ranges::find_if(
          expected, [&](const Member& member) { return same_place(member, place); });
      const bool is_there = at != expected.end();
      const bool lies = rng() % 16 == 0;
      if (is_there != lies) {
        const bool has_score = is_there && rng() % 16 != 0;
        edits += Removal(has_score ? *at : Member(by_score() ? place.first : 77, place.second));
        is_so = is_so && is_there && (has_score || by_score());
        if (is_there) expected.erase(at);
        ++removed;
        if (rng() % 2 == 0) continue;
      }
      edits += Insertion(place);
      is_so = is_so && (!is_there || !lies);
      expected.insert(std::ranges::upper_bound(expected, place, is_before), place);
    }
    const std::string segment = SegmentOf(members);
    const FunctionEffect effect = Run(segment, edits);
    const std::string after = SegmentOf(expected);
    const size_t bytes = ReadSegment(after)->body.size();
    is_so = is_so && bytes <= 2 * kBytesMax;
    ASSERT_EQ(effect.status.code(), is_so ? Code::kOk : Code::kAborted) << "round " << round;
    if (!is_so) continue;
    ++done;
    ASSERT_EQ(effect.action, FunctionEffect::Action::kReplace);
    const auto now = ReadSegment(effect.value);
    ASSERT_EQ(now->body, ReadSegment(after)->body) << "round " << round;
    ASSERT_EQ(now->pieces, expected.size());
    ASSERT_EQ(now->stamp, 9u);
    ASSERT_EQ(effect.integer, bytes > kBytesMax ? kIsLong : 0);
  }
  EXPECT_GT(done, 5000);
}

// Goal: a place belongs to a segment if it is below the fence, however few bytes the fence has.
TEST_P(LargeExchange, EndsAtTheFence) {
  std::vector<Member> members;
  for (const double score : {-kInfinity, -2.0, -1e-9, 0.0, 0.5, 1.0, 1e300, kInfinity}) {
    for (const char* const name : {"", "a", "\xff"}) members.emplace_back(score, name);
  }
  for (const Member& end : members) {
    const std::string whole = PlaceOf(end);
    for (size_t bytes = 1; bytes <= whole.size(); ++bytes) {
      const std::string fence = whole.substr(0, bytes);
      for (const Member& place : members) {
        const FunctionEffect effect = Run(SegmentOf({}, fence), Insertion(place));
        const bool is_within = PlaceOf(place) < fence;
        ASSERT_EQ(effect.status.code(), is_within ? Code::kOk : Code::kAborted)
            << place.first << ' ' << place.second << " at " << end.first << ' ' << bytes;
      }
    }
  }
}

// Goal: a segment may have twice the bytes that it is meant to have, and no more; it is told when
// one is long, and when less than a quarter is left of one that has a next one.
TEST_P(LargeExchange, TellsLongAndSparse) {
  const std::vector<Member> members = {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}};
  const auto bytes = static_cast<uint32_t>(PieceOf(members[0]).size());
  const Member more(5, "e");
  const std::string segment = SegmentOf(members);
  EXPECT_EQ(Run(segment, Insertion(more), 5 * bytes).integer, 0);
  EXPECT_EQ(Run(segment, Insertion(more), 5 * bytes - 1).integer, kIsLong);
  EXPECT_TRUE(Run(segment, Insertion(more), (5 * bytes + 1) / 2).status.ok());
  EXPECT_EQ(Run(segment, Insertion(more), 5 * bytes / 2 - 1).status.code(), Code::kAborted);
  const std::string fenced = SegmentOf(members, "\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(Run(fenced, Removal(members[3]), 12 * bytes).integer, 0);
  EXPECT_EQ(Run(fenced, Removal(members[3]), 12 * bytes + 4).integer, kIsSparse);
  EXPECT_EQ(Run(segment, Removal(members[3]), 12 * bytes + 4).integer, 0);
  EXPECT_EQ(Run(fenced, Insertion(more), 100 * bytes).integer, 0);
}

// Goal: nothing is believed of operands and segments: what is cut off, or not in its order, is
// refused, and other bytes do no harm.
TEST_P(LargeExchange, RefusesWhatIsMalformed) {
  const std::vector<Member> members = {{1, "a"}, {2, "b"}};
  const std::string segment = SegmentOf(members);
  EXPECT_EQ(Run(std::nullopt, Insertion({3, "c"})).status.code(), Code::kAborted);
  EXPECT_EQ(Run(segment, "").status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Run(segment, "*" + PieceOf({3, "c"})).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Run(segment, Insertion({4, "d"}) + Insertion({3, "c"})).status.code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Run(segment, Insertion({3, "c"}) + Insertion({3, "c"})).status.code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Run(segment, Insertion({std::nan(""), "c"})).status.code(), Code::kInvalidArgument);
  const std::string edits = Removal(members[1]) + Insertion({3, "c"});
  const std::string operand(WriteExchange(
      {.stamp = 9, .bytes_max = kBytesMax, .by_score = by_score(), .edits = edits}, scratch_));
  for (size_t bytes = 0; bytes < operand.size(); ++bytes) {
    const FunctionEffect effect = RunWith(segment, std::string_view(operand).substr(0, bytes));
    const size_t first = operand.size() - Insertion({3, "c"}).size();
    ASSERT_EQ(effect.status.ok(), bytes == first) << bytes;
  }
  std::mt19937 rng(5);
  for (int round = 0; round < 20000; ++round) {
    std::string other_segment = segment;
    std::string other = operand;
    other_segment[rng() % other_segment.size()] = static_cast<char>(rng());
    other[rng() % other.size()] = static_cast<char>(rng());
    if (rng() % 4 == 0) other_segment.resize(rng() % other_segment.size());
    RunWith(other_segment, other);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, LargeExchange, testing::Bool(),
                         [](const auto& with) { return with.param ? "ByScore" : "ByMember"; });

}  // namespace
}  // namespace skep::types

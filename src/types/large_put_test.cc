// Puts into segments, and the sums of them.
#include "types/large_put.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "skep/function.h"
#include "types/large_counts.h"
#include "types/large_record.h"
#include "types/large_segment.h"
#include "types/text.h"

namespace skep::types {
namespace {

using Bytes = std::optional<std::string>;

std::string Text(std::string_view text) {
  Scratch scratch;
  return std::string(JoinTexts(std::span(&text, 1), scratch));
}

class LargePut : public testing::Test {
 protected:
  // Runs a function on the value; what it stores becomes the value.
  FunctionEffect Run(std::string_view name, Bytes& value, std::string_view operand) {
    FunctionInput input{.value = {},
                        .operand = operand,
                        .scratch = &scratch_,
                        .function = nullptr,
                        .value_bytes_max = 1 << 20,
                        .now_ms = 0};
    if (value) input.value = scratch_.Copy(*value);
    const auto function = std::ranges::find(LargePutFunctions(), name, &TypeFunction::name);
    const FunctionEffect effect = function->body(input);
    if (effect.status.ok() && effect.action == FunctionEffect::Action::kReplace) {
      value = std::string(effect.value);
    }
    return effect;
  }
  FunctionEffect Add(Bytes& segment, std::string_view member, std::string_view tally = {}) {
    const std::string piece = Text(member);
    const Put put = {
        .stamp = 9, .bytes_max = 100, .has_value = false, .only_new = false, .piece = piece};
    return Run("large-segment-put", segment,
               std::string(WritePut(put, scratch_)) + std::string(tally));
  }
  FunctionEffect Set(Bytes& segment, std::string_view field, std::string_view value,
                     bool only_new = false) {
    const std::string piece = Text(field) + Text(value);
    const Put put = {
        .stamp = 9, .bytes_max = 100, .has_value = true, .only_new = only_new, .piece = piece};
    return Run("large-segment-put", segment, WritePut(put, scratch_));
  }
  static Bytes SegmentWith(const std::vector<std::string>& texts, size_t each,
                           std::optional<std::string_view> fence = {}) {
    std::string body;
    for (const std::string& text : texts) body += Text(text);
    return WriteSegment({.stamp = 1, .fence = fence, .pieces = texts.size() / each, .body = body});
  }

  Scratch scratch_;
};

// Goal: a put stores its member at its place, and tells whether it is new; one that changes nothing
// leaves the segment and its stamp.
TEST_F(LargePut, FindsThePlace) {
  for (const char* const member : {"", "a", "b", "bb", "c", "\xff"}) {
    Bytes segment = SegmentWith({"a", "b", "c"}, 1);
    const Bytes before = segment;
    const bool is_there = std::string("abc").find(member) != std::string::npos && *member != 0 &&
                          std::string_view(member).size() == 1;
    const FunctionEffect effect = Add(segment, member);
    ASSERT_TRUE(effect.status.ok());
    EXPECT_EQ(effect.integer, is_there ? 0 : kIsNew) << member;
    std::vector<std::string> expected = {"a", "b", "c"};
    if (!is_there) {
      expected.insert(std::ranges::upper_bound(expected, std::string(member)), member);
    }
    Segment now = *ReadSegment(*segment);
    EXPECT_EQ(now.stamp, is_there ? 1u : 9u);
    EXPECT_EQ(now.pieces, expected.size());
    EXPECT_EQ(now.body, ReadSegment(*SegmentWith(expected, 1))->body) << member;
    if (is_there) {
      EXPECT_EQ(segment, before);
    }
  }
}

TEST_F(LargePut, ReplacesValues) {
  Bytes segment = SegmentWith({"a", "1", "b", "2"}, 2);
  EXPECT_EQ(Set(segment, "b", "2").action, FunctionEffect::Action::kKeep);
  EXPECT_EQ(Set(segment, "b", "3", true).action, FunctionEffect::Action::kKeep);
  EXPECT_EQ(Set(segment, "b", "333").integer, 0);
  EXPECT_EQ(ReadSegment(*segment)->body,
            ReadSegment(*SegmentWith({"a", "1", "b", "333"}, 2))->body);
  EXPECT_EQ(ReadSegment(*segment)->pieces, 2u);
}

// Goal: a field that is set to the value it has counts as a write of the hash, as those who watch
// it see one in Redis; a field that is set only if it is new, and a member that is there, do not.
TEST_F(LargePut, TheSameValueIsAWrite) {
  Bytes fields = SegmentWith({"a", "1"}, 2);
  Bytes members = SegmentWith({"a"}, 1);
  const struct {
    const char* function;
    std::string tally;
    bool writes;
  } cases[] = {{"large-hash-tally", std::string(Set(fields, "a", "1").returned), true},
               {"large-hash-tally", std::string(Set(fields, "a", "1", true).returned), false},
               {"large-set-tally", std::string(Add(members, "a").returned), false}};
  for (const auto& [function, tally, writes] : cases) {
    LargeRecord record = {.id = 5, .members = 3, .bytes = 6, .writes = 1, .first = 2};
    Bytes stored = std::string(BytesOf(record));
    const FunctionEffect summed =
        Run(function, stored, std::string(WriteRecordTally(5, 2, scratch_)) + tally);
    ASSERT_TRUE(summed.status.ok());
    EXPECT_EQ(summed.integer, 3);
    if (writes) ++record.writes;
    EXPECT_EQ(ReadLargeRecord(*stored), record);
  }
}

// Goal: what is not of the segment, or would make it too long, is refused, and the code says which.
TEST_F(LargePut, RefusesWhatIsNotThere) {
  Bytes absent;
  EXPECT_EQ(Add(absent, "a").status.code(), Code::kAborted);
  Bytes fenced = SegmentWith({"a"}, 1, "m");
  EXPECT_EQ(Add(fenced, "m").status.code(), Code::kAborted);
  EXPECT_TRUE(Add(fenced, "lzz").status.ok());
  const std::string field_with_deadline = std::string(9, '\0') + Text("a") + Text("1");
  Bytes deadlines =
      WriteSegment({.stamp = 1, .fence = {}, .pieces = 1, .body = field_with_deadline});
  EXPECT_EQ(Set(deadlines, "b", "2").status.code(), Code::kAborted);

  // Pieces of 100 bytes are what a segment is meant to have, of 200 bytes what it may have.
  Bytes full = SegmentWith({std::string(99, 'a')}, 1);
  EXPECT_EQ(Add(full, std::string(99, 'b')).integer, kIsNew | kIsLong);
  EXPECT_EQ(Add(full, "c").status.code(), Code::kTooLarge);
  Bytes nearly = SegmentWith({std::string(97, 'a')}, 1);
  EXPECT_EQ(Add(nearly, "b").integer, kIsNew);
  EXPECT_EQ(Add(nearly, "c").integer, kIsNew | kIsLong);
}

// Goal: sums are those of all puts, however many these are.
// Method: 1 to 40 puts of random members into one segment, each with the tally of the one before; a
// node of three entries and a record get the last tally.
TEST_F(LargePut, TalliesAreSums) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 300; ++round) {
    Bytes segment = SegmentWith({"b", "e", "h"}, 1);
    std::vector<std::string> members;
    for (size_t i = rng() % 40 + 1; i > 0; --i) members.emplace_back(1, 'a' + rng() % 12);
    std::ranges::sort(members);
    std::string tally;
    std::string list;
    int64_t added[3] = {};
    for (const std::string& member : members) {
      const FunctionEffect effect = Add(segment, member, tally);
      ASSERT_TRUE(effect.status.ok());
      tally = effect.returned;
      AppendPlace(1, member, list);
      added[member < "d" ? 0 : member < "h" ? 1 : 2] += effect.integer & kIsNew;
    }
    const int64_t all = added[0] + added[1] + added[2];
    const std::vector<CountEntry> entries = {{.separator = "", .count = 1},
                                             {.separator = "d", .count = 126},
                                             {.separator = "h", .count = 3}};
    Bytes node = WriteCountNode("z", entries);
    const FunctionEffect counted = Run(
        "large-counts-tally", node, std::string(WriteCountsTally(0, 127, list, scratch_)) + tally);
    ASSERT_TRUE(counted.status.ok());
    const auto now = ReadCountNode(*node);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(now->entries[i].count, entries[i].count + static_cast<uint64_t>(added[i]));
    }
    EXPECT_EQ(counted.integer > 0, added[1] > 1);
    if (counted.integer > 0) {
      const std::string& over = members[static_cast<size_t>(counted.integer) - 1];
      EXPECT_TRUE(over >= "d" && over < "h") << over;
    }
    LargeRecord record = {.id = 5, .members = 3, .bytes = 6, .writes = 1, .first = 2};
    Bytes stored = std::string(BytesOf(record));
    const FunctionEffect summed =
        Run("large-set-tally", stored, std::string(WriteRecordTally(5, 2, scratch_)) + tally);
    ASSERT_TRUE(summed.status.ok());
    EXPECT_EQ(summed.integer, 3 + all);
    if (all > 0) {
      record.members += static_cast<uint64_t>(all);
      record.bytes += static_cast<uint64_t>(2 * all);
      ++record.writes;
    }
    EXPECT_EQ(ReadLargeRecord(*stored), record);
    for (const auto& [id, levels] : {std::pair(4, 2), std::pair(5, 1)}) {
      EXPECT_EQ(Run("large-set-tally", stored,
                    std::string(WriteRecordTally(id, levels, scratch_)) + tally)
                    .status.code(),
                Code::kAborted);
    }
    record.last = 1;  // a field has a deadline
    Bytes hash = std::string(BytesOf(record));
    EXPECT_EQ(Run("large-hash-tally", hash, std::string(WriteRecordTally(5, 2, scratch_)) + tally)
                  .status.code(),
              Code::kAborted);
  }
}

// Goal: a node that has not the places is told; it is not if nothing was added there.
TEST_F(LargePut, NodesHaveThePlaces) {
  Bytes segment = SegmentWith({"a"}, 1);
  const std::string tally(Add(segment, "x").returned);
  const std::string same(Add(segment, "x").returned);
  std::string list;
  AppendPlace(1, "x", list);
  Bytes node = WriteCountNode("x", std::vector<CountEntry>{{.separator = "", .count = 1}});
  const std::string head(WriteCountsTally(0, 100, list, scratch_));
  EXPECT_EQ(Run("large-counts-tally", node, head + tally).status.code(), Code::kAborted);
  EXPECT_EQ(Run("large-counts-tally", node, head + same).action, FunctionEffect::Action::kKeep);
  Bytes absent;
  EXPECT_EQ(Run("large-counts-tally", absent, head + tally).status.code(), Code::kAborted);
}

// Goal: bytes that are wrong are told, whatever they are.
// Method: sound operands and values with one byte changed or cut off.
TEST_F(LargePut, WrongBytes) {
  Bytes segment = SegmentWith({"a", "c"}, 1, "x");
  const std::string tally(Add(segment, "b").returned);
  std::string list;
  AppendPlace(1, "b", list);
  const std::string piece = Text("d");
  const Put put = {
      .stamp = 9, .bytes_max = 100, .has_value = false, .only_new = false, .piece = piece};
  const LargeRecord record = {.id = 5, .members = 3};
  const struct {
    const char* name;
    std::string value, operand;
  } runs[] = {{"large-segment-put", *segment, std::string(WritePut(put, scratch_)) + tally},
              {"large-counts-tally",
               WriteCountNode("x", std::vector<CountEntry>{{.separator = "", .count = 1}}),
               std::string(WriteCountsTally(0, 100, list, scratch_)) + tally},
              {"large-set-tally", std::string(BytesOf(record)),
               std::string(WriteRecordTally(5, 0, scratch_)) + tally}};
  for (const auto& run : runs) {
    for (size_t at = 0; at < run.operand.size(); ++at) {
      Bytes value = run.value;
      const auto cut = Run(run.name, value, run.operand.substr(0, at)).status;
      // Only a put without a tally is whole when it is cut off.
      EXPECT_TRUE(!cut.ok() || run.name == std::string("large-segment-put")) << run.name << at;
      for (const int change : {-1, 1, 7, 128}) {
        std::string operand = run.operand;
        operand[at] = static_cast<char>(operand[at] + change);
        value = run.value;
        Run(run.name, value, operand);  // must only not crash
      }
    }
    for (size_t at = 0; at < run.value.size(); ++at) {
      Bytes value = run.value.substr(0, at);
      Run(run.name, value, run.operand);  // likewise
      for (const int change : {-1, 1, 7, 128}) {
        value = run.value;
        (*value)[at] = static_cast<char>((*value)[at] + change);
        Run(run.name, value, run.operand);
      }
    }
  }
}

}  // namespace
}  // namespace skep::types

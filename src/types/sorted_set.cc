#include "types/sorted_set.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <unordered_map>

#include "types/collection.h"
#include "types/function_table.h"
#include "types/score.h"
#include "types/short_texts.h"

namespace skep::types {
namespace {

constexpr size_t kScoreBytes = sizeof(double);

using Entries = std::vector<Entry>;

size_t EntryBytes(const Entry& entry) { return kScoreBytes + TextBytes(entry.member); }

void PutEntry(TextWriter& writer, const Entry& entry) {
  writer.Bytes({reinterpret_cast<const char*>(&entry.score), kScoreBytes});
  writer.Text(entry.member);
}

bool TakeEntries(std::string_view from, Entries* entries) {
  Entry entry;
  while (!from.empty()) {
    if (!TakeEntry(from, &entry)) return false;
    entries->push_back(entry);
  }
  return true;
}

// The entries of a sorted set; nothing if the bytes are none.
std::optional<Entries> ReadEntries(const FunctionInput& input) {
  const auto counted = ReadCounted(input.value);
  if (!counted) return std::nullopt;
  Entries entries;
  entries.reserve(counted->members);
  if (!TakeEntries(counted->body, &entries) || entries.size() != counted->members ||
      !std::ranges::is_sorted(entries, IsBelow)) {
    return std::nullopt;
  }
  return entries;
}

FunctionEffect StoreEntries(const Entries& entries, int64_t integer, Scratch& scratch) {
  size_t bytes = VarintBytes(entries.size());
  for (const Entry& entry : entries) bytes += EntryBytes(entry);
  if (const Status s = FormError(bytes); !s.ok()) return Failure(s);
  TextWriter writer(scratch, bytes);
  writer.Number(entries.size());
  for (const Entry& entry : entries) PutEntry(writer, entry);
  return Stored(writer.bytes(), entries.size(), integer);
}

// The entries while members are added; they ascend again once Sorted() was called.
class Adding {
 public:
  // `additions`: how many members are to come.
  Adding(Entries entries, size_t additions)
      : entries_(std::move(entries)), has_table_(additions > kFewMembers) {
    if (!has_table_) return;
    table_.reserve(entries_.size() + additions);
    for (size_t i = 0; i < entries_.size(); ++i) table_.emplace(entries_[i].member, i);
  }

  const Entry* Find(std::string_view member) const {
    if (has_table_) {
      const auto at = table_.find(member);
      return at == table_.end() ? nullptr : &entries_[at->second];
    }
    const auto at = std::ranges::find(entries_, member, &Entry::member);
    return at == entries_.end() ? nullptr : &*at;
  }
  // Gives a member its score; `now` is what Find has found of it.
  void Put(const Entry* now, const Entry& entry) {
    if (has_table_) {
      if (now != nullptr) {
        entries_[static_cast<size_t>(now - entries_.data())].score = entry.score;
      } else {
        table_.emplace(entry.member, entries_.size());
        entries_.push_back(entry);
      }
      return;
    }
    if (now != nullptr) entries_.erase(entries_.begin() + (now - entries_.data()));
    entries_.insert(std::ranges::upper_bound(entries_, entry, IsBelow), entry);
  }
  const Entries& Sorted() {
    if (has_table_) std::ranges::sort(entries_, IsBelow);
    return entries_;
  }

 private:
  Entries entries_;
  const bool has_table_;
  std::unordered_map<std::string_view, size_t> table_;
};

FunctionEffect AddEntries(const FunctionInput& input) {
  uint8_t rule = 0;
  Entries additions;
  if (!ReadAddition(input.operand, &rule, &additions)) return Failure(kBadOperand);
  auto entries = ReadEntries(input);
  if (!entries) return Failure(kNoCollection);
  Adding adding(std::move(*entries), additions.size());
  const AddAnswer answer = AddByRule(rule, additions, adding);
  if (!answer.status.ok()) return Failure(answer.status);
  FunctionEffect effect = answer.has_changed
                              ? StoreEntries(adding.Sorted(), answer.integer, *input.scratch)
                              : Number(answer.integer);
  if ((rule & kAddOne) != 0 && answer.last) {
    effect.returned =
        input.scratch->Copy({reinterpret_cast<const char*>(&*answer.last), kScoreBytes});
  }
  return effect;
}

FunctionEffect RemoveEntries(const FunctionInput& input) {
  Texts members;
  if (!TakeTexts(input.operand, &members)) return Failure(kBadOperand);
  const auto entries = ReadEntries(input);
  if (!entries) return Failure(kNoCollection);
  std::ranges::sort(members);
  Entries left;
  left.reserve(entries->size());
  for (const Entry& entry : *entries) {
    if (!std::ranges::binary_search(members, entry.member)) left.push_back(entry);
  }
  const size_t count = entries->size() - left.size();
  if (count == 0) return Number(0);
  return StoreEntries(left, static_cast<int64_t>(count), *input.scratch);
}

// Writes what zset-score returns of a member; null: it is not there.
void WriteScore(TextWriter& writer, const Entry* entry) {
  writer.Bytes(entry != nullptr ? "\1" : std::string_view("\0", 1));
  if (entry != nullptr) {
    writer.Bytes({reinterpret_cast<const char*>(&entry->score), kScoreBytes});
  }
}

FunctionEffect ScoreOf(const FunctionInput& input, std::string_view member) {
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  std::string_view rest = set->body;
  Entry entry;
  bool is_there = false;
  for (uint64_t i = 0; i < set->members && !is_there; ++i) {
    if (!TakeEntry(rest, &entry)) return Failure(kNoCollection);
    is_there = AreEqual(entry.member, member);
  }
  TextWriter writer(*input.scratch, 1 + kScoreBytes);
  WriteScore(writer, is_there ? &entry : nullptr);
  return {.returned = writer.bytes()};
}

FunctionEffect ScoresOf(const FunctionInput& input) {
  if (const auto only = OnlyText(input.operand)) return ScoreOf(input, *only);
  Texts members;
  if (!TakeTexts(input.operand, &members)) return Failure(kBadOperand);
  auto entries = ReadEntries(input);
  if (!entries) return Failure(kNoCollection);
  const Adding index(std::move(*entries), members.size());
  TextWriter writer(*input.scratch, members.size() * (1 + kScoreBytes));
  for (const std::string_view member : members) WriteScore(writer, index.Find(member));
  return {.returned = writer.bytes()};
}

FunctionEffect SortedSetLength(const FunctionInput& input) {
  const auto set = ReadCounted(input.value);
  return set ? Number(static_cast<int64_t>(set->members)) : Failure(kNoCollection);
}

FunctionEffect RankOf(const FunctionInput& input) {
  const auto member = OnlyText(input.operand);
  if (!member) return Failure(kBadOperand);
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  std::string_view rest = set->body;
  Entry entry;
  for (uint64_t rank = 0; rank < set->members; ++rank) {
    if (!TakeEntry(rest, &entry)) return Failure(kNoCollection);
    if (AreEqual(entry.member, *member)) return Number(static_cast<int64_t>(rank));
  }
  return Number(-1);
}

FunctionEffect RankFromEnd(const FunctionInput& input) {
  FunctionEffect effect = RankOf(input);
  if (!effect.status.ok() || effect.integer < 0) return effect;
  effect.integer = static_cast<int64_t>(ReadCounted(input.value)->members) - 1 - effect.integer;
  return effect;
}

// Places in the entries of a range.
struct Slice {
  size_t begin = 0;
  size_t end = 0;
};

std::optional<Slice> SliceByRank(size_t size, bool reverse, std::string_view low,
                                 std::string_view high) {
  const auto first = ParseInt64(low);
  const auto last = ParseInt64(high);
  if (!first || !last) return std::nullopt;
  const auto length = static_cast<int64_t>(size);
  const auto at = [&](int64_t rank) { return rank < 0 ? rank + length : rank; };
  const int64_t from = std::max<int64_t>(at(*first), 0);
  const int64_t to = std::min(at(*last), length - 1);
  if (from > to) return Slice{};
  const auto begin = static_cast<size_t>(reverse ? length - 1 - to : from);
  const auto end = static_cast<size_t>(reverse ? length - from : to + 1);
  return Slice{begin, end};
}

std::optional<Slice> SliceByScore(const Entries& entries, std::string_view low,
                                  std::string_view high) {
  const auto from = ParseScoreBound(low);
  const auto to = ParseScoreBound(high);
  if (!from || !to) return std::nullopt;
  const auto place = [&](double score, bool behind) {
    const auto is_before = [&](const Entry& entry) {
      return behind ? entry.score <= score : entry.score < score;
    };
    return static_cast<size_t>(std::ranges::partition_point(entries, is_before) - entries.begin());
  };
  const Slice slice = {place(from->score, from->is_open), place(to->score, !to->is_open)};
  return slice.begin < slice.end ? slice : Slice{};
}

// Whether the entry's member lies within a bound, the upper or the lower one.
bool IsWithin(const Entry& entry, const MemberBound& bound, bool is_upper) {
  using Kind = MemberBound::Kind;
  if (bound.kind == Kind::kLowest) return !is_upper;
  if (bound.kind == Kind::kHighest) return is_upper;
  if (entry.member == bound.member) return bound.kind == Kind::kClosed;
  return is_upper == (entry.member < bound.member);
}

std::optional<Slice> SliceByMember(const Entries& entries, std::string_view low,
                                   std::string_view high) {
  const auto from = ParseMemberBound(low);
  const auto to = ParseMemberBound(high);
  if (!from || !to) return std::nullopt;
  using Kind = MemberBound::Kind;
  const auto place = [&](const MemberBound& bound, Kind behind) {
    if (bound.kind == Kind::kLowest) return size_t{0};
    if (bound.kind == Kind::kHighest) return entries.size();
    const auto is_before = [&](const Entry& entry) {
      return bound.kind == behind ? entry.member <= bound.member : entry.member < bound.member;
    };
    // Where scores differ members do not ascend, and the range is whatever lies before the first.
    return static_cast<size_t>(std::ranges::find_if_not(entries, is_before) - entries.begin());
  };
  // As in Redis, where scores differ: the last member decides whether any reaches the lower bound,
  // and the first whether any is within the upper one.
  const bool reaches = !entries.empty() && IsWithin(entries.back(), *from, false) &&
                       IsWithin(entries.front(), *to, true);
  if (!reaches) return Slice{};
  const Slice slice = {place(*from, Kind::kOpen), place(*to, Kind::kClosed)};
  return slice.begin < slice.end ? slice : Slice{};
}

// The entries that the operand, a RangeRequest and two texts, is about, in its order.
struct Found {
  Entries all;
  Slice slice;  // after offset and count
  bool reverse = false;
};
std::optional<Status> FindRange(const FunctionInput& input, Found* found) {
  RangeRequest request;
  Texts bounds;
  if (input.operand.size() < sizeof(request)) return kBadOperand;
  std::memcpy(&request, input.operand.data(), sizeof(request));
  if (!TakeTexts(input.operand.substr(sizeof(request)), &bounds) || bounds.size() != 2) {
    return kBadOperand;
  }
  auto entries = ReadEntries(input);
  if (!entries) return kNoCollection;
  found->all = std::move(*entries);
  found->reverse = request.reverse != 0;
  const auto slice = request.by == RangeRequest::By::kRank
                         ? SliceByRank(found->all.size(), found->reverse, bounds[0], bounds[1])
                     : request.by == RangeRequest::By::kScore
                         ? SliceByScore(found->all, bounds[0], bounds[1])
                         : SliceByMember(found->all, bounds[0], bounds[1]);
  if (!slice) return kBadOperand;
  found->slice = *slice;
  const uint64_t size = slice->end - slice->begin;
  const uint64_t skipped =
      request.offset < 0 ? size : std::min<uint64_t>(static_cast<uint64_t>(request.offset), size);
  const uint64_t taken =
      request.count < 0 ? size - skipped
                        : std::min<uint64_t>(static_cast<uint64_t>(request.count), size - skipped);
  if (found->reverse) {
    found->slice.end -= skipped;
    found->slice.begin = found->slice.end - taken;
  } else {
    found->slice.begin += skipped;
    found->slice.end = found->slice.begin + taken;
  }
  return std::nullopt;
}

std::string_view AnswerOf(const Found& found, Scratch& scratch) {
  Entries entries(found.all.begin() + static_cast<ptrdiff_t>(found.slice.begin),
                  found.all.begin() + static_cast<ptrdiff_t>(found.slice.end));
  if (found.reverse) std::ranges::reverse(entries);
  return WriteEntries(entries, scratch);
}

FunctionEffect EntriesInRange(const FunctionInput& input) {
  Found found;
  if (const auto error = FindRange(input, &found)) return Failure(*error);
  return {.returned = AnswerOf(found, *input.scratch),
          .integer = static_cast<int64_t>(found.slice.end - found.slice.begin)};
}

FunctionEffect CountEntries(const FunctionInput& input) {
  Found found;
  if (const auto error = FindRange(input, &found)) return Failure(*error);
  return Number(static_cast<int64_t>(found.slice.end - found.slice.begin));
}

FunctionEffect CutEntries(const FunctionInput& input) {
  Found found;
  if (const auto error = FindRange(input, &found)) return Failure(*error);
  const auto count = static_cast<int64_t>(found.slice.end - found.slice.begin);
  if (count == 0) return Number(0);
  const std::string_view answer = AnswerOf(found, *input.scratch);
  found.all.erase(found.all.begin() + static_cast<ptrdiff_t>(found.slice.begin),
                  found.all.begin() + static_cast<ptrdiff_t>(found.slice.end));
  FunctionEffect effect = StoreEntries(found.all, count, *input.scratch);
  effect.returned = answer;
  return effect;
}

// Takes entries off an end.
template <bool kHighest>
FunctionEffect PopEntries(const FunctionInput& input) {
  const auto text = OnlyText(input.operand);
  const auto count = text ? ParseInt64(*text) : std::nullopt;
  if (!count || *count < 0) return Failure(kBadOperand);
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  const uint64_t taken = std::min(static_cast<uint64_t>(*count), set->members);
  if (taken == 0) return Number(0);
  const uint64_t left = set->members - taken;
  std::string_view rest = set->body;
  Entry entry;
  for (uint64_t i = 0; kHighest && i < left; ++i) {
    if (!TakeEntry(rest, &entry)) return Failure(kNoCollection);
  }
  const std::string_view before = set->body.substr(0, set->body.size() - rest.size());
  Entries popped;
  for (uint64_t i = 0; i < taken; ++i) {
    if (!TakeEntry(rest, &entry)) return Failure(kNoCollection);
    popped.push_back(entry);
  }
  if (kHighest) std::ranges::reverse(popped);
  const std::string_view kept = kHighest ? before : rest;
  TextWriter writer(*input.scratch, VarintBytes(left) + kept.size());
  writer.Number(left);
  writer.Bytes(kept);
  FunctionEffect effect = Stored(writer.bytes(), left, static_cast<int64_t>(taken));
  effect.returned = WriteEntries(popped, *input.scratch);
  return effect;
}

FunctionEffect DrawEntries(const FunctionInput& input) {
  const auto request = ReadDrawRequest(input.operand);
  if (!request) return Failure(kBadOperand);
  const auto entries = ReadEntries(input);
  if (!entries) return Failure(kNoCollection);
  if (entries->empty()) return {};
  const auto indexes = DrawIndexesToRead(entries->size(), *request);
  if (!indexes) return Failure(kTooManyDraws);
  Entries drawn;
  size_t bytes = 0;
  for (const size_t i : *indexes) {
    drawn.push_back((*entries)[i]);
    bytes += EntryBytes(drawn.back());
  }
  if (bytes > input.value_bytes_max) {
    return Failure(Status(Code::kTooLarge, kDrawnTooLarge, input.value_bytes_max));
  }
  return {.returned = WriteEntries(drawn, *input.scratch)};
}

FunctionEffect ScanEntries(const FunctionInput& input) {
  const auto entries = ReadEntries(input);
  if (!entries) return Failure(kNoCollection);
  std::string members;
  for (const Entry& entry : *entries) AppendMemberAndScore(entry, members);
  return WholeMemberScan(input, members);
}

constexpr TypeFunction kSortedSetFunctions[] = {
    {"zset-add", AddEntries, kSortedSet},
    {"zset-remove", RemoveEntries, kSortedSet},
    {"zset-score", ScoresOf, kSortedSet, true},
    {"zset-length", SortedSetLength, kSortedSet, true},
    {"zset-rank", RankOf, kSortedSet, true},
    {"zset-rank-from-end", RankFromEnd, kSortedSet, true},
    {"zset-range", EntriesInRange, kSortedSet, true},
    {"zset-count", CountEntries, kSortedSet, true},
    {"zset-cut", CutEntries, kSortedSet},
    {"zset-pop-lowest", PopEntries<false>, kSortedSet},
    {"zset-pop-highest", PopEntries<true>, kSortedSet},
    {"zset-scan", ScanEntries, kSortedSet, true},
    {"zset-draw", DrawEntries, kSortedSet, true},
};

}  // namespace

bool ReadAddition(std::string_view operand, uint8_t* rule, Entries* entries) {
  if (!TakeFixed(operand, rule) || !TakeEntries(operand, entries) || entries->empty()) return false;
  return (*rule & kAddOne) == 0 || entries->size() == 1;
}

std::optional<double> ScoreFor(uint8_t rule, const Entry* now, double score) {
  if (now == nullptr) return (rule & kAddExisting) != 0 ? std::nullopt : std::optional(score);
  if ((rule & kAddNew) != 0) return std::nullopt;
  if ((rule & kAddOne) != 0) score += now->score;
  if ((rule & kAddGreater) != 0 && score <= now->score) return std::nullopt;
  if ((rule & kAddLess) != 0 && score >= now->score) return std::nullopt;
  return score;
}

bool TakeEntry(std::string_view& from, Entry* entry) {
  if (from.size() < kScoreBytes) return false;
  std::memcpy(&entry->score, from.data(), kScoreBytes);
  from.remove_prefix(kScoreBytes);
  return !std::isnan(entry->score) && TakeShortText(from, &entry->member);
}

void AppendMemberAndScore(const Entry& entry, std::string& to) {
  const std::string score = ScoreText(entry.score);
  for (const std::string_view text : {entry.member, std::string_view(score)}) {
    AppendVarint(to, text.size() + 1);
    to += text;
  }
}

std::string_view WriteEntries(const Entries& entries, Scratch& scratch) {
  size_t bytes = 0;
  for (const Entry& entry : entries) bytes += EntryBytes(entry);
  TextWriter writer(scratch, bytes);
  for (const Entry& entry : entries) PutEntry(writer, entry);
  return writer.bytes();
}

std::optional<MemberBound> ParseMemberBound(std::string_view text) {
  using Kind = MemberBound::Kind;
  if (text == "-") return MemberBound{Kind::kLowest, {}};
  if (text == "+") return MemberBound{Kind::kHighest, {}};
  if (text.starts_with('[')) return MemberBound{Kind::kClosed, text.substr(1)};
  if (text.starts_with('(')) return MemberBound{Kind::kOpen, text.substr(1)};
  return std::nullopt;
}

std::string_view WriteRangeRequest(const RangeRequest& request, std::string_view low,
                                   std::string_view high, Scratch& scratch) {
  TextWriter writer(scratch, sizeof(request) + TextBytes(low) + TextBytes(high));
  writer.Bytes({reinterpret_cast<const char*>(&request), sizeof(request)});
  writer.Text(low);
  writer.Text(high);
  return writer.bytes();
}

std::span<const TypeFunction> SortedSetFunctions() { return kSortedSetFunctions; }

}  // namespace skep::types

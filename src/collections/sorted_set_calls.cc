#include "collections/sorted_set_calls.h"

#include <algorithm>
#include <string>

#include "base/decimal.h"
#include "collections/large_call.h"
#include "types/collection.h"

namespace skep::collections {
namespace {

// Entries that are read ahead for the pops of one end, at most.
constexpr uint64_t kAheadMax = 1024;
constexpr uint32_t kSegmentsAheadMax = 64;

const Function* PopLowest() {
  static const Function* const function = FindFunction("zset-pop-lowest");
  return function;
}
const Function* PopHighest() {
  static const Function* const function = FindFunction("zset-pop-highest");
  return function;
}

// How many entries a pop wants; a malformed operand wants none.
uint64_t CountOf(std::string_view operand) {
  const auto text = types::OnlyText(operand);
  const auto count = text ? ParseInt64(*text) : std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(count.value_or(0), 0));
}

bool IsFurtherOut(const Piece& a, const Piece& b, bool is_highest) {
  return is_highest ? b.place < a.place : a.place < b.place;
}

}  // namespace

bool SortedSetCalls::IsPop(const Function& function) {
  return &function == PopLowest() || &function == PopHighest();
}

// ---- The entries of an end ----

bool SortedSetCalls::IsAtOtherEnd(const End& end) const {
  if (end.segment == nullptr) return false;
  return end.is_highest ? SeparatorOf(end.segment->key).empty() : !end.segment->segment.fence;
}

// The segment whose fence is the separator of this one. Null: as Segments::Find.
const Loaded* SortedSetCalls::Previous(const Loaded& segment) {
  Segments& scores = members_.SegmentsOf(Part::kScores);
  const std::string_view separator = SeparatorOf(segment.key);
  const auto& all = scores.all();
  const auto at = std::ranges::lower_bound(all, segment.key, {}, &Loaded::key);
  const Loaded* before = at == all.begin() ? nullptr : *std::prev(at);
  if (before == nullptr || before->segment.fence != separator) {
    // The scan may be of an older state, so it is a hint; the way right from there is not.
    Batch batch;
    batch.Scan(Range::Between(scores.prefix(), segment.key),
               {.limit = 1, .reverse = true, .keys_only = true});
    const ItemRange items = access_.Execute(batch).items(0);
    before = items.empty() ? nullptr : scores.Find(SeparatorOf(items.front().key));
  }
  while (before != nullptr && before->segment.fence != separator) {
    if (!before->segment.fence || *before->segment.fence > separator) return nullptr;
    before = scores.FindNext(*before);
  }
  return before;
}

// Goes on to the next segment inwards. False: the collection has changed, or a read was refused.
bool SortedSetCalls::Advance(End& end) {
  static const std::string* const above_all = new std::string(OrderedNumber(UINT64_MAX));
  Segments& scores = members_.SegmentsOf(Part::kScores);
  if (end.segment == nullptr) {
    end.segment = scores.Find(end.is_highest ? std::string_view(*above_all) : std::string_view());
  } else {
    end.segment = end.is_highest ? Previous(*end.segment) : scores.FindNext(*end.segment);
  }
  if (end.segment == nullptr) return false;
  auto pieces = ReadPieces(Form::kEntry, end.segment->segment.body);
  if (!pieces) {
    access_.set_status(types::kNoCollection);
    return false;
  }
  if (!end.is_highest) std::ranges::reverse(*pieces);
  end.left = std::move(*pieces);
  return true;
}

// Finds the outermost entry of the segments that is as they say. False: as for Make.
bool SortedSetCalls::Peek(End& end, std::optional<Piece>* next) {
  while (true) {
    while (!end.left.empty()) {
      const MemberCalls::Member* const named = members_.Find(end.left.back().place.member);
      // A named member that no call has added is either as it was, or gone.
      if (named == nullptr || (named->now && !adds_)) {
        *next = end.left.back();
        return true;
      }
      end.left.pop_back();
    }
    next->reset();
    if (IsAtOtherEnd(end)) return true;
    if (!Advance(end)) return false;
  }
}

// Takes so many entries off the end, or all if there are fewer. False: as for Make.
bool SortedSetCalls::Take(End& end, uint64_t entries, Pieces* taken) {
  Pieces named;  // the outermost one is the last
  for (const MemberCalls::Member& member : members_.named()) {
    if (adds_ && member.now) named.push_back(*member.now);
  }
  std::ranges::sort(
      named, [&](const Piece& a, const Piece& b) { return IsFurtherOut(b, a, end.is_highest); });
  std::optional<Piece> next;
  while (taken->size() < entries) {
    if (!Peek(end, &next)) return false;
    const bool is_named =
        !named.empty() && (!next || IsFurtherOut(named.back(), *next, end.is_highest));
    if (!is_named && !next) break;
    taken->push_back(is_named ? named.back() : *next);
    is_named ? named.pop_back() : end.left.pop_back();
  }
  std::vector<std::string_view> names;
  for (const Piece& piece : *taken) names.push_back(piece.place.member);
  std::ranges::sort(names);
  return members_.Remove(names);
}

// ---- Calls ----

bool SortedSetCalls::Pop(End& end, const FunctionCall& call, Answer* answer) {
  Pieces taken;
  if (!Take(end, CountOf(call.operand), &taken)) return false;
  // A sorted set of these entries says what the function returns, and what is wrong with its
  // operand.
  if (end.is_highest) std::ranges::reverse(taken);
  Scratch& scratch = access_.scratch();
  std::optional<std::string_view> value;
  if (!taken.empty()) value = SmallForm(taken, scratch);
  *answer = LargeCall::AnswerOf(RunFunction(*call.function, value, call.operand, scratch));
  return true;
}

bool SortedSetCalls::Make(const FunctionCall& call, Answer* answer) {
  static const Function* const add = FindFunction("zset-add");
  if (call.function == PopLowest()) return Pop(lowest_, call, answer);
  if (call.function == PopHighest()) return Pop(highest_, call, answer);
  adds_ |= call.function == add;
  return members_.Make(call, answer);
}

// Reads the segments at an end ahead, and appends the members that pops will find there.
void SortedSetCalls::ReadAhead(bool is_highest, uint64_t entries,
                               std::vector<std::string_view>* names) {
  if (entries == 0) return;
  Segments& scores = members_.SegmentsOf(Part::kScores);
  const uint64_t bytes = entries * (record_.bytes / record_.members + 1);
  // Segments are half full or more, but for the outermost one.
  const auto segments = static_cast<uint32_t>(
      std::min<uint64_t>(1 + bytes * 2 / access_.segment_bytes(), kSegmentsAheadMax));
  Batch& batch = access_.KeptBatch(Batch::Kind::kUnordered);
  const std::string behind = SegmentKey(record_.id, Part::kScores, OrderedNumber(UINT64_MAX));
  batch.Scan(Range::Between(scores.prefix(), batch.scratch().Copy(behind)),
             {.limit = segments, .reverse = is_highest, .any_type = true});
  for (const Item& item : access_.Execute(batch).items(0)) {
    const Loaded* const loaded = scores.Keep(item.key, item.value);
    auto pieces = loaded != nullptr ? ReadPieces(Form::kEntry, loaded->segment.body) : std::nullopt;
    if (!pieces) return;
    if (is_highest) std::ranges::reverse(*pieces);
    for (const Piece& piece : *pieces) {
      if (entries-- == 0) return;
      names->push_back(piece.place.member);
    }
  }
}

void SortedSetCalls::Expect(std::span<const FunctionCall> calls) {
  static const Function* const remove = FindFunction("zset-remove");
  if (access_.wants_newest()) return;
  std::vector<FunctionCall> about_members;
  uint64_t lowest = 0;
  uint64_t highest = 0;
  for (const FunctionCall& call : calls) {
    if (!IsPop(*call.function)) {
      about_members.push_back(call);
    } else {
      uint64_t& entries = call.function == PopLowest() ? lowest : highest;
      entries = std::min(entries + std::min(CountOf(call.operand), kAheadMax), kAheadMax);
    }
  }
  std::vector<std::string_view> names;
  ReadAhead(false, lowest, &names);
  ReadAhead(true, highest, &names);
  if (!names.empty()) {
    about_members.push_back(
        {.function = remove, .operand = types::JoinTexts(names, access_.scratch())});
  }
  members_.Expect(about_members);
}

}  // namespace skep::collections

#include "collections/sorted_set_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/decimal.h"
#include "collections/large_call.h"
#include "types/collection.h"
#include "types/sorted_set.h"

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

// What a cut is about; nothing if the operand is too short.
std::optional<types::RangeRequest> RequestOf(const FunctionCall& call) {
  types::RangeRequest request;
  if (call.operand.size() < sizeof(request)) return std::nullopt;
  std::memcpy(&request, call.operand.data(), sizeof(request));
  return request;
}

// The ranks that a cut takes out of so many members; nothing if it is not by rank, or its operand
// is malformed.
std::optional<Ranks> CutRanksOf(uint64_t members, const FunctionCall& call) {
  const auto request = RequestOf(call);
  if (!request || request->by != types::RangeRequest::By::kRank) return std::nullopt;
  types::Texts bounds;
  const bool is_read = types::TakeTexts(call.operand.substr(sizeof(*request)), &bounds);
  if (!is_read || bounds.size() != 2) return std::nullopt;
  return RanksOf(members, *request, bounds[0], bounds[1]);
}

bool IsFurtherOut(const Piece& a, const Piece& b, bool is_highest) {
  return is_highest ? b.place < a.place : a.place < b.place;
}

}  // namespace

bool SortedSetCalls::IsPop(const Function& function) {
  return &function == PopLowest() || &function == PopHighest();
}

bool SortedSetCalls::IsCut(const Function& function) {
  static const Function* const cut = FindFunction("zset-cut");
  return &function == cut;
}

uint64_t SortedSetCalls::Taken(const types::LargeRecord& record, const FunctionCall& call) {
  if (IsPop(*call.function)) return std::min(CountOf(call.operand), record.members);
  if (!IsCut(*call.function)) return 0;
  const auto ranks = CutRanksOf(record.members, call);
  return ranks ? ranks->end - ranks->begin : 0;
}

// ---- The entries of an end ----

bool SortedSetCalls::IsAtOtherEnd(const End& end) const {
  if (end.segment == nullptr) return false;
  return end.is_highest ? SeparatorOf(end.segment->key).empty() : !end.segment->segment.fence;
}

// The segment whose fence is the separator of this one. Null: as Segments::Find.
const Loaded* SortedSetCalls::Previous(const Loaded& segment) {
  Segments& scores = SegmentsOf(Part::kScores);
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
  Segments& scores = SegmentsOf(Part::kScores);
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
      const Member* const named = Find(end.left.back().place.member);
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
  Pieces known;  // the outermost one is the last
  for (const Member& member : named()) {
    if (adds_ && member.now) known.push_back(*member.now);
  }
  std::ranges::sort(
      known, [&](const Piece& a, const Piece& b) { return IsFurtherOut(b, a, end.is_highest); });
  std::optional<Piece> next;
  while (taken->size() < entries) {
    if (!Peek(end, &next)) return false;
    const bool is_named =
        !known.empty() && (!next || IsFurtherOut(known.back(), *next, end.is_highest));
    if (!is_named && !next) break;
    taken->push_back(is_named ? known.back() : *next);
    is_named ? known.pop_back() : end.left.pop_back();
  }
  std::vector<std::string_view> names;
  for (const Piece& piece : *taken) names.push_back(piece.place.member);
  std::ranges::sort(names);
  return Remove(names);
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
  *answer = LargeCall::AnswerOf(
      RunFunction(*call.function, value, call.operand, access_.now_ms(), scratch));
  return true;
}

bool SortedSetCalls::CanMake(const FunctionCall& call) {
  if (!IsCut(*call.function)) return JointCalls::CanMake(call);
  const auto request = RequestOf(call);
  if (!request) return false;
  const bool is_whole = request->offset == 0 && request->count < 0;
  return !has_changes() || request->by == types::RangeRequest::By::kRank ||
         (is_whole && request->by == types::RangeRequest::By::kScore);
}

// Opens the view of the cuts. False: as for Make.
bool SortedSetCalls::OpenView() {
  if (counts_) return true;
  RequireRecord();
  auto view = View::Open(access_, key_, types::kSortedSet, record_);
  if (!view || view->record() != record_) return false;
  counts_.emplace(view_.emplace(std::move(*view)), types::kSortedSet);
  return true;
}

// Makes moved_ what the calls have changed. False: as for Make.
bool SortedSetCalls::FindMoved() {
  if (are_moved_known_) return true;
  moved_.clear();
  for (const Member& member : named()) {
    if (!member.is_changed()) continue;
    for (const auto* const piece : {&member.before, &member.now}) {
      if (!*piece) continue;
      const bool is_there = piece == &member.now;
      moved_.push_back({.place = (*piece)->place, .is_there = is_there, .bytes = (*piece)->bytes});
    }
  }
  std::ranges::sort(moved_, [](const Moved& a, const Moved& b) { return a.place < b.place; });
  std::vector<std::string> keys;
  std::vector<uint64_t*> ranks;
  for (const Moved& entry : moved_) {
    const auto [at, is_new] = ranks_.try_emplace(entry.place);
    if (!is_new) continue;
    keys.push_back(SortKey(Form::kEntry, entry.place));
    ranks.push_back(&at->second);
  }
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto below = counts_->CountBelow(views);
  if (!below) return false;
  for (size_t i = 0; i < ranks.size(); ++i) *ranks[i] = (*below)[i];
  for (Moved& entry : moved_) entry.rank = ranks_[entry.place];
  are_moved_known_ = true;
  return true;
}

// Appends the entries that have these ranks now, and notes that they are gone. False: as for Make.
bool SortedSetCalls::CutRanks(const Ranks& ranks, std::string* entries) {
  if (!FindMoved()) return false;
  Ranked ranked(access_, key_, types::kSortedSet, record_);
  std::vector<Moved> after;
  uint64_t at = 0;       // the rank now of what comes next
  uint64_t in_view = 0;  // its rank in the view, if it is there
  const auto pass = [&](uint64_t until) {
    const uint64_t behind = at + until - in_view;
    const uint64_t begin = std::clamp(ranks.begin, at, behind) - at + in_view;
    const uint64_t end = std::clamp(ranks.end, at, behind) - at + in_view;
    at = behind;
    in_view = until;
    const size_t before = entries->size();
    if (!ranked.AppendEntries(*view_, *counts_, {.begin = begin, .end = end}, entries)) {
      return false;
    }
    std::string_view rest = access_.scratch().Copy(std::string_view(*entries).substr(before));
    Piece piece;
    for (uint64_t rank = begin; TakePiece(Form::kEntry, rest, &piece); ++rank) {
      after.push_back(
          {.place = piece.place, .is_there = false, .bytes = piece.bytes, .rank = rank});
      ranks_.try_emplace(piece.place, rank);
    }
    return true;
  };
  for (const Moved& entry : moved_) {
    bool is_cut = false;
    if (at < ranks.end) {
      if (!pass(entry.rank)) return false;
      is_cut = entry.is_there && at >= ranks.begin && at < ranks.end;
      ++(entry.is_there ? at : in_view);
    }
    if (is_cut) {
      *entries += entry.bytes;
    } else {
      after.push_back(entry);
    }
  }
  if (at < ranks.end && !pass(record_.members)) return false;
  moved_ = std::move(after);
  return true;
}

// Appends the entries of another range that are there now, ascending. False: as for Make.
bool SortedSetCalls::CutBounds(const FunctionCall& call, Answer* answer, std::string* entries) {
  static const Function* const range = FindFunction("zset-range");
  // The limit of bytes is one of replies; the range is cut, so the members in it are bounded.
  const size_t portion_bytes_max = access_.portion_bytes_max();
  if (portion_bytes_max != SIZE_MAX) {
    const size_t each = record_.bytes / record_.members + 1;
    access_.set_portion_bytes_max(portion_bytes_max / access_.segment_bytes() * each);
  }
  auto found = Ranked(access_, key_, types::kSortedSet, record_)
                   .ApplyTo(*view_, *counts_, *range, call.operand);
  access_.set_portion_bytes_max(portion_bytes_max);
  if (!found) return false;
  answer->status = found->status;
  answer->is_too_long = found->is_too_long;
  if (!found->status.ok() || found->is_too_long) return true;
  auto cut = ReadPieces(Form::kEntry, found->value);
  if (!cut) return false;
  if (has_changes()) {
    // Of the members that calls have named, the calls know where they are now.
    std::erase_if(*cut, [&](const Piece& piece) { return Find(piece.place.member) != nullptr; });
    Pieces known;
    for (const Member& member : named()) {
      if (member.now) known.push_back(*member.now);
    }
    std::ranges::sort(known, IsBefore);
    Scratch& scratch = access_.scratch();
    std::optional<std::string_view> value;
    if (!known.empty()) value = SmallForm(known, scratch);
    const auto own = ReadPieces(
        Form::kEntry, RunFunction(*range, value, call.operand, access_.now_ms(), scratch).returned);
    if (own) cut->insert(cut->end(), own->begin(), own->end());
  }
  std::ranges::sort(*cut, IsBefore);
  for (const Piece& piece : *cut) *entries += piece.bytes;
  return true;
}

bool SortedSetCalls::Cut(const FunctionCall& call, Answer* answer) {
  if (!OpenView()) return false;
  std::string entries;
  const auto request = RequestOf(call);
  if (request && request->by == types::RangeRequest::By::kRank) {
    const auto ranks = CutRanksOf(members(), call);
    if (!ranks) answer->status = types::kBadOperand;
    if (ranks && !CutRanks(*ranks, &entries)) return false;
  } else {
    are_moved_known_ = false;
    if (!CutBounds(call, answer, &entries)) return false;
  }
  if (!answer->status.ok() || answer->is_too_long) return true;
  auto cut = ReadPieces(Form::kEntry, access_.scratch().Copy(entries));
  if (!cut) return false;
  answer->integer = static_cast<int64_t>(cut->size());
  answer->keeps = cut->empty();
  if (request->reverse != 0) std::ranges::reverse(*cut);
  for (const Piece& piece : *cut) answer->value += piece.bytes;
  if (cut->size() == record_.members && !has_changes()) {
    erases_ = true;
    return true;
  }
  std::vector<std::string_view> names;
  names.reserve(cut->size());
  for (const Piece& piece : *cut) names.push_back(piece.place.member);
  std::ranges::sort(names);
  return Remove(names);
}

bool SortedSetCalls::AddTo(Batch& batch) {
  if (!erases_) return MemberCalls::AddTo(batch);
  batch.Add({.op = Op::kRequireValue,
             .type = types::kLargeForm + types::kSortedSet,
             .key = key_,
             .other = batch.scratch().Copy(types::BytesOf(record_))});
  erased_slot_ = batch.Delete(key_);
  return true;
}

Answer SortedSetCalls::Done(const Batch& batch) {
  if (!erases_) return MemberCalls::Done(batch);
  Answer answer;
  answer.version = batch.outcome(erased_slot_).version;
  answer.is_erased = true;
  access_.set_deadline_ms(batch.outcome(erased_slot_).deadline_ms);
  return answer;
}

bool SortedSetCalls::Make(const FunctionCall& call, Answer* answer) {
  static const Function* const add = FindFunction("zset-add");
  if (IsCut(*call.function)) return Cut(call, answer);
  are_moved_known_ &= call.function->reads_only;
  if (call.function == PopLowest()) return Pop(lowest_, call, answer);
  if (call.function == PopHighest()) return Pop(highest_, call, answer);
  if (call.function != add) return MemberCalls::Make(call, answer);
  adds_ = true;
  return Add(call, answer);
}

// Makes a zset-add of the members as they are known. False: as for Make.
bool SortedSetCalls::Add(const FunctionCall& call, Answer* answer) {
  uint8_t rule = 0;
  additions_.clear();
  if (!types::ReadAddition(call.operand, &rule, &additions_)) {
    return MemberCalls::Make(call, answer);
  }
  if (!FindMembersOf(call)) return false;
  // The members that the call names, as AddByRule wants them.
  struct Named {
    SortedSetCalls& calls;
    Member* member = nullptr;
    types::Entry entry = {};
    int64_t added = 0;
    const types::Entry* Find(std::string_view name) {
      member = *std::ranges::lower_bound(calls.found(), name, {}, &Member::name);
      if (!member->now) return nullptr;
      entry = {.score = member->now->place.score, .member = name};
      return &entry;
    }
    void Put(const types::Entry* now, const types::Entry& then) {
      if (now == nullptr) ++added;
      member->now = calls.EntryOf(then.score, member->name);
    }
  };
  Named members{*this};
  const types::AddAnswer added = types::AddByRule(rule, additions_, members);
  answer->status = added.status;
  answer->integer = added.integer;
  answer->keeps = !added.has_changed;
  if (added.has_changed) Touch();
  if ((rule & types::kAddOne) != 0 && added.last && added.status.ok()) {
    answer->value.assign(reinterpret_cast<const char*>(&*added.last), sizeof(double));
  }
  NoteAdded(members.added);
  return true;
}

// Reads the segments at an end ahead, and appends the entries that pops will find there.
void SortedSetCalls::ReadAhead(bool is_highest, uint64_t entries, Pieces* ahead) {
  Segments& scores = SegmentsOf(Part::kScores);
  std::string_view low = scores.prefix();
  std::string_view high =
      access_.scratch().Copy(SegmentKey(record_.id, Part::kScores, OrderedNumber(UINT64_MAX)));
  // A scan asks for as many segments as have the entries if each is half full. Where pops or cuts
  // have left less, more scans follow.
  for (uint32_t left = kSegmentsAheadMax; entries > 0 && left > 0;) {
    const uint64_t bytes = entries * (record_.bytes / record_.members + 1);
    const auto segments =
        static_cast<uint32_t>(std::min<uint64_t>(1 + bytes * 2 / access_.segment_bytes(), left));
    left -= segments;
    Batch& batch = access_.KeptBatch(Batch::Kind::kUnordered);
    batch.Scan(Range::Between(low, high),
               {.limit = segments, .reverse = is_highest, .any_type = true});
    for (const Item& item : access_.Execute(batch).items(0)) {
      const Loaded* const loaded = scores.Keep(item.key, item.value);
      auto pieces =
          loaded != nullptr ? ReadPieces(Form::kEntry, loaded->segment.body) : std::nullopt;
      if (!pieces) return;
      if (is_highest) std::ranges::reverse(*pieces);
      pieces->resize(std::min<uint64_t>(pieces->size(), entries));
      entries -= pieces->size();
      ahead->insert(ahead->end(), pieces->begin(), pieces->end());
    }
    const Outcome& scanned = batch.outcome(0);
    if (!scanned.more) return;
    (is_highest ? high : low) = scanned.value;
  }
}

void SortedSetCalls::Expect(std::span<const FunctionCall> calls) {
  static const Function* const remove = FindFunction("zset-remove");
  if (access_.wants_newest()) return;
  std::vector<FunctionCall> about_members;
  uint64_t lowest = 0;
  uint64_t highest = 0;
  for (const FunctionCall& call : calls) {
    if (IsCut(*call.function)) continue;
    if (!IsPop(*call.function)) {
      about_members.push_back(call);
    } else {
      uint64_t& entries = call.function == PopLowest() ? lowest : highest;
      entries = std::min(entries + std::min(CountOf(call.operand), kAheadMax), kAheadMax);
    }
  }
  Pieces ahead;
  ReadAhead(false, lowest, &ahead);
  ReadAhead(true, highest, &ahead);
  const bool knows = !ahead.empty() && HasHints();
  if (!ahead.empty() && !knows) {
    std::vector<std::string_view> names;
    for (const Piece& piece : ahead) names.push_back(piece.place.member);
    about_members.push_back(
        {.function = remove, .operand = types::JoinTexts(names, access_.scratch())});
  }
  MemberCalls::Expect(about_members);
  if (!knows) return;
  std::ranges::sort(ahead, {}, [](const Piece& entry) { return entry.place.member; });
  const auto again =
      std::ranges::unique(ahead, {}, [](const Piece& entry) { return entry.place.member; });
  ahead.erase(again.begin(), again.end());
  Know(ahead);
}

}  // namespace skep::collections

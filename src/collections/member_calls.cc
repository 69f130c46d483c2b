#include "collections/member_calls.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/compare_bytes.h"
#include "collections/large_call.h"
#include "collections/puts_in_place.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/large_find.h"
#include "types/set.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {
namespace {

// An operand of a larger share of the portion may name many members.
constexpr size_t kOperandShare = 4;

// Tells which texts of a function's operand are members, where the function looks at these members
// only.
enum class Operand : uint8_t {
  kTexts,             // each text
  kPairs,             // every second text, from the first on
  kFirstText,         // the first text
  kDeadlineAndTexts,  // a types::FieldDeadline, then each text
  kDeadlineAndPairs,  // likewise, then every second text, from the first on
  kEntries,           // one byte, then entries
};

const Operand* MemberOperand(const Function& function) {
  static const auto* const operands = [] {
    auto* const made = new std::unordered_map<const Function*, Operand>;
    const std::pair<const char*, Operand> named[] = {
        {"hash-set", Operand::kPairs},
        {"hash-set-new", Operand::kFirstText},
        {"hash-get", Operand::kTexts},
        {"hash-value-bytes", Operand::kFirstText},
        {"hash-delete", Operand::kTexts},
        {"hash-add", Operand::kFirstText},
        {"hash-add-float", Operand::kFirstText},
        {"hash-deadlines", Operand::kTexts},
        {"hash-persist", Operand::kTexts},
        {"hash-take", Operand::kTexts},
        {"hash-drop-due", Operand::kTexts},
        {"hash-expire", Operand::kDeadlineAndTexts},
        {"hash-get-until", Operand::kDeadlineAndTexts},
        {"hash-set-until", Operand::kDeadlineAndPairs},
        {"set-add", Operand::kTexts},
        {"set-remove", Operand::kTexts},
        {"set-take", Operand::kTexts},
        {"set-has", Operand::kTexts},
        {"zset-add", Operand::kEntries},
        {"zset-remove", Operand::kTexts},
        {"zset-score", Operand::kTexts},
    };
    for (const auto& [name, operand] : named) made->emplace(FindFunction(name), operand);
    return made;
  }();
  const auto found = operands->find(&function);
  return found == operands->end() ? nullptr : &found->second;
}

// The function that reads members of a collection of this kind.
const Function* MemberRead(uint8_t kind) {
  static const Function* const functions[] = {FindFunction("hash-get"), FindFunction("set-has"),
                                              FindFunction("zset-score")};
  return functions[kind == types::kHash ? 0 : kind == types::kSet ? 1 : 2];
}

// Sorts the names from the one numbered `begin` on, and leaves each once.
void SortEachOnce(size_t begin, std::vector<std::string_view>& names) {
  const auto own = std::span(names).subspan(begin);
  std::ranges::sort(own);
  names.resize(names.size() - std::ranges::unique(own).size());
}

// Appends the members of an operand. One that is malformed has some of them: the function says what
// is wrong with it.
void AppendMembers(Operand kind, std::string_view operand, std::vector<std::string_view>* to) {
  if (kind == Operand::kEntries) {
    types::Entry entry;
    operand.remove_prefix(std::min<size_t>(operand.size(), 1));
    while (types::TakeEntry(operand, &entry)) to->push_back(entry.member);
  } else {
    const bool has_deadline =
        kind == Operand::kDeadlineAndTexts || kind == Operand::kDeadlineAndPairs;
    const bool has_pairs = kind == Operand::kPairs || kind == Operand::kDeadlineAndPairs;
    if (has_deadline) {
      operand.remove_prefix(std::min<size_t>(operand.size(), types::FieldDeadline::kBytes));
    }
    std::optional<std::string_view> text;
    for (size_t i = 0; !operand.empty() && types::TakeMaybeText(operand, &text); ++i) {
      if (text && (!has_pairs || i % 2 == 0)) to->push_back(*text);
      if (kind == Operand::kFirstText) break;
    }
  }
}

}  // namespace

bool MemberCalls::Names(const Function& function) { return MemberOperand(function) != nullptr; }

bool MemberCalls::NamesMany(const Access& access, const FunctionCall& call) {
  return call.operand.size() > access.portion_bytes_max() / kOperandShare;
}

MemberCalls::Member* MemberCalls::Find(std::string_view name) {
  const auto at = std::ranges::lower_bound(members_, name, {}, &Member::name);
  return at != members_.end() && at->name == name ? &*at : nullptr;
}

// The piece of the small form of one of the members' part.
Piece MemberCalls::SmallPiece(const Piece& piece) {
  if (kind_ != types::kSortedSet) return piece;
  double score = 0;
  std::memcpy(&score, piece.bytes.data() + piece.bytes.size() - sizeof(score), sizeof(score));
  return EntryOf(score, piece.place.member);
}

Piece MemberCalls::EntryOf(double score, std::string_view member) {
  types::TextWriter writer(access_.scratch(), types::TextBytes(member) + sizeof(score));
  writer.Fixed(score);
  writer.Text(member);
  return Piece{.place = {.score = score, .member = member}, .bytes = writer.bytes()};
}

bool MemberCalls::HasHints() const {
  if (access_.hints() == nullptr || access_.wants_newest()) return false;
  return static_cast<bool>(SegmentHints::Reading(*access_.hints(), record_.id));
}

bool MemberCalls::ReadEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  const auto only_reads = [](const FunctionCall& call) { return call.function->reads_only; };
  if (access_.wants_newest() || !std::ranges::all_of(calls, only_reads)) return false;
  std::vector<uint32_t> ends;  // of the members of each call
  ends.reserve(calls.size());
  names_.clear();
  names_.reserve(calls.size());
  const Function* function = nullptr;
  Operand operand{};
  for (const FunctionCall& call : calls) {
    const size_t begin = names_.size();
    if (call.function != function) operand = *MemberOperand(*call.function);
    function = call.function;
    AppendMembers(operand, call.operand, &names_);
    if (names_.size() > begin + 1) SortEachOnce(begin, names_);
    if (names_.size() > kReadsMax) return false;
    ends.push_back(static_cast<uint32_t>(names_.size()));
  }
  if (names_.empty()) return false;
  Lookup lookup(access_);
  Segments& segments = change_.Of(Part::kMembers);
  for (const std::string_view name : names_) lookup.AddMember(segments, kind_, name);
  const auto then = lookup.Execute(key_, kind_);
  if (!then || then->id != record_.id || then->writes < record_.writes) return false;
  const size_t answered = answers->size();
  const Function* const read = MemberRead(kind_);
  uint32_t next = 0;
  std::optional<Piece> piece;
  for (size_t i = 0; i < calls.size(); ++i) {
    seen_.clear();
    const bool is_of_one = ends[i] == next + 1;
    for (; next < ends[i]; ++next) {
      if (!lookup.FoundMember(next, kind_, &piece)) {
        answers->resize(answered);
        return false;
      }
      if (piece) seen_.push_back(SmallPiece(*piece));
    }
    if (is_of_one && calls[i].function == read && types::OnlyText(calls[i].operand)) {
      const auto bytes = piece ? std::optional(piece->bytes) : std::nullopt;
      if (const auto effect = types::AnswerOfPiece(kind_, bytes, access_.scratch())) {
        answers->push_back(LargeCall::AnswerOf(*effect));
        continue;
      }
    }
    if (kind_ == types::kSortedSet && seen_.size() > 1) std::ranges::sort(seen_, IsBefore);
    answers->push_back(LargeCall::AnswerOf(RunOnSeen(calls[i])));
  }
  return true;
}

bool MemberCalls::PutEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  return PutsInPlace(access_, key_, kind_, record_).Run(calls, answers);
}

// Runs the function of a call on a collection of the pieces that it sees.
FunctionEffect MemberCalls::RunOnSeen(const FunctionCall& call) {
  Scratch& scratch = access_.scratch();
  std::optional<std::string_view> value;
  if (!seen_.empty()) value = SmallForm(seen_, scratch, HaveDeadlines(kind_, seen_));
  return RunFunction(*call.function, value, call.operand, access_.now_ms(), scratch);
}

void MemberCalls::Expect(std::span<const FunctionCall> calls) {
  if (access_.wants_newest()) return;
  std::vector<std::string_view> names;
  expected_calls_.reserve(calls.size());
  for (const FunctionCall& call : calls) {
    const size_t begin = names.size();
    AppendMembers(*MemberOperand(*call.function), call.operand, &names);
    expected_calls_.push_back(
        {.operand = call.operand.data(), .begin = begin, .end = names.size()});
  }
  std::vector<uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](uint32_t a, uint32_t b) { return CompareBytes(names[a], names[b]) < 0; });
  expected_.resize(names.size());
  std::vector<std::string_view> sorted;
  sorted.reserve(names.size());
  for (const uint32_t i : order) {
    if (sorted.empty() || sorted.back() != names[i]) sorted.push_back(names[i]);
    expected_[i] = static_cast<uint32_t>(sorted.size() - 1);
  }
  LookUp(sorted);
  if (Read(sorted)) {
    expected_members_ = members_.size();
  } else {
    expected_calls_.clear();  // Make reads what it needs, or finds that the collection is gone
  }
}

// Finds the members of a call that was read ahead. False: it was not, or others were read since.
bool MemberCalls::FindExpected(const FunctionCall& call) {
  if (next_expected_ == expected_calls_.size() || members_.size() != expected_members_)
    return false;
  const ExpectedCall& expected = expected_calls_[next_expected_];
  if (expected.operand != call.operand.data()) return false;
  ++next_expected_;
  own_.clear();
  for (size_t i = expected.begin; i < expected.end; ++i) {
    SKEP_DCHECK(expected_[i] < members_.size());
    own_.push_back(&members_[expected_[i]]);
  }
  if (own_.size() == 1) return true;
  // The places of members ascend like their names.
  std::ranges::sort(own_);
  const auto rest = std::ranges::unique(own_);
  own_.erase(rest.begin(), rest.end());
  return true;
}

// Reads the segments of members ahead, at one version. Where a hint was wrong a segment is read
// later, at another one.
void MemberCalls::LookUp(std::span<const std::string_view> names) {
  Lookup lookup(access_);
  for (const std::string_view name : names) lookup.Add(change_.Of(Part::kMembers), name);
  const bool is_same = lookup.Run(key_, kind_) == record_;
  is_of_record_ = is_same && std::ranges::all_of(names, [&](std::string_view name) {
                    return change_.Of(Part::kMembers).FindRead(name) != nullptr;
                  });
}

// Reads members, which ascend and were not read before. False: the collection is gone, or a read
// was refused.
bool MemberCalls::Read(std::span<const std::string_view> names) {
  const size_t old_count = members_.size();
  members_.reserve(old_count + names.size());
  size_t i = 0;
  while (i < names.size()) {
    const Loaded* const loaded = change_.Of(Part::kMembers).Find(names[i]);
    if (loaded == nullptr) break;
    const Segment& segment = loaded->segment;
    const size_t begin = i;
    const size_t first = members_.size();
    do {
      members_.push_back({.name = names[i++]});
    } while (i < names.size() && (!segment.fence || names[i] < *segment.fence));
    FindPieces(FormOf(Part::kMembers, kind_), segment.body, names.subspan(begin, i - begin),
               [&](size_t index, const char* at, const Piece* piece) {
                 Member& member = members_[first + index];
                 member.at = at;
                 if (piece != nullptr) member.before = member.now = SmallPiece(*piece);
               });
  }
  if (old_count > 0) {
    std::ranges::inplace_merge(members_, members_.begin() + static_cast<ptrdiff_t>(old_count), {},
                               &Member::name);
  }
  return i == names.size();
}

// Finds the members of names_, and reads those that were not read before. False: as Read.
bool MemberCalls::FindOwn() {
  own_.clear();
  missing_.clear();
  for (const std::string_view name : names_) {
    own_.push_back(Find(name));
    if (own_.back() == nullptr) missing_.push_back(name);
  }
  if (missing_.empty()) return true;
  is_of_record_ = false;
  if (!Read(missing_)) return false;
  for (size_t i = 0; i < names_.size(); ++i) own_[i] = Find(names_[i]);
  return true;
}

void MemberCalls::Know(const Pieces& entries) {
  const size_t old_count = members_.size();
  members_.reserve(old_count + entries.size());
  for (const Piece& entry : entries) {
    const auto known = std::span(members_).first(old_count);
    if (std::ranges::binary_search(known, entry.place.member, {}, &Member::name)) continue;
    members_.push_back({.name = entry.place.member, .before = entry, .now = entry});
  }
  if (old_count > 0) {
    std::ranges::inplace_merge(members_, members_.begin() + static_cast<ptrdiff_t>(old_count), {},
                               &Member::name);
  }
  is_of_record_ = false;
}

bool MemberCalls::Remove(std::span<const std::string_view> names) {
  std::vector<std::string_view> unread;
  own_.clear();
  for (const std::string_view name : names) {
    own_.push_back(Find(name));
    if (own_.back() == nullptr) unread.push_back(name);
  }
  if (!unread.empty()) {
    if (!access_.wants_newest()) LookUp(unread);
    is_of_record_ = false;
    if (!Read(unread)) return false;
    for (size_t i = 0; i < names.size(); ++i) own_[i] = Find(names[i]);
  }
  for (Member* const member : own_) {
    if (!member->now) return false;
    member->now.reset();
  }
  if (!names.empty()) Touch();
  NoteAdded(-static_cast<int64_t>(names.size()));
  return true;
}

bool MemberCalls::FindMembersOf(const FunctionCall& call) {
  if (FindExpected(call)) return true;
  names_.clear();
  AppendMembers(*MemberOperand(*call.function), call.operand, &names_);
  SortEachOnce(0, names_);
  return FindOwn();
}

bool MemberCalls::Make(const FunctionCall& call, Answer* answer) {
  if (!FindMembersOf(call)) return false;
  seen_.clear();
  for (const Member* const member : own_) {
    if (member->now) seen_.push_back(*member->now);
  }
  if (kind_ == types::kSortedSet) std::ranges::sort(seen_, IsBefore);
  const FunctionEffect effect = RunOnSeen(call);
  *answer = LargeCall::AnswerOf(effect);
  // The function takes a set of none of its members for no set, of which nothing can be taken. Here
  // there is a set: its answer is an empty list, which a request that has it for its operand takes.
  static const Function* const take = FindFunction("set-take");
  if (call.function == take && seen_.empty() && answer->status.ok()) {
    answer->value = types::kNoMember;
  }
  answer->keeps = !effect.status.ok() || effect.action == FunctionEffect::Action::kKeep;
  if (answer->keeps) return true;
  Touch();
  const bool erases = effect.action == FunctionEffect::Action::kErase;
  const auto after = PiecesOf(kind_, erases ? std::string_view() : effect.value);
  if (!after) {
    answer->status = types::kNoCollection;
    return true;
  }
  for (Member* const member : own_) member->now.reset();
  for (const Piece& piece : *after) {
    const auto at = std::ranges::lower_bound(own_, piece.place.member, {}, &Member::name);
    if (at != own_.end() && (*at)->name == piece.place.member) (*at)->now = piece;
  }
  NoteAdded(static_cast<int64_t>(after->size()) - static_cast<int64_t>(seen_.size()));
  return true;
}

bool MemberCalls::IsNewest() {
  if (is_of_record_) return true;
  // What a Lookup has read of another version may be older.
  if (!access_.wants_newest()) return false;
  // A pop has read segments of scores, too.
  const bool has_scores = kind_ == types::kSortedSet && !change_.Of(Part::kScores).all().empty();
  const bool is_one = change_.Of(Part::kMembers).all().size() == 1 && !has_scores;
  return is_one || IsOfOneVersion(key_, kind_, record_);
}

bool MemberCalls::RequireRead(Batch& batch) {
  for (const Part part : {Part::kMembers, Part::kScores}) {
    for (const Loaded* const loaded : change_.Of(part).all()) {
      batch.Add({.op = Op::kRequireValue,
                 .type = types::kSegment,
                 .key = loaded->key,
                 .other = loaded->bytes});
    }
  }
  return true;
}

// The bytes that a member with this piece of the small form has in the part of members.
std::string_view MemberCalls::BytesInPart(const Member& member, const Piece& piece) {
  if (kind_ != types::kSortedSet) return piece.bytes;
  types::TextWriter writer(access_.scratch(), piece.bytes.size());
  writer.Text(member.name);
  writer.Fixed(piece.place.score);
  return writer.bytes();
}

bool MemberCalls::AddTo(Batch& batch) {
  std::vector<Edit> by_member;
  std::vector<Edit> by_score;
  int64_t bytes = 0;
  int64_t deadlines = 0;
  const auto count_deadline = [&](const std::optional<Piece>& field) {
    return kind_ == types::kHash && field && types::HasDeadlineForm(field->bytes) ? 1 : 0;
  };
  for (const Member& member : members_) {
    if (!member.is_changed()) continue;
    deadlines += count_deadline(member.now) - count_deadline(member.before);
    Edit& edit = by_member.emplace_back(Edit{
        .place = {.member = member.name}, .was_there = member.before.has_value(), .at = member.at});
    if (member.now) edit.bytes = BytesInPart(member, *member.now);
    if (member.before && member.at == nullptr) edit.before = BytesInPart(member, *member.before);
    if (member.before) bytes -= static_cast<int64_t>(member.before->bytes.size());
    if (member.now) bytes += static_cast<int64_t>(member.now->bytes.size());
    if (kind_ != types::kSortedSet) continue;
    if (member.before) {
      by_score.push_back(
          {.place = member.before->place, .was_there = true, .before = member.before->bytes});
    }
    if (member.now) by_score.push_back({.place = member.now->place, .bytes = member.now->bytes});
  }
  std::ranges::sort(by_score, [](const Edit& a, const Edit& b) { return a.place < b.place; });
  const bool is_edited =
      kind_ == types::kSortedSet
          ? change_.EditParts(std::move(by_score), std::move(by_member), bytes, 0)
          : change_.EditParts(std::move(by_member), {}, bytes, deadlines);
  if (!is_edited) return false;
  change_.AddTo(batch, fewest_);
  return true;
}

}  // namespace skep::collections

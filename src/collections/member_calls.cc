#include "collections/member_calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collections/large_call.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {
namespace {

// Tells which texts of a function's operand are members, where the function looks at these members
// only.
enum class Operand : uint8_t {
  kTexts,      // each text
  kPairs,      // every second text, from the first on
  kFirstText,  // the first text
  kEntries,    // one byte, then entries
};

const Operand* MemberOperand(const Function& function) {
  static const auto* const operands = [] {
    auto* const made = new std::unordered_map<const Function*, Operand>;
    const std::pair<const char*, Operand> named[] = {
        {"hash-set", Operand::kPairs},           {"hash-set-new", Operand::kFirstText},
        {"hash-get", Operand::kTexts},           {"hash-value-bytes", Operand::kFirstText},
        {"hash-delete", Operand::kTexts},        {"hash-add", Operand::kFirstText},
        {"hash-add-float", Operand::kFirstText}, {"set-add", Operand::kTexts},
        {"set-remove", Operand::kTexts},         {"set-has", Operand::kTexts},
        {"zset-add", Operand::kEntries},         {"zset-remove", Operand::kTexts},
        {"zset-score", Operand::kTexts},
    };
    for (const auto& [name, operand] : named) made->emplace(FindFunction(name), operand);
    return made;
  }();
  const auto found = operands->find(&function);
  return found == operands->end() ? nullptr : &found->second;
}

void SortEachOnce(std::vector<std::string_view>& names) {
  std::ranges::sort(names);
  const auto rest = std::ranges::unique(names);
  names.erase(rest.begin(), rest.end());
}

// Appends the members of an operand. One that is malformed has some of them: the function says what
// is wrong with it.
void AppendMembers(Operand kind, std::string_view operand, std::vector<std::string_view>* to) {
  if (kind == Operand::kEntries) {
    types::Entry entry;
    operand.remove_prefix(std::min<size_t>(operand.size(), 1));
    while (types::TakeEntry(operand, &entry)) to->push_back(entry.member);
  } else {
    std::optional<std::string_view> text;
    for (size_t i = 0; !operand.empty() && types::TakeMaybeText(operand, &text); ++i) {
      if (text && (kind != Operand::kPairs || i % 2 == 0)) to->push_back(*text);
      if (kind == Operand::kFirstText) break;
    }
  }
}

}  // namespace

bool MemberCalls::Names(const Function& function) { return MemberOperand(function) != nullptr; }

MemberCalls::Member* MemberCalls::Find(std::string_view name) {
  const auto at = std::ranges::lower_bound(members_, name, {}, &Member::name);
  return at != members_.end() && at->name == name ? &*at : nullptr;
}

// The piece of the small form of one of the members' part.
Piece MemberCalls::SmallPiece(const Piece& piece) {
  if (kind_ != types::kSortedSet) return piece;
  double score = 0;
  std::memcpy(&score, piece.bytes.data() + piece.bytes.size() - sizeof(score), sizeof(score));
  types::TextWriter writer(access_.scratch(),
                           types::TextBytes(piece.place.member) + sizeof(double));
  writer.Bytes({reinterpret_cast<const char*>(&score), sizeof(score)});
  writer.Text(piece.place.member);
  return Piece{.place = {.score = score, .member = piece.place.member}, .bytes = writer.bytes()};
}

// Each call is answered from the segment of its member, at one version. The version is that of the
// record that was the newest one, so it is the newest state at that moment (header).
bool MemberCalls::ReadEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  const auto only_reads = [](const FunctionCall& call) { return call.function->reads_only; };
  if (access_.wants_newest() || !std::ranges::all_of(calls, only_reads)) return false;
  std::vector<std::string_view> names;
  names.reserve(calls.size());
  Lookup lookup(access_);
  for (const FunctionCall& call : calls) {
    AppendMembers(*MemberOperand(*call.function), call.operand, &names);
    if (names.size() != static_cast<size_t>(&call - calls.data()) + 1) return false;
    lookup.Add(change_.Of(Part::kMembers), names.back());
  }
  if (lookup.Execute(key_, kind_) != record_) return false;
  const size_t answered = answers->size();
  for (uint32_t i = 0; i < calls.size(); ++i) {
    const auto segment = lookup.Found(i, names[i]);
    if (!segment) {
      answers->resize(answered);
      return false;
    }
    seen_.clear();
    FindPieces(FormOf(Part::kMembers, kind_), segment->body, std::span(&names[i], 1),
               [&](size_t, const Piece& piece) { seen_.push_back(SmallPiece(piece)); });
    answers->push_back(LargeCall::AnswerOf(RunOnSeen(calls[i])));
  }
  return true;
}

// Runs the function of a call on a collection of the pieces that it sees.
FunctionEffect MemberCalls::RunOnSeen(const FunctionCall& call) {
  Scratch& scratch = access_.scratch();
  std::optional<std::string_view> value;
  if (!seen_.empty()) value = SmallForm(seen_, scratch);
  return RunFunction(*call.function, value, call.operand, scratch);
}

void MemberCalls::Expect(std::span<const FunctionCall> calls) {
  if (access_.wants_newest()) return;
  std::vector<std::string_view> names;
  for (const FunctionCall& call : calls) {
    AppendMembers(*MemberOperand(*call.function), call.operand, &names);
  }
  SortEachOnce(names);
  LookUp(names);
  Read(names);
}

// Reads the segments of members ahead, at one version.
void MemberCalls::LookUp(std::span<const std::string_view> names) {
  Lookup lookup(access_);
  for (const std::string_view name : names) lookup.Add(change_.Of(Part::kMembers), name);
  is_of_record_ = lookup.Run(key_, kind_) == record_;
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
               [&](size_t at, const Piece& piece) {
                 Member& member = members_[first + at];
                 member.before = member.now = SmallPiece(piece);
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

bool MemberCalls::Remove(std::span<const std::string_view> names) {
  std::vector<std::string_view> unread;
  for (const std::string_view name : names) {
    if (Find(name) == nullptr) unread.push_back(name);
  }
  if (!unread.empty()) {
    if (!access_.wants_newest()) LookUp(unread);
    is_of_record_ = false;
    if (!Read(unread)) return false;
  }
  for (const std::string_view name : names) {
    Member* const member = Find(name);
    if (!member->now) return false;
    member->now.reset();
  }
  added_ -= static_cast<int64_t>(names.size());
  fewest_ = std::min(fewest_, added_);
  return true;
}

bool MemberCalls::Make(const FunctionCall& call, Answer* answer) {
  names_.clear();
  AppendMembers(*MemberOperand(*call.function), call.operand, &names_);
  SortEachOnce(names_);
  if (!FindOwn()) return false;
  seen_.clear();
  for (const Member* const member : own_) {
    if (member->now) seen_.push_back(*member->now);
  }
  if (kind_ == types::kSortedSet) std::ranges::sort(seen_, IsBefore);
  const FunctionEffect effect = RunOnSeen(call);
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return true;
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
  added_ += static_cast<int64_t>(after->size()) - static_cast<int64_t>(seen_.size());
  fewest_ = std::min(fewest_, added_);
  return true;
}

bool MemberCalls::has_changes() {
  return std::ranges::any_of(members_, [](const Member& member) { return member.is_changed(); });
}

bool MemberCalls::IsNewest() {
  if (is_of_record_) return true;
  // What a Lookup has read of another version may be older.
  if (!access_.wants_newest()) return false;
  return change_.Of(Part::kMembers).all().size() == 1 || access_.Record(key_, kind_) == record_;
}

bool MemberCalls::AddTo(Batch& batch) {
  Pieces before;
  Pieces after;
  for (const Member& member : members_) {
    if (!member.is_changed()) continue;
    if (member.before) before.push_back(*member.before);
    if (member.now) after.push_back(*member.now);
  }
  if (kind_ == types::kSortedSet) {
    std::ranges::sort(before, IsBefore);
    std::ranges::sort(after, IsBefore);
  }
  if (!change_.Edit(before, after)) return false;
  change_.AddTo(batch, fewest_);
  return true;
}

}  // namespace skep::collections

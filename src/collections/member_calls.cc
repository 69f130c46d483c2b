#include "collections/member_calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

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

// Appends the members of an operand, ascending, each once. An operand that is malformed has some of
// them: the function says what is wrong with it.
void AppendMembers(Operand kind, std::string_view operand, std::vector<std::string_view>* to) {
  const auto begin = static_cast<ptrdiff_t>(to->size());
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
  std::sort(to->begin() + begin, to->end());
  to->erase(std::unique(to->begin() + begin, to->end()), to->end());
}

}  // namespace

bool MemberCalls::Has(const Function& function) { return MemberOperand(function) != nullptr; }

MemberCalls::Member* MemberCalls::Find(std::string_view name) {
  const auto at = std::ranges::lower_bound(members_, name, {}, &Member::name);
  return at != members_.end() && at->name == name ? &*at : nullptr;
}

// Lists the members that the calls name.
void MemberCalls::Name(std::span<const FunctionCall> calls) {
  for (const FunctionCall& call : calls) {
    AppendMembers(*MemberOperand(*call.function), call.operand, &names_);
    name_ends_.push_back(names_.size());
  }
  std::vector<std::string_view> all = names_;
  std::ranges::sort(all);
  const auto rest = std::ranges::unique(all);
  all.erase(rest.begin(), rest.end());
  for (const std::string_view name : all) members_.push_back({.name = name});
}

// The piece of the small form of one of the members' part.
std::optional<Piece> MemberCalls::SmallPiece(const Piece& piece) {
  if (kind_ != types::kSortedSet) return piece;
  double score = 0;
  std::memcpy(&score, piece.bytes.data() + piece.bytes.size() - sizeof(score), sizeof(score));
  types::TextWriter writer(access_.scratch(),
                           types::TextBytes(piece.place.member) + sizeof(double));
  writer.Bytes({reinterpret_cast<const char*>(&score), sizeof(score)});
  writer.Text(piece.place.member);
  return Piece{.place = {.score = score, .member = piece.place.member}, .bytes = writer.bytes()};
}

// Reads the members. False: the collection is gone, or a read was refused.
bool MemberCalls::Read() {
  Segments& segments = change_->Of(Part::kMembers);
  if (!access_.wants_newest()) {
    Lookup lookup(access_);
    for (const Member& member : members_) lookup.Add(segments, member.name);
    is_newest_ = lookup.Run(key_, kind_) == record_;
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < members_.size();) {
    const Loaded* const loaded = segments.Find(members_[i].name);
    if (loaded == nullptr) return false;
    const Segment& segment = loaded->segment;
    const size_t begin = i;
    names.clear();
    do {
      names.push_back(members_[i++].name);
    } while (i < members_.size() && (!segment.fence || members_[i].name < *segment.fence));
    FindPieces(FormOf(Part::kMembers, kind_), segment.body, names,
               [&](size_t at, const Piece& piece) {
                 Member& member = members_[begin + at];
                 member.before = member.now = SmallPiece(piece);
               });
  }
  return true;
}

// Makes a call on what its members are now.
void MemberCalls::RunOne(const FunctionCall& call, std::span<const std::string_view> names,
                         Answer* answer) {
  Scratch& scratch = access_.scratch();
  own_.clear();
  seen_.clear();
  for (const std::string_view name : names) {
    own_.push_back(Find(name));
    if (own_.back()->now) seen_.push_back(*own_.back()->now);
  }
  if (kind_ == types::kSortedSet) std::ranges::sort(seen_, IsBefore);
  std::optional<std::string_view> value;
  if (!seen_.empty()) value = SmallForm(seen_, scratch);
  const FunctionEffect effect = RunFunction(*call.function, value, call.operand, scratch);
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return;
  const bool erases = effect.action == FunctionEffect::Action::kErase;
  const auto after = PiecesOf(kind_, erases ? std::string_view() : effect.value);
  if (!after) {
    answer->status = types::kNoCollection;
    return;
  }
  for (Member* const member : own_) member->now.reset();
  for (const Piece& piece : *after) {
    Member* const member = Find(piece.place.member);
    if (member == nullptr) answer->status = types::kNoCollection;
    if (member != nullptr) member->now = piece;
  }
  added_ += static_cast<int64_t>(after->size()) - static_cast<int64_t>(seen_.size());
  fewest_ = std::min(fewest_, added_);
}

// Writes what has become of the members. Nothing: the collection has changed meanwhile.
std::optional<Answer> MemberCalls::Write() {
  Pieces before;
  Pieces after;
  for (const Member& member : members_) {
    if (member.before.has_value() == member.now.has_value() &&
        (!member.now || member.before->bytes == member.now->bytes)) {
      continue;
    }
    if (member.before) before.push_back(*member.before);
    if (member.now) after.push_back(*member.now);
  }
  Answer answer;
  if (before.empty() && after.empty()) {
    const bool is_one_state =
        is_newest_ || (access_.wants_newest() && (change_->Of(Part::kMembers).all().size() == 1 ||
                                                  access_.Record(key_, kind_) == record_));
    return is_one_state ? std::optional(answer) : std::nullopt;
  }
  if (kind_ == types::kSortedSet) {
    std::ranges::sort(before, IsBefore);
    std::ranges::sort(after, IsBefore);
  }
  return LargeCall(access_, key_, kind_, record_).Commit(*change_, before, after, fewest_);
}

bool MemberCalls::Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  const size_t answered = answers->size();
  change_.emplace(access_, key_, kind_, record_);
  Name(calls);
  const bool is_read = Read();
  size_t done = 0;
  for (; is_read && done < calls.size(); ++done) {
    if (static_cast<int64_t>(record_.members) + added_ <= 0) break;
    const size_t begin = done == 0 ? 0 : name_ends_[done - 1];
    RunOne(calls[done], std::span(names_).subspan(begin, name_ends_[done] - begin),
           &answers->emplace_back());
  }
  return FinishCalls(access_, is_read ? Write() : std::nullopt, calls.size(), answered, answers);
}

}  // namespace skep::collections

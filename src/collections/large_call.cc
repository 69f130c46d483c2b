#include "collections/large_call.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/varint.h"
#include "collections/large_list.h"
#include "collections/ranked.h"
#include "collections/view.h"
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

std::optional<Operand> MemberOperand(const Function& function) {
  static const std::map<std::string_view, Operand> operands = {
      {"hash-set", Operand::kPairs},           {"hash-set-new", Operand::kFirstText},
      {"hash-get", Operand::kTexts},           {"hash-value-bytes", Operand::kFirstText},
      {"hash-delete", Operand::kTexts},        {"hash-add", Operand::kFirstText},
      {"hash-add-float", Operand::kFirstText}, {"set-add", Operand::kTexts},
      {"set-remove", Operand::kTexts},         {"set-has", Operand::kTexts},
      {"zset-add", Operand::kEntries},         {"zset-remove", Operand::kTexts},
      {"zset-score", Operand::kTexts},
  };
  const auto found = operands.find(function.name);
  return found == operands.end() ? std::nullopt : std::optional(found->second);
}

// The members of an operand, ascending, each once. An operand that is malformed has some of them:
// the function says what is wrong with it.
std::vector<std::string_view> MembersOf(Operand kind, std::string_view operand) {
  std::vector<std::string_view> members;
  if (kind == Operand::kEntries) {
    types::Entry entry;
    operand.remove_prefix(std::min<size_t>(operand.size(), 1));
    while (types::TakeEntry(operand, &entry)) members.push_back(entry.member);
  } else {
    std::optional<std::string_view> text;
    for (size_t i = 0; !operand.empty() && types::TakeMaybeText(operand, &text); ++i) {
      if (text && (kind != Operand::kPairs || i % 2 == 0)) members.push_back(*text);
      if (kind == Operand::kFirstText) break;
    }
  }
  std::ranges::sort(members);
  const auto rest = std::ranges::unique(members);
  members.erase(rest.begin(), rest.end());
  return members;
}

std::string_view ScoreBytes(const double& score) {
  return {reinterpret_cast<const char*>(&score), sizeof(score)};
}

// The entries of a sorted set's pieces by member, ascending.
Pieces ByScore(const Pieces& pieces, Scratch& scratch) {
  Pieces entries;
  entries.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    double score = 0;
    std::memcpy(&score, piece.bytes.data() + piece.bytes.size() - sizeof(score), sizeof(score));
    types::TextWriter writer(scratch, types::TextBytes(piece.place.member) + sizeof(double));
    writer.Bytes(ScoreBytes(score));
    writer.Text(piece.place.member);
    entries.push_back(
        {.place = {.score = score, .member = piece.place.member}, .bytes = writer.bytes()});
  }
  std::ranges::sort(entries, IsBefore);
  return entries;
}

std::string Joined(const Pieces& pieces) {
  std::string body;
  body.reserve(BytesOf(pieces));
  for (const Piece& piece : pieces) body += piece.bytes;
  return body;
}

}  // namespace

Pieces ByMember(const Pieces& entries, Scratch& scratch) {
  Pieces pieces;
  pieces.reserve(entries.size());
  for (const Piece& entry : entries) {
    const size_t bytes = types::TextBytes(entry.place.member) + sizeof(double);
    types::TextWriter writer(scratch, bytes);
    writer.Text(entry.place.member);
    writer.Bytes(ScoreBytes(entry.place.score));
    pieces.push_back({.place = {.member = entry.place.member}, .bytes = writer.bytes()});
  }
  std::ranges::sort(pieces, IsBefore);
  return pieces;
}

std::optional<Pieces> PiecesOf(uint8_t kind, std::string_view value) {
  uint64_t members = 0;
  if (value.empty()) return Pieces();
  if (!TakeVarint(value, &members)) return std::nullopt;
  auto pieces = ReadPieces(FormOf(MainPart(kind), kind), value);
  if (pieces && kind == types::kHash) std::ranges::sort(*pieces, IsBefore);
  return pieces;
}

std::optional<Piece> FindPiece(Form form, std::string_view body, std::string_view member) {
  Piece piece;
  while (TakePiece(form, body, &piece) && piece.place.member <= member) {
    if (piece.place.member == member) return piece;
  }
  return std::nullopt;
}

std::string SmallForm(uint64_t members, std::string_view body) {
  std::string value;
  value.reserve(kVarintBytesMax + body.size());
  AppendVarint(value, members);
  value += body;
  return value;
}

FunctionEffect RunFunction(const Function& function, std::optional<std::string_view> value,
                           std::string_view operand, Scratch& scratch) {
  const types::FormScope any_size(SIZE_MAX, false);
  return function.body({.value = value,
                        .operand = operand,
                        .scratch = &scratch,
                        .function = &function,
                        .value_bytes_max = kAnswerBytesMax});
}

Answer LargeCall::AnswerOf(const FunctionEffect& effect) {
  return {
      .status = effect.status, .integer = effect.integer, .value = std::string(effect.returned)};
}

// The collection has changed, unless a read was refused.
std::optional<Answer> LargeCall::Refused(Status status) {
  if (status.ok()) return std::nullopt;
  Answer answer;
  answer.status = status;
  return answer;
}

bool LargeCall::IsUnchanged() { return access_.Record(key_, kind_) == record_; }

std::optional<Answer> LargeCall::Apply(const Function& function, std::string_view operand) {
  if (function.name.ends_with("-length")) {
    Answer answer;
    answer.integer = static_cast<int64_t>(record_.members);
    return answer;
  }
  if (const auto by_members = MemberOperand(function)) {
    return ByMembers(function, operand, MembersOf(*by_members, operand));
  }
  if (Ranked::Has(function)) return Ranked(access_, key_, kind_, record_).Apply(function, operand);
  if (kind_ == types::kList) return LargeList(access_, key_, record_).Apply(function, operand);
  return All(function, operand);
}

std::optional<Answer> LargeCall::ByMembers(const Function& function, std::string_view operand,
                                           const std::vector<std::string_view>& members) {
  const Form form = FormOf(Part::kMembers, kind_);
  Change change(access_, key_, kind_, record_);
  Segments& segments = change.Of(Part::kMembers);
  Pieces found;
  for (const std::string_view member : members) {
    const Loaded* const loaded = segments.Find(std::string(member));
    if (loaded == nullptr) return Refused(access_.status());
    if (const auto piece = FindPiece(form, loaded->segment.body, member)) found.push_back(*piece);
  }
  Scratch scratch;
  const Pieces before = kind_ == types::kSortedSet ? ByScore(found, scratch) : std::move(found);
  const std::string value = SmallForm(before.size(), Joined(before));
  const auto seen = before.empty() ? std::nullopt : std::optional<std::string_view>(value);
  const FunctionEffect effect = RunFunction(function, seen, operand, scratch);
  const bool writes = effect.status.ok() && effect.action != FunctionEffect::Action::kKeep;
  if (writes) return Write(change, before, effect, scratch);
  if (segments.all().size() > 1 && !IsUnchanged()) return std::nullopt;
  return AnswerOf(effect);
}

// Writes what the function has made of these pieces.
std::optional<Answer> LargeCall::Write(Change& change, const Pieces& before,
                                       const FunctionEffect& effect, Scratch& scratch) {
  const bool erases = effect.action == FunctionEffect::Action::kErase;
  const auto after = PiecesOf(kind_, erases ? std::string_view() : effect.value);
  if (!after) return Refused(types::kNoCollection);
  const int64_t bytes =
      static_cast<int64_t>(BytesOf(*after)) - static_cast<int64_t>(BytesOf(before));
  const std::vector<Edit> edits = Difference(before, *after);
  if (!change.EditPart(MainPart(kind_), edits) || !change.CountEdits(edits, before)) {
    return Refused(access_.status());
  }
  if (kind_ == types::kSortedSet) {
    const auto by_member = Difference(ByMember(before, scratch), ByMember(*after, scratch));
    if (!change.EditPart(Part::kMembers, by_member)) return Refused(access_.status());
  }
  const int64_t members = static_cast<int64_t>(after->size()) - static_cast<int64_t>(before.size());
  switch (change.Commit(members, bytes)) {
    case Change::Result::kAgain:
      return std::nullopt;
    case Change::Result::kRefused:
      return Refused(change.status());
    case Change::Result::kDone:
      break;
  }
  Answer answer = AnswerOf(effect);
  answer.version = change.version();
  answer.segments_added = change.segments_added();
  answer.is_erased = change.has_erased();
  return answer;
}

std::optional<Answer> LargeCall::Whole(types::LargeRecord* seen) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Refused(access_.status());
  const auto body = view->Body(MainPart(kind_));
  if (!body) return Refused(access_.status());
  Answer answer;
  answer.value = SmallForm(view->record().members, *body);
  if (seen != nullptr) *seen = view->record();
  return answer;
}

std::optional<Answer> LargeCall::All(const Function& function, std::string_view operand) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Refused(access_.status());
  const auto body = view->Body(MainPart(kind_));
  if (!body) return Refused(access_.status());
  const std::string value = SmallForm(view->record().members, *body);
  Scratch scratch;
  const FunctionEffect effect = RunFunction(function, value, operand, scratch);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) {
    return AnswerOf(effect);
  }
  if (effect.action == FunctionEffect::Action::kErase) {
    return LargeCall(access_, key_, kind_, view->record()).Erase(effect);
  }
  const auto before = PiecesOf(kind_, value);
  if (!before) return Refused(types::kNoCollection);
  Change change(access_, key_, kind_, view->record());
  change.RequireRecord();
  return Write(change, *before, effect, scratch);
}

std::optional<Answer> LargeCall::Erase(const FunctionEffect& effect) {
  Batch batch(Batch::Kind::kAtomic);
  batch.Add({.op = Op::kRequireValue,
             .type = static_cast<uint8_t>(types::kLargeForm + kind_),
             .key = key_,
             .other = types::BytesOf(record_)});
  const uint32_t erased = batch.Delete(key_);
  Answer answer = AnswerOf(effect);
  switch (ExecuteChange(access_, batch, &answer.status)) {
    case Change::Result::kAgain:
      return std::nullopt;
    case Change::Result::kRefused:
      return Refused(answer.status);
    case Change::Result::kDone:
      break;
  }
  answer.version = batch.outcome(erased).version;
  answer.is_erased = true;
  return answer;
}

}  // namespace skep::collections

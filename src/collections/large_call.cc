#include "collections/large_call.h"

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "collections/counts.h"
#include "collections/joint_calls.h"
#include "collections/large_list.h"
#include "collections/ranked.h"
#include "collections/set_calls.h"
#include "collections/view.h"
#include "types/hash_fields.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {
namespace {

std::string_view ScoreBytes(const double& score) {
  return {reinterpret_cast<const char*>(&score), sizeof(score)};
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
  if (kind == types::kHash && types::HasDeadlineForm(value)) value.remove_prefix(1);
  if (!TakeVarint(value, &members)) return std::nullopt;
  auto pieces = ReadPieces(FormOf(MainPart(kind), kind), value);
  if (pieces && kind == types::kHash) std::ranges::sort(*pieces, IsBefore);
  return pieces;
}

void CopySettings(const Batch& from, Batch& to) {
  to.set_now_ms(from.now_ms());
  to.set_scan_bytes_max(from.scan_bytes_max());
  to.set_scan_visits_max(from.scan_visits_max());
  to.set_answer_bytes_max(from.answer_bytes_max());
  to.set_returned_bytes_max(from.returned_bytes_max());
}

std::string SmallForm(uint64_t members, std::string_view body, bool has_deadlines) {
  std::string value;
  value.reserve(1 + kVarintBytesMax + body.size());
  if (has_deadlines) value.push_back('\0');
  AppendVarint(value, members);
  value += body;
  return value;
}

std::string_view SmallForm(const Pieces& pieces, Scratch& scratch, bool has_deadlines) {
  const size_t head = VarintBytes(pieces.size()) + (has_deadlines ? 1 : 0);
  types::TextWriter writer(scratch, head + BytesOf(pieces));
  if (has_deadlines) writer.Number(0);
  writer.Number(pieces.size());
  for (const Piece& piece : pieces) writer.Bytes(piece.bytes);
  return writer.bytes();
}

FunctionEffect RunFunction(const Function& function, std::optional<std::string_view> value,
                           std::string_view operand, uint64_t now_ms, Scratch& scratch) {
  const types::FormScope any_size(SIZE_MAX, false);
  return function.body({.value = value,
                        .operand = operand,
                        .scratch = &scratch,
                        .function = &function,
                        .value_bytes_max = kAnswerBytesMax,
                        .now_ms = now_ms});
}

Answer LargeCall::TooLong() {
  Answer answer;
  answer.is_too_long = true;
  return answer;
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

std::optional<Answer> LargeCall::Apply(const Function& function, std::string_view operand) {
  const bool may_be_due = kind_ == types::kHash && record_.last != 0;
  if (function.name.ends_with("-length") && !may_be_due) {
    Answer answer;
    answer.integer = static_cast<int64_t>(record_.members);
    return answer;
  }
  const bool pops_most = SetCalls::IsPop(function) && Ranked::DrawsMost(record_, operand);
  const FunctionCall call = {.function = &function, .operand = operand};
  const bool is_joint = JointCalls::Has(function);
  if (is_joint && JointCalls::IsLong(access_, kind_, record_, call)) return TooLong();
  if (is_joint && !pops_most) {
    std::vector<Answer> answers;
    const bool is_done =
        JointCalls::Of(access_, key_, kind_, record_)->Run(std::span(&call, 1), &answers);
    return is_done ? std::optional(std::move(answers.front())) : std::nullopt;
  }
  if (pops_most) return All(function, operand);
  if (Ranked::Has(function)) return Ranked(access_, key_, kind_, record_).Apply(function, operand);
  if (kind_ == types::kList) return LargeList(access_, key_, record_).Apply(function, operand);
  return All(function, operand);
}

bool LargeCall::ReadsView(const Function& function) {
  return function.reads_only && (Ranked::Has(function) || LargeList::Has(function));
}

bool LargeCall::ReadTogether(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return false;
  Counts counts(*view, kind_);
  Ranked ranked(access_, key_, kind_, view->record());
  LargeList list(access_, key_, record_);
  size_t bytes = 0;
  size_t expected_bytes = 0;
  const size_t work_before = access_.work();
  const size_t expected = Ranked::Draws(*calls.front().function) ? kExpectedDraws : kExpectedCalls;
  const auto done = [&] { return bytes + access_.work() - work_before; };
  for (size_t i = 0; i < calls.size(); ++i) {
    const FunctionCall& call = calls[i];
    if (kind_ != types::kList && i % expected == 0) {
      if (done() > kTogetherBytesMax) break;
      const size_t before = done();
      const auto some = calls.subspan(i, std::min(expected, calls.size() - i));
      if (!ranked.Expect(*view, counts, some)) return false;
      expected_bytes += done() - before;
    }
    auto answer = kind_ == types::kList
                      ? list.ApplyTo(*view, *call.function, call.operand)
                      : ranked.ApplyTo(*view, counts, *call.function, call.operand);
    if (!answer) return false;
    bytes += answer->value.size();
    const bool is_too_long = answer->is_too_long;
    answers->push_back(std::move(*answer));
    if (is_too_long) break;
    if (done() - expected_bytes > kTogetherBytesMax) break;
  }
  return true;
}

// Writes what the function has made of these pieces.
std::optional<Answer> LargeCall::Write(Change& change, const Pieces& before,
                                       const FunctionEffect& effect) {
  const bool erases = effect.action == FunctionEffect::Action::kErase;
  const auto after = PiecesOf(kind_, erases ? std::string_view() : effect.value);
  if (!after) return Refused(types::kNoCollection);
  if (!change.Edit(before, *after)) return Refused(access_.status());
  auto answer = change.Commit();
  if (!answer || !answer->status.ok()) return answer;
  answer->integer = effect.integer;
  answer->value = effect.returned;
  return answer;
}

std::optional<Answer> LargeCall::Whole(types::LargeRecord* seen) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Refused(access_.status());
  const auto body = view->Body(MainPart(kind_));
  if (!body) return Refused(access_.status());
  Answer answer;
  answer.value = SmallForm(view->record().members, *body, HaveDeadlines(kind_, *body));
  if (seen != nullptr) *seen = view->record();
  return answer;
}

std::optional<Answer> LargeCall::All(const Function& function, std::string_view operand) {
  if (access_.IsTooLong(record_, record_.members)) return TooLong();
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Refused(access_.status());
  const auto body = view->Body(MainPart(kind_));
  if (!body) return Refused(access_.status());
  const std::string value = SmallForm(view->record().members, *body, HaveDeadlines(kind_, *body));
  Scratch scratch;
  const FunctionEffect effect = RunFunction(function, value, operand, access_.now_ms(), scratch);
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
  return Write(change, *before, effect);
}

std::optional<Answer> LargeCall::Erase(const FunctionEffect& effect) {
  Batch batch(Batch::Kind::kAtomic);
  batch.Add({.op = Op::kRequireValue,
             .type = static_cast<uint8_t>(types::kLargeForm + kind_),
             .key = key_,
             .other = types::BytesOf(record_)});
  const uint32_t erased = batch.Delete(key_);
  return AnswerOfWrite(access_, batch, [&] {
    Answer answer = AnswerOf(effect);
    answer.version = batch.outcome(erased).version;
    access_.set_deadline_ms(batch.outcome(erased).deadline_ms);
    answer.is_erased = true;
    return answer;
  });
}

}  // namespace skep::collections

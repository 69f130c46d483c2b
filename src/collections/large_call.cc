#include "collections/large_call.h"

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "collections/joint_calls.h"
#include "collections/large_list.h"
#include "collections/ranked.h"
#include "collections/view.h"
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
}

std::string SmallForm(uint64_t members, std::string_view body) {
  std::string value;
  value.reserve(kVarintBytesMax + body.size());
  AppendVarint(value, members);
  value += body;
  return value;
}

std::string_view SmallForm(const Pieces& pieces, Scratch& scratch) {
  types::TextWriter writer(scratch, VarintBytes(pieces.size()) + BytesOf(pieces));
  writer.Number(pieces.size());
  for (const Piece& piece : pieces) writer.Bytes(piece.bytes);
  return writer.bytes();
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

std::optional<Answer> LargeCall::Apply(const Function& function, std::string_view operand) {
  if (function.name.ends_with("-length")) {
    Answer answer;
    answer.integer = static_cast<int64_t>(record_.members);
    return answer;
  }
  if (JointCalls::Has(function)) {
    const FunctionCall call = {.function = &function, .operand = operand};
    std::vector<Answer> answers;
    const bool is_done =
        JointCalls::Of(access_, key_, kind_, record_)->Run(std::span(&call, 1), &answers);
    return is_done ? std::optional(std::move(answers.front())) : std::nullopt;
  }
  if (Ranked::Has(function)) return Ranked(access_, key_, kind_, record_).Apply(function, operand);
  if (kind_ == types::kList) return LargeList(access_, key_, record_).Apply(function, operand);
  return All(function, operand);
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
    answer.is_erased = true;
    return answer;
  });
}

}  // namespace skep::collections

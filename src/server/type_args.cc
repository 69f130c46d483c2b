#include "server/type_args.h"

#include <climits>
#include <vector>

#include "base/check.h"
#include "base/decimal.h"
#include "types/collection.h"

namespace skep {

const Function* TypeFunctionNamed(std::string_view name) {
  const Function* const function = FindFunction(name);
  SKEP_CHECK(function != nullptr);
  return function;
}

Plan PlanOnKey(const Call& call, Batch& batch, const Function* function,
               std::span<const std::string_view> words) {
  batch.Apply(call.arg(1), function, types::JoinTexts(words, batch.scratch()));
  return Plan::Requests();
}

uint32_t AddChained(Batch& batch, std::string_view key, const Function* function, uint32_t of_slot,
                    uint8_t flags) {
  return batch.Add({.op = Op::kApply,
                    .flags = static_cast<uint8_t>(flags | Request::kOperandOfSlot),
                    .limit = of_slot,
                    .key = key,
                    .function = function});
}

size_t CollectionBytesMax(const ServerCall& call) {
  return call.state().keyspaces().has_large_collections(call.session().keyspace)
             ? call.engine().traits().value_bytes_max
             : types::kOneValueBytesMax;
}

Status CollectionSizeError(const ServerCall& call, size_t bytes) {
  const size_t bytes_max = CollectionBytesMax(call);
  if (bytes <= bytes_max) return {};
  return {Code::kTooLarge, "a collection exceeds the maximum size", bytes_max};
}

Plan WrongCount(const Call& call, Batch& batch) {
  return Plan::Error(batch.scratch().Copy(WrongCountError(call.command())));
}

std::string_view ParseDraw(std::span<const std::string_view> args, std::string_view with,
                           DrawArgs& draw) {
  if (args.size() < 3) return {};
  draw.count = ParseInt64(args[2]);
  if (!draw.count) return kNotAnInteger;
  if (*draw.count == INT64_MIN) return kOutOfLongRange;
  if (args.size() == 3) return {};
  if (args.size() > 4 || with.empty() || !EqualsIgnoringCase(args[3], with)) return kSyntaxError;
  draw.with_more = true;
  const bool is_out = *draw.count < -INT64_MAX / 2 || *draw.count > INT64_MAX / 2;
  return is_out ? "ERR value is out of range" : std::string_view();
}

Plan PlanDraw(const ServerCall& call, Batch& batch, const Function* function, int64_t count) {
  const types::DrawRequest request = {.seed = call.state().environment().random.Next(),
                                      .count = count};
  batch.Apply(call.arg(1), function, types::WriteDrawRequest(request, batch.scratch()));
  return Plan::Requests();
}

void FinishText(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  std::string_view bytes = out.value;
  std::optional<std::string_view> text;
  types::TakeMaybeText(bytes, &text);
  if (text) {
    call.reply().Bulk(*text);
  } else {
    call.reply().Null();
  }
}

std::vector<std::string_view> TextsOf(const Outcome& out) {
  std::vector<std::string_view> texts;
  types::TakeTexts(out.value, &texts);
  return texts;
}

void FinishTextArray(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  std::string_view rest = out.value;
  std::string_view text;
  size_t texts = 0;
  while (types::TakeText(rest, &text)) ++texts;
  RespWriter reply = call.reply();
  reply.Array(texts);
  rest = out.value;
  while (types::TakeText(rest, &text)) reply.Bulk(text);
}

void ReplyMaybeTexts(const Call& call, const Outcome& out, size_t texts) {
  if (call.Refused(out)) return;
  RespWriter reply = call.reply();
  reply.Array(texts);
  std::string_view rest = out.value;
  std::optional<std::string_view> text;
  for (; texts > 0; --texts) {
    types::TakeMaybeText(rest, &text);
    if (text) {
      reply.Bulk(*text);
    } else {
      reply.Null();
    }
  }
}

void FinishTextSet(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto texts = TextsOf(out);
  RespWriter reply = call.reply();
  reply.Set(texts.size());
  for (const std::string_view text : texts) reply.Bulk(text);
}

}  // namespace skep

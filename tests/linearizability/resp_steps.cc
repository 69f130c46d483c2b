#include "tests/linearizability/resp_steps.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "server/compare_args.h"

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;
using Type = RespReply::Type;
using Words = std::vector<std::string>;

bool All(std::span<const Step> steps, Action action) {
  return std::ranges::all_of(steps, [&](const Step& step) { return step.action == action; });
}

// The server's clock is the machine's: steps have no deadlines, and no operation tells the time.
bool HasOneCommand(const Step& step) {
  return step.deadline == 0 && !step.floor && !IsCondition(step.action) &&
         step.action != Action::kExpire && step.action != Action::kTick;
}

bool IsPlainPut(const Step& step) { return step.action == Action::kPut && step.deadline == 0; }

// Returns whether the steps are conditions that keys are all absent, or all present, and puts of
// the same keys in the same order.
bool IsPutIfAll(std::span<const Step> steps) {
  if (steps.size() % 2 != 0) return false;
  const auto conditions = steps.first(steps.size() / 2);
  const auto puts = steps.subspan(steps.size() / 2);
  const auto same_key = [](const Step& a, const Step& b) { return a.key == b.key; };
  return (All(conditions, Action::kRequireAbsent) || All(conditions, Action::kRequirePresent)) &&
         std::ranges::all_of(puts, IsPlainPut) && std::ranges::equal(conditions, puts, same_key);
}

bool IsSetAndGet(std::span<const Step> steps) {
  return steps.size() == 2 && steps[0].action == Action::kGet && IsPlainPut(steps[1]) &&
         steps[0].key == steps[1].key;
}

bool FitsInBatch(const Step& step) {
  switch (step.action) {
    case Action::kGet:
    case Action::kDelete:
    case Action::kAddDecimal:
      return true;
    case Action::kPut:
      return step.deadline == 0;
    case Action::kDeleteRange:
      return step.limit == kNoLimit;
    default:
      return IsCondition(step.action) && step.action != Action::kRequireUnchanged;
  }
}

bool IsBatch(std::span<const Step> steps) {
  const auto acts = [](const Step& step) { return !IsCondition(step.action); };
  return std::ranges::all_of(steps, FitsInBatch) && std::ranges::any_of(steps, acts);
}

std::string DigestOfOther(const Step& step) {
  const auto text = DigestText(DigestOf(step.other));
  return {text.data(), text.size()};
}

// Returns SET or DELEX with the value that it compares with.
Words Compared(const Step& step, Words words) {
  const bool differs = step.action == Action::kPutIfDiffers;
  if (step.by_digest) {
    words.insert(words.end(), {differs ? "IFDNE" : "IFDEQ", DigestOfOther(step)});
  } else {
    words.insert(words.end(), {differs ? "IFNE" : "IFEQ", step.other});
  }
  return words;
}

Words RangeCommand(const Step& step) {
  const std::string limit = step.limit == kNoLimit ? "-1" : std::to_string(step.limit);
  if (step.action == Action::kCount) return {"KCOUNT", MinOf(step), MaxOf(step)};
  if (step.action == Action::kDeleteRange) {
    return {"KDELRANGE", MinOf(step), MaxOf(step), "LIMIT", limit};
  }
  Words words = {"KRANGE", MinOf(step), MaxOf(step), "LIMIT", "0", limit};
  if (step.reverse) words.emplace_back("REV");
  if (!step.keys_only) words.emplace_back("WITHVALUES");
  return words;
}

Words OneCommand(const Step& step, bool other) {
  if (IsRange(step.action)) return RangeCommand(step);
  switch (step.action) {
    case Action::kGet:
      return {"GET", step.key};
    case Action::kPut:
      return {"SET", step.key, step.value};
    case Action::kInsert:
      return {"SETNX", step.key, step.value};
    case Action::kUpdate:
      return {"SET", step.key, step.value, "XX"};
    case Action::kCompareAndSet:
      if (!step.by_digest && !other) return {"KCAS", step.key, step.other, step.value};
      return Compared(step, {"SET", step.key, step.value});
    case Action::kPutIfDiffers:
      return Compared(step, {"SET", step.key, step.value});
    case Action::kCompareAndDelete:
      return Compared(step, {"DELEX", step.key});
    case Action::kAddDecimal:
      return {"INCRBY", step.key, step.value};
    case Action::kRename:
      return {step.keep_existing ? "RENAMENX" : "RENAME", step.key, step.other};
    case Action::kWatch:
      return {"WATCH", step.key};
    default:
      return {"DEL", step.key};
  }
}

std::optional<std::string> ValueOf(const RespReply& reply) {
  return reply.type == Type::kBulk ? std::optional(reply.text) : std::nullopt;
}

// Returns whether the error says something about the state.
bool IsOfState(const RespReply& error) {
  return error.text.contains("not an integer") || error.text.contains("overflow");
}

RespSteps::Ending ReadError(const RespReply& error, Step& step) {
  if (step.action == Action::kRename && error.text.contains("no such key")) return {};
  if (!IsOfState(error)) return {.reply = Reply::kRefused};
  return {.applied = false, .culprit = 0};
}

// Reads the reply to KCAS: 1 and nil, or 0 and the value seen.
void ReadKcas(const RespReply& reply, Step& step) {
  if (reply.elements.size() != 2) return;
  step.happened = reply.elements[0].integer == 1;
  step.told = !step.happened;
  if (step.told) step.found = ValueOf(reply.elements[1]);
}

RespSteps::Ending ReadOne(const RespReply& reply, Step& step) {
  if (reply.is_error()) return ReadError(reply, step);
  switch (step.action) {
    case Action::kScan:
      AppendItems(reply.elements, step);
      return {};
    case Action::kGet:
      step.found = ValueOf(reply);
      return {};
    case Action::kCompareAndSet:
      if (reply.type == Type::kArray) return ReadKcas(reply, step), RespSteps::Ending{};
      break;
    default:
      break;
  }
  step.number = reply.integer;
  step.happened = reply.type == Type::kInteger ? reply.integer == 1 : !reply.is_null();
  return {};
}

// Reads one operation's result in the reply to KBATCH.
void ReadResult(const RespReply& result, Step& step) {
  step.found = ValueOf(result);
  step.number = result.integer;
  step.happened = result.integer == 1;
}

// Returns the index behind "ERR KBATCH operation ".
std::optional<uint32_t> OperationIn(std::string_view error) {
  constexpr std::string_view kBefore = "KBATCH operation ";
  const size_t at = error.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  error.remove_prefix(at + kBefore.size());
  uint32_t index = 0;
  std::from_chars(error.data(), error.data() + error.size(), index);
  return index;
}

std::vector<uint32_t> IndexesOf(std::span<const Step> steps, bool conditions) {
  std::vector<uint32_t> indexes;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (IsCondition(steps[i].action) == conditions) indexes.push_back(i);
  }
  return indexes;
}

Words WordsOf(const Step& step) {
  switch (step.action) {
    case Action::kRequireAbsent:
      return {"IF", "ABSENT", step.key};
    case Action::kRequirePresent:
      return {"IF", "PRESENT", step.key};
    case Action::kRequireValue:
      if (step.by_digest) return {"IF", "DIGEST", step.key, DigestOfOther(step)};
      return {"IF", "VALUE", step.key, step.other};
    case Action::kRequireEmpty:
      return {"IF", "EMPTY", MinOf(step), MaxOf(step)};
    case Action::kGet:
      return {"GET", step.key};
    case Action::kPut:
      return {"PUT", step.key, step.value};
    case Action::kAddDecimal:
      return {"INCRBY", step.key, step.value};
    case Action::kDeleteRange:
      return {"DELRANGE", MinOf(step), MaxOf(step)};
    default:
      return {"DELETE", step.key};
  }
}

}  // namespace

std::string MinOf(const Step& step) { return step.key.empty() ? "-" : "[" + step.key; }
std::string MaxOf(const Step& step) { return step.unbounded ? "+" : "(" + step.other; }

void AppendItems(std::span<const RespReply> flat, Step& step) {
  const size_t stride = step.keys_only ? 1 : 2;
  for (size_t i = 0; i + stride <= flat.size(); i += stride) {
    step.items.emplace_back(flat[i].text, step.keys_only ? "" : flat[i + 1].text);
  }
}

RespSteps::RespSteps(std::span<Step> steps, bool other)
    : steps_(steps), other_(other), form_(*FormOf(steps, other)) {}

bool RespSteps::HasCommand(std::span<const Step> steps) { return FormOf(steps, false).has_value(); }

std::optional<RespSteps::Form> RespSteps::FormOf(std::span<const Step> steps, bool other) {
  if (steps.size() == 1) {
    return HasOneCommand(steps[0]) ? std::optional(Form::kOne) : std::nullopt;
  }
  if (IsPutIfAll(steps)) return Form::kPutIfAll;
  if (!other && All(steps, Action::kGet)) return Form::kGets;
  if (!other && std::ranges::all_of(steps, IsPlainPut)) return Form::kPuts;
  if (!other && IsSetAndGet(steps)) return Form::kSetAndGet;
  return IsBatch(steps) ? std::optional(Form::kBatch) : std::nullopt;
}

Words RespSteps::Command() const {
  switch (form_) {
    case Form::kOne:
      return OneCommand(steps_[0], other_);
    case Form::kPutIfAll:
      return PutIfAll();
    case Form::kSetAndGet:
      return {"SET", steps_[0].key, steps_[1].value, "GET"};
    case Form::kBatch:
      return Batch();
    case Form::kGets:
    case Form::kPuts:
      break;
  }
  Words words = {form_ == Form::kGets ? "MGET" : "MSET"};
  for (const Step& step : steps_) {
    words.push_back(step.key);
    if (form_ == Form::kPuts) words.push_back(step.value);
  }
  return words;
}

Words RespSteps::PutIfAll() const {
  const bool absent = steps_[0].action == Action::kRequireAbsent;
  const bool is_msetnx = absent && !other_;
  Words words = {is_msetnx ? "MSETNX" : "MSETEX"};
  if (!is_msetnx) words.push_back(std::to_string(steps_.size() / 2));
  for (const Step& put : steps_.subspan(steps_.size() / 2)) {
    words.push_back(put.key);
    words.push_back(put.value);
  }
  if (!is_msetnx) words.emplace_back(absent ? "NX" : "XX");
  return words;
}

// The command has the conditions first, then the operations, each in their order.
Words RespSteps::Batch() const {
  Words words = {"KBATCH"};
  for (const bool conditions : {true, false}) {
    if (!conditions) words.emplace_back("DO");
    for (const uint32_t i : IndexesOf(steps_, conditions)) {
      std::ranges::move(WordsOf(steps_[i]), std::back_inserter(words));
    }
  }
  return words;
}

RespSteps::Ending RespSteps::Read(const RespReply& reply) const {
  if (form_ == Form::kOne) return ReadOne(reply, steps_[0]);
  if (form_ == Form::kBatch) return ReadBatch(reply);
  if (reply.is_error()) return {.reply = Reply::kRefused};
  if (form_ == Form::kSetAndGet) steps_[0].found = ValueOf(reply);
  if (form_ == Form::kPutIfAll) return {.applied = reply.integer == 1};
  if (form_ == Form::kGets && reply.elements.size() == steps_.size()) {
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].found = ValueOf(reply.elements[i]);
  }
  return {};
}

bool RespSteps::ReadPart(const RespReply& reply) const {
  const Ending ending = Read(reply);
  if (ending.reply != Reply::kAnswered) return false;
  if (ending.applied) return true;
  if (ending.culprit) steps_[*ending.culprit].stops = true;
  return ending.culprit.has_value();
}

RespSteps::Ending RespSteps::ReadBatch(const RespReply& reply) const {
  const std::vector<uint32_t> operations = IndexesOf(steps_, false);
  if (reply.is_error()) {
    const auto index = OperationIn(reply.text);
    if (!IsOfState(reply) || !index || *index >= operations.size()) {
      return {.reply = Reply::kRefused};
    }
    return {.applied = false, .culprit = operations[*index]};
  }
  if (reply.elements.size() != 2) return {.reply = Reply::kRefused};
  const RespReply& told = reply.elements[1];
  if (reply.elements[0].integer == 0) return ReadFailed(told, IndexesOf(steps_, true));
  if (told.elements.size() != operations.size()) return {.reply = Reply::kRefused};
  for (size_t i = 0; i < operations.size(); ++i) {
    ReadResult(told.elements[i], steps_[operations[i]]);
  }
  return {};
}

// Reads the index of the condition that does not hold, its key, and the value seen; the first key
// of a range.
RespSteps::Ending RespSteps::ReadFailed(const RespReply& failed,
                                        std::span<const uint32_t> conditions) const {
  const bool is_known = failed.elements.size() == 3 && failed.elements[0].integer >= 0 &&
                        static_cast<size_t>(failed.elements[0].integer) < conditions.size();
  if (!is_known) return {.reply = Reply::kRefused};
  const uint32_t culprit = conditions[static_cast<size_t>(failed.elements[0].integer)];
  Step& step = steps_[culprit];
  step.told = true;
  step.found = ValueOf(failed.elements[step.action == Action::kRequireEmpty ? 1 : 2]);
  return {.applied = false, .culprit = culprit};
}

}  // namespace skep::linearizability

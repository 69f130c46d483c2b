#include "tests/linearizability/resp_client.h"

#include <algorithm>

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;
using Type = RespReply::Type;

bool All(std::span<const Step> steps, Action action) {
  return std::ranges::all_of(steps, [&](const Step& step) { return step.action == action; });
}

// The server's clock is the machine's: no deadlines, nobody tells the time.
bool HasCommand(const Step& step) {
  return step.deadline == 0 && !step.begins_part && !step.floor && !step.keep_existing &&
         !IsComparison(step.action) && step.action != Action::kExpire &&
         step.action != Action::kWatch && step.action != Action::kTick &&
         (!IsCondition(step.action) || step.action == Action::kRequireAbsent);
}

// As MSETNX: conditions that keys are absent, and puts of the same keys in the same order.
bool IsPutIfAllAbsent(std::span<const Step> steps) {
  if (steps.size() % 2 != 0) return false;
  const auto conditions = steps.first(steps.size() / 2);
  const auto puts = steps.subspan(steps.size() / 2);
  const auto same_key = [](const Step& a, const Step& b) { return a.key == b.key; };
  return All(conditions, Action::kRequireAbsent) && All(puts, Action::kPut) &&
         std::ranges::equal(conditions, puts, same_key);
}

// As SET with GET.
bool IsSetAndGet(std::span<const Step> steps) {
  return steps.size() == 2 && steps[0].action == Action::kGet && steps[1].action == Action::kPut &&
         steps[0].key == steps[1].key;
}

// An error is a refusal that changed nothing. Anything unexpected passes, for the checker to see.
Reply ReplyOf(const std::optional<RespReply>& reply) {
  if (!reply) return Reply::kLost;
  return reply->is_error() ? Reply::kRefused : Reply::kAnswered;
}

std::optional<std::string> ValueOf(const RespReply& reply) {
  return reply.type == Type::kBulk ? std::optional(reply.text) : std::nullopt;
}

std::string MinOf(const Step& step) { return step.key.empty() ? "-" : "[" + step.key; }
std::string MaxOf(const Step& step) { return step.unbounded ? "+" : "(" + step.other; }

// Flat, as RESP2 has it.
void AppendItems(std::span<const RespReply> flat, Step& step) {
  const size_t stride = step.keys_only ? 1 : 2;
  for (size_t i = 0; i + stride <= flat.size(); i += stride) {
    step.items.emplace_back(flat[i].text, step.keys_only ? "" : flat[i + 1].text);
  }
}

}  // namespace

bool RespClient::Supports(const Operation& operation) const {
  if (operation.kind != Operation::Kind::kExecute || operation.now != 0) return false;
  const std::span<const Step> steps = operation.steps;
  if (!std::ranges::all_of(steps, HasCommand)) return false;
  return (steps.size() == 1 && !IsCondition(steps[0].action)) || All(steps, Action::kGet) ||
         All(steps, Action::kPut) || IsPutIfAllAbsent(steps) || IsSetAndGet(steps);
}

Reply RespClient::Perform(Operation& operation) {
  if (operation.steps.size() > 1) return PerformBatch(operation);
  Step& step = operation.steps.front();
  return IsRange(step.action) ? PerformRange(step) : PerformPoint(operation);
}

Reply RespClient::PerformPoint(Operation& operation) {
  Step& step = operation.steps.front();
  std::optional<RespReply> reply;
  switch (step.action) {
    case Action::kAddDecimal:
      return Add(operation);
    case Action::kRename:
      return Rename(step);
    case Action::kGet:
      reply = connection_.Ask({"GET", step.key});
      if (reply) step.found = ValueOf(*reply);
      return ReplyOf(reply);
    case Action::kPut:
      return ReplyOf(connection_.Ask({"SET", step.key, step.value}));
    case Action::kUpdate:
      reply = connection_.Ask({"SET", step.key, step.value, "XX"});
      step.happened = reply && !reply->is_null();
      return ReplyOf(reply);
    case Action::kInsert:
      reply = connection_.Ask({"SETNX", step.key, step.value});
      break;
    default:
      reply = connection_.Ask({"DEL", step.key});
  }
  step.happened = reply && reply->integer == 1;
  return ReplyOf(reply);
}

Reply RespClient::Add(Operation& operation) {
  Step& step = operation.steps.front();
  const auto reply = connection_.Ask({"INCRBY", step.key, step.value});
  if (!reply) return Reply::kLost;
  step.number = reply->integer;
  if (!reply->is_error()) return Reply::kAnswered;
  const bool by_state = reply->text.contains("not an integer") || reply->text.contains("overflow");
  if (!by_state) return Reply::kRefused;
  operation.applied = false;
  operation.culprit = 0;
  return Reply::kAnswered;
}

Reply RespClient::Rename(Step& step) {
  const auto reply = connection_.Ask({"RENAME", step.key, step.other});
  if (!reply) return Reply::kLost;
  step.happened = !reply->is_error();
  const bool is_answer = step.happened || reply->text.contains("no such key");
  return is_answer ? Reply::kAnswered : Reply::kRefused;
}

Reply RespClient::PerformRange(Step& step) {
  const std::string min = MinOf(step);
  const std::string max = MaxOf(step);
  const std::string limit = step.limit == kNoLimit ? "-1" : std::to_string(step.limit);
  if (step.action == Action::kScan) {
    if (step.limit == kNoLimit && ++scans_ % 2 == 0) return ScanInChunks(step);
    std::vector<std::string_view> args = {"KRANGE", min, max, "LIMIT", "0", limit};
    if (step.reverse) args.push_back("REV");
    if (!step.keys_only) args.push_back("WITHVALUES");
    const auto reply = connection_.Ask(args);
    if (reply) AppendItems(reply->elements, step);
    return ReplyOf(reply);
  }
  const bool is_all = step.key.empty() && step.unbounded && step.limit == kNoLimit;
  if (step.action == Action::kDeleteRange && is_all && ++clears_ % 2 == 0) return DeleteAll(step);
  const auto reply = step.action == Action::kCount
                         ? connection_.Ask({"KCOUNT", min, max})
                         : connection_.Ask({"KDELRANGE", min, max, "LIMIT", limit});
  if (reply) step.number = reply->integer;
  return ReplyOf(reply);
}

Reply RespClient::DeleteAll(Step& step) {
  step.number = kNotTold;
  return ReplyOf(connection_.Ask({"FLUSHDB"}));
}

Reply RespClient::ScanInChunks(Step& step) {
  const std::string min = MinOf(step);
  const std::string max = MaxOf(step);
  std::vector<std::string_view> args = {"KSCAN", min, max, "COUNT", "2"};
  if (step.reverse) args.push_back("REV");
  if (!step.keys_only) args.push_back("WITHVALUES");
  auto reply = connection_.Ask(args);
  while (reply && reply->type == Type::kArray && reply->elements.size() == 2) {
    AppendItems(reply->elements[1].elements, step);
    const std::string token = reply->elements[0].text;
    if (token == "0") return Reply::kAnswered;
    reply = connection_.Ask({"KSCAN", "NEXT", token});
  }
  return reply ? Reply::kRefused : Reply::kLost;
}

Reply RespClient::PerformBatch(Operation& operation) {
  std::span<Step> steps = operation.steps;
  if (IsPutIfAllAbsent(steps)) return PutIfAllAbsent(operation);
  if (IsSetAndGet(steps)) return SetAndGet(operation);
  const bool reads = All(steps, Action::kGet);
  std::vector<std::string_view> args = {reads ? "MGET" : "MSET"};
  for (const Step& step : steps) {
    args.push_back(step.key);
    if (!reads) args.push_back(step.value);
  }
  const auto reply = connection_.Ask(args);
  if (reply && reads && reply->elements.size() == steps.size()) {
    for (size_t i = 0; i < steps.size(); ++i) steps[i].found = ValueOf(reply->elements[i]);
  }
  return ReplyOf(reply);
}

Reply RespClient::PutIfAllAbsent(Operation& operation) {
  std::vector<std::string_view> args = {"MSETNX"};
  for (const Step& step : operation.steps) {
    if (step.action != Action::kPut) continue;
    args.push_back(step.key);
    args.push_back(step.value);
  }
  const auto reply = connection_.Ask(args);
  operation.applied = reply && reply->integer == 1;
  return ReplyOf(reply);
}

Reply RespClient::SetAndGet(Operation& operation) {
  Step& get = operation.steps[0];
  const auto reply = connection_.Ask({"SET", get.key, operation.steps[1].value, "GET"});
  if (reply) get.found = ValueOf(*reply);
  return ReplyOf(reply);
}

}  // namespace skep::linearizability

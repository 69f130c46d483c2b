#include "tests/linearizability/resp_client.h"

#include <algorithm>

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;
using Type = RespReply::Type;

// Returns how many steps at the beginning need a watched key to be unchanged.
size_t WatchesOf(std::span<const Step> steps) {
  const auto is_other = [](const Step& s) { return s.action != Action::kRequireUnchanged; };
  return static_cast<size_t>(std::ranges::find_if(steps, is_other) - steps.begin());
}

// Cuts `steps` where parts begin.
template <typename T>
std::vector<std::span<T>> PartsOf(std::span<T> steps) {
  std::vector<std::span<T>> parts;
  while (!steps.empty()) {
    size_t end = 1;
    while (end < steps.size() && !steps[end].begins_part) ++end;
    parts.push_back(steps.first(end));
    steps = steps.subspan(end);
  }
  return parts;
}

bool IsTransaction(std::span<const Step> steps) {
  return steps.front().begins_part || WatchesOf(steps) > 0;
}

}  // namespace

bool RespClient::Supports(const Operation& operation) const {
  if (operation.kind != Operation::Kind::kExecute || operation.now != 0) return false;
  const std::span<const Step> steps = operation.steps;
  const auto queued = steps.subspan(WatchesOf(steps));
  if (!IsTransaction(steps)) {
    return RespSteps::HasCommand(steps) && PartsOf(steps).size() == 1;
  }
  // The command for puts of keys that must all be absent does not tell which key was not.
  const auto may_be_part = [](std::span<const Step> part) {
    return RespSteps::HasCommand(part) && !IsCondition(part.front().action);
  };
  return !queued.empty() && queued.front().begins_part &&
         std::ranges::all_of(PartsOf(queued), may_be_part);
}

Reply RespClient::Perform(Operation& operation) {
  Step& step = operation.steps.front();
  if (IsTransaction(operation.steps)) return Transaction(operation);
  const bool is_unlimited = operation.steps.size() == 1 && step.limit == kNoLimit;
  if (is_unlimited && step.action == Action::kScan && ++scans_ % 2 == 0) return ScanInChunks(step);
  const bool is_all = is_unlimited && step.key.empty() && step.unbounded;
  if (is_all && step.action == Action::kDeleteRange && ++clears_ % 2 == 0) return DeleteAll(step);
  return PerformAlone(operation);
}

std::optional<RespReply> RespClient::Ask(const std::vector<std::string>& words) {
  const std::vector<std::string_view> args(words.begin(), words.end());
  return connection_.Ask(args);
}

Reply RespClient::PerformAlone(Operation& operation) {
  const RespSteps steps(operation.steps, ++asked_ % 2 == 0);
  const auto reply = Ask(steps.Command());
  if (!reply) return Reply::kLost;
  const RespSteps::Ending ending = steps.Read(*reply);
  operation.applied = ending.applied;
  operation.culprit = ending.culprit;
  return ending.reply;
}

Reply RespClient::DeleteAll(Step& step) {
  step.number = kNotTold;
  const auto reply = connection_.Ask({"FLUSHDB"});
  if (!reply) return Reply::kLost;
  return reply->is_error() ? Reply::kRefused : Reply::kAnswered;
}

Reply RespClient::ScanInChunks(Step& step) {
  std::vector<std::string> words = {"KSCAN", MinOf(step), MaxOf(step), "COUNT", "2"};
  if (step.reverse) words.emplace_back("REV");
  if (!step.keys_only) words.emplace_back("WITHVALUES");
  auto reply = Ask(words);
  while (reply && reply->type == Type::kArray && reply->elements.size() == 2) {
    AppendItems(reply->elements[1].elements, step);
    const std::string token = reply->elements[0].text;
    if (token == "0") return Reply::kAnswered;
    reply = connection_.Ask({"KSCAN", "NEXT", token});
  }
  return reply ? Reply::kRefused : Reply::kLost;
}

Reply RespClient::Transaction(Operation& operation) {
  std::vector<RespSteps> parts;
  const auto queued = std::span(operation.steps).subspan(WatchesOf(operation.steps));
  for (const auto part : PartsOf(queued)) parts.emplace_back(part, ++asked_ % 2 == 0);
  if (!connection_.Ask({"MULTI"})) return Reply::kLost;
  for (const RespSteps& part : parts) {
    if (!Ask(part.Command())) return Reply::kLost;
  }
  // EXEC answers with an error if a command was not queued.
  const auto reply = connection_.Ask({"EXEC"});
  if (!reply) return Reply::kLost;
  if (reply->is_error()) return Reply::kRefused;
  return ReadParts(*reply, parts, operation);
}

Reply RespClient::ReadParts(const RespReply& reply, std::span<const RespSteps> parts,
                            Operation& operation) {
  operation.applied = !reply.is_null();
  if (!operation.applied) return Reply::kAnswered;
  // Some parts have been performed, so none can have been refused for a reason outside the state.
  if (reply.elements.size() != parts.size()) return Reply::kLost;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].ReadPart(reply.elements[i])) return Reply::kLost;
  }
  return Reply::kAnswered;
}

}  // namespace skep::linearizability

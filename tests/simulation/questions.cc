#include "tests/simulation/questions.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace skep::simulation {

using linearizability::Action;
using linearizability::Operation;
using linearizability::Step;
using Type = RespReply::Type;

namespace {

// ---- Readers ----

bool ReadFound(const RespReply& reply, std::optional<std::string>& found) {
  if (reply.is_null()) {
    found.reset();
    return true;
  }
  found = reply.text;
  return reply.type == Type::kBulk;
}

bool ReadGet(const RespReply& reply, Operation& operation) {
  return ReadFound(reply, operation.steps[0].found);
}

bool ReadOk(const RespReply& reply, Operation&) {
  return reply.type == Type::kSimple && reply.text == "OK";
}

// Reads "OK", or null if the SET did not happen.
bool ReadWhetherSet(const RespReply& reply, Operation& operation) {
  operation.steps[0].happened = !reply.is_null();
  return reply.is_null() || ReadOk(reply, operation);
}

bool ReadWhether(const RespReply& reply, Operation& operation) {
  operation.steps[0].happened = reply.integer == 1;
  return reply.type == Type::kInteger && (reply.integer == 0 || reply.integer == 1);
}

bool ReadNumber(const RespReply& reply, Operation& operation) {
  operation.steps[0].number = reply.integer;
  return reply.type == Type::kInteger;
}

bool ReadApplied(const RespReply& reply, Operation& operation) {
  operation.applied = reply.integer == 1;
  return reply.type == Type::kInteger && (reply.integer == 0 || reply.integer == 1);
}

bool ReadMget(const RespReply& reply, Operation& operation) {
  if (reply.type != Type::kArray || reply.elements.size() != operation.steps.size()) return false;
  for (size_t i = 0; i < reply.elements.size(); ++i) {
    if (!ReadFound(reply.elements[i], operation.steps[i].found)) return false;
  }
  return true;
}

// Reads items as ReplyItems (src/server/range_task.h) sends them.
bool ReadItems(const RespReply& reply, Step& scan) {
  if (reply.type != Type::kArray) return false;
  const auto& elements = reply.elements;
  if (scan.keys_only) {
    for (const RespReply& key : elements) scan.items.emplace_back(key.text, "");
    return true;
  }
  if (!elements.empty() && elements[0].type == Type::kArray) {
    for (const RespReply& pair : elements) {
      if (pair.elements.size() != 2) return false;
      scan.items.emplace_back(pair.elements[0].text, pair.elements[1].text);
    }
    return true;
  }
  if (elements.size() % 2 != 0) return false;
  for (size_t i = 0; i < elements.size(); i += 2) {
    scan.items.emplace_back(elements[i].text, elements[i + 1].text);
  }
  return true;
}

bool ReadRange(const RespReply& reply, Operation& operation) {
  return ReadItems(reply, operation.steps[0]);
}

// Reads a token or cursor that must say "no more", and the items.
bool ReadOnlyChunk(const RespReply& reply, Operation& operation) {
  return reply.elements.size() == 2 && reply.elements[0].text == "0" &&
         ReadItems(reply.elements[1], operation.steps[0]);
}

bool ReadNeighbour(const RespReply& reply, Operation& operation) {
  Step& scan = operation.steps[0];
  if (reply.is_null()) return true;
  if (scan.keys_only) {
    scan.items.emplace_back(reply.text, "");
    return reply.type == Type::kBulk;
  }
  if (reply.elements.size() != 2) return false;
  scan.items.emplace_back(reply.elements[0].text, reply.elements[1].text);
  return true;
}

bool ReadIncrBy(const RespReply& reply, Operation& operation) {
  if (!reply.is_error()) return ReadNumber(reply, operation);
  operation.applied = false;
  return reply.text == "ERR increment or decrement would overflow";
}

bool IsNoSuchKey(const RespReply& reply) {
  return reply.is_error() && reply.text == "ERR no such key";
}

bool ReadRename(const RespReply& reply, Operation& operation) {
  operation.steps[0].happened = !IsNoSuchKey(reply);
  return IsNoSuchKey(reply) || ReadOk(reply, operation);
}

Operation OneStep(Step step) { return {.steps = {std::move(step)}}; }

std::string After(std::string key) { return key + '\0'; }

// Returns the smallest string above all that begin with the letter.
std::string AfterPrefix(std::string letter) {
  ++letter.back();
  return letter;
}

}  // namespace

Question QuestionMaker::Next() {
  using Make = Question (QuestionMaker::*)();
  constexpr std::array<Make, 20> kMakers = {
      &QuestionMaker::Get,      &QuestionMaker::Get,       &QuestionMaker::Set,
      &QuestionMaker::Set,      &QuestionMaker::Set,       &QuestionMaker::GetDel,
      &QuestionMaker::IncrBy,   &QuestionMaker::Del,       &QuestionMaker::Exists,
      &QuestionMaker::Mset,     &QuestionMaker::Mset,      &QuestionMaker::MsetNx,
      &QuestionMaker::Mget,     &QuestionMaker::Rename,    &QuestionMaker::RenameNx,
      &QuestionMaker::Krange,   &QuestionMaker::Kcount,    &QuestionMaker::Kdelrange,
      &QuestionMaker::OneChunk, &QuestionMaker::Neighbour,
  };
  Question question = (this->*kMakers[random_.Below(kMakers.size())])();
  question.operation.client = client_;
  return question;
}

std::string QuestionMaker::Value() {
  return std::to_string((client_ + 1) * uint64_t{1'000'000} + ++values_);
}

Question QuestionMaker::Get() {
  const std::string key = Key();
  return {{"GET", key}, OneStep({.action = Action::kGet, .key = key}), ReadGet};
}

// Makes SET, SETNX and GETSET in all their forms.
Question QuestionMaker::Set() {
  const std::string key = Key();
  const std::string value = Value();
  Step set{.action = Action::kPut, .key = key, .value = value};
  const uint64_t form = random_.Below(5);
  if (form == 0) {
    set.action = Action::kInsert;
    return {{"SETNX", key, value}, OneStep(set), ReadWhether};
  }
  std::vector<std::string> args = {"SET", key, value};
  if (form == 1) {
    args.push_back("NX");
    set.action = Action::kInsert;
  } else if (form == 2) {
    args.push_back("XX");
    set.action = Action::kUpdate;
  }
  if (random_.Chance(2, 3)) {
    return {args, OneStep(set), set.action == Action::kPut ? ReadOk : ReadWhetherSet};
  }
  if (set.action == Action::kPut && random_.Chance(1, 2)) {
    args[0] = "GETSET";
  } else {
    args.push_back("GET");
  }
  Operation both{.steps = {{.action = Action::kGet, .key = key}, set}};
  return {args, both, [](const RespReply& reply, Operation& operation) {
            const bool found = !reply.is_null();
            Step& step = operation.steps[1];
            step.happened = step.action == Action::kUpdate ? found : !found;
            return ReadGet(reply, operation);
          }};
}

Question QuestionMaker::GetDel() {
  const std::string key = Key();
  Operation both{
      .steps = {{.action = Action::kGet, .key = key}, {.action = Action::kDelete, .key = key}}};
  return {{"GETDEL", key}, both, [](const RespReply& reply, Operation& operation) {
            operation.steps[1].happened = !reply.is_null();
            return ReadGet(reply, operation);
          }};
}

Question QuestionMaker::IncrBy() {
  const std::string key = Key();
  const std::string by =
      random_.Chance(1, 12) ? std::to_string(INT64_MAX) : std::to_string(1 + random_.Below(9));
  return {{"INCRBY", key, by},
          OneStep({.action = Action::kAddDecimal, .key = key, .value = by}),
          ReadIncrBy};
}

// Makes a command on one to three neighbouring keys.
Question QuestionMaker::Neighbours(const char* command, Action action) {
  const uint64_t first = random_.Below(keys_);
  const uint64_t end = std::min<uint64_t>(keys_, first + 1 + random_.Below(3));
  std::vector<std::string> args = {command};
  for (uint64_t i = first; i < end; ++i) args.push_back(KeyOf(i));
  return {args, OneStep({.action = action, .key = KeyOf(first), .other = KeyOf(end)}), ReadNumber};
}

Question QuestionMaker::Del() {
  return Neighbours(random_.Chance(1, 2) ? "DEL" : "UNLINK", Action::kDeleteRange);
}

Question QuestionMaker::Exists() { return Neighbours("EXISTS", Action::kCount); }

Question QuestionMaker::Mset() {
  Question question{{"MSET"}, {}, ReadOk};
  const std::string value = Value();  // the same for all, so that a half can be recognised
  for (uint64_t i = 2 + random_.Below(2); i > 0; --i) {
    const std::string key = Key();
    question.args.insert(question.args.end(), {key, value});
    question.operation.steps.push_back({.action = Action::kPut, .key = key, .value = value});
  }
  return question;
}

Question QuestionMaker::MsetNx() {
  Question question = Mset();
  question.args[0] = "MSETNX";
  question.read = ReadApplied;
  std::vector<Step>& steps = question.operation.steps;
  for (size_t i = steps.size(); i > 0; --i) {
    steps.insert(steps.begin(),
                 {.action = Action::kRequireAbsent, .key = question.args[2 * i - 1]});
  }
  return question;
}

Question QuestionMaker::Mget() {
  Question question{{"MGET"}, {}, ReadMget};
  for (uint64_t i = 1 + random_.Below(3); i > 0; --i) {
    question.args.push_back(Key());
    question.operation.steps.push_back({.action = Action::kGet, .key = question.args.back()});
  }
  return question;
}

Question QuestionMaker::Rename() {
  const std::string from = Key();
  const std::string to = Key();
  return {{"RENAME", from, to},
          OneStep({.action = Action::kRename, .key = from, .other = to}),
          ReadRename};
}

Question QuestionMaker::RenameNx() {
  const std::string from = Key();
  const std::string to = Key();
  const Step source{.action = Action::kRequirePresent, .key = from};
  const Operation move{.steps = {source,
                                 {.action = Action::kRequireAbsent, .key = to},
                                 {.action = Action::kRename, .key = from, .other = to}}};
  const auto read = [source, to](const RespReply& reply, Operation& operation) {
    if (IsNoSuchKey(reply)) {
      operation.steps = {source};
      operation.applied = false;
      return true;
    }
    if (reply.integer == 0) {
      operation.steps = {source, {.action = Action::kRequirePresent, .key = to}};
      return reply.type == Type::kInteger;
    }
    operation.steps.back().happened = true;
    return reply.type == Type::kInteger && reply.integer == 1;
  };
  return {{"RENAMENX", from, to}, move, read};
}

QuestionMaker::Bounds QuestionMaker::SomeBounds() {
  Bounds bounds;
  Step& step = bounds.step;
  if (random_.Chance(1, 6)) {
    step.key = Key();
    step.other = AfterPrefix(step.key);
    bounds.args = {"PREFIX", step.key};
    return bounds;
  }
  const std::string min = Key();
  const std::string max = Key();
  switch (random_.Below(3)) {
    case 0:
      bounds.args.push_back("-");
      break;
    case 1:
      bounds.args.push_back(fmt::format("[{}", min));
      step.key = min;
      break;
    default:
      bounds.args.push_back(fmt::format("({}", min));
      step.key = After(min);
  }
  switch (random_.Below(3)) {
    case 0:
      bounds.args.push_back("+");
      step.unbounded = true;
      break;
    case 1:
      bounds.args.push_back(fmt::format("[{}", max));
      step.other = After(max);
      break;
    default:
      bounds.args.push_back(fmt::format("({}", max));
      step.other = max;
  }
  return bounds;
}

Question QuestionMaker::Krange() {
  Bounds bounds = SomeBounds();
  Step& scan = bounds.step;
  scan.action = Action::kScan;
  scan.keys_only = random_.Chance(1, 4);
  scan.reverse = random_.Chance(1, 3);
  std::vector<std::string> args = std::move(bounds.args);
  args.insert(args.begin(), "KRANGE");
  if (scan.reverse) args.push_back("REV");
  if (random_.Chance(1, 3)) {
    scan.limit = static_cast<uint32_t>(random_.Below(4));
    args.insert(args.end(), {"LIMIT", "0", std::to_string(scan.limit)});
  }
  if (!scan.keys_only) args.push_back("WITHVALUES");
  return {args, OneStep(scan), ReadRange};
}

Question QuestionMaker::Kcount() {
  Bounds bounds = SomeBounds();
  bounds.step.action = Action::kCount;
  bounds.args.insert(bounds.args.begin(), "KCOUNT");
  return {bounds.args, OneStep(bounds.step), ReadNumber};
}

Question QuestionMaker::Kdelrange() {
  Bounds bounds = SomeBounds();
  Step& remove = bounds.step;
  remove.action = Action::kDeleteRange;
  bounds.args.insert(bounds.args.begin(), "KDELRANGE");
  if (random_.Chance(1, 2)) {
    remove.limit = 1 + static_cast<uint32_t>(random_.Below(2));
    bounds.args.insert(bounds.args.end(), {"LIMIT", std::to_string(remove.limit)});
  }
  return {bounds.args, OneStep(remove), ReadNumber};
}

Question QuestionMaker::Neighbour() {
  const std::string key = Key();
  Step scan{.action = Action::kScan, .unbounded = true, .limit = 1};
  std::vector<std::string> args;
  switch (random_.Below(4)) {
    case 0:
      args = {"KFIRST"};
      break;
    case 1:
      args = {"KLAST"};
      scan.reverse = true;
      break;
    case 2:
      args = {"KCEIL", key};
      scan.key = key;
      break;
    default:
      args = {"KFLOOR", key};
      scan.other = After(key);
      scan.unbounded = false;
      scan.reverse = true;
  }
  scan.keys_only = random_.Chance(1, 2);
  if (!scan.keys_only) args.push_back("WITHVALUE");
  return {args, OneStep(scan), ReadNeighbour};
}

Question QuestionMaker::OneChunk() {
  Step scan{.action = Action::kScan, .unbounded = true, .keys_only = true};
  switch (random_.Below(3)) {
    case 0:
      return {{"KEYS", "*"}, OneStep(scan), ReadRange};
    case 1:
      return {{"SCAN", "0", "COUNT", "100"}, OneStep(scan), ReadOnlyChunk};
    default:
      scan.keys_only = false;
      return {{"KSCAN", "-", "+", "WITHVALUES"}, OneStep(scan), ReadOnlyChunk};
  }
}

}  // namespace skep::simulation

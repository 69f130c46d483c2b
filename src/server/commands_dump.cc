// DUMP and RESTORE: a value as bytes that Redis reads and makes (durable/rdb_payload.h).
#include <optional>

#include "base/decimal.h"
#include "durable/rdb_payload.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/expiry_args.h"
#include "server/type_args.h"
#include "types/value_type.h"

namespace skep {
namespace commands_dump {
namespace {

using commands::PlanGet;
using commands::PlanLength;

// ---- DUMP: a slot for each type that the value may have ----

constexpr uint8_t kTypes[] = {types::kString, types::kHash, types::kSet, types::kList,
                              types::kSortedSet};

// Where all values are strings there is nothing of another type to ask for.
std::span<const uint8_t> TypesOf(const ServerCall& call) {
  return std::span(kTypes).first(call.engine().traits().types ? std::size(kTypes) : 1);
}

Plan PlanDump(const ServerCall& call, Batch& batch) {
  for (const uint8_t type : TypesOf(call)) {
    batch.Add({.op = Op::kGet,
               .flags = Request::kIfOfType,
               .type = type,
               .key = call.arg(1),
               .other = {}});
  }
  return Plan::Requests();
}

void FinishDump(const ServerCall& call, const Batch& batch, uint32_t slot) {
  const auto types = TypesOf(call);
  if (call.Refused(batch, slot, types.size())) return;
  for (const uint8_t type : types) {
    const Outcome& out = batch.outcome(slot++);
    if (!out.present) return call.reply().Null();
    if (out.type != type) continue;
    if (type == types::kString) return call.reply().Bulk(durable::DumpString(out.value));
    const auto payload = durable::DumpCollection(type, out.value);
    return payload ? call.reply().Bulk(*payload) : call.Error(types::kNoCollection);
  }
  call.Error(types::kNoCollection);
}

// For a host that has strings only.
void FinishDumpString(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused && out.status.code() == Code::kWrongType) {
    return call.Error("ERR only strings can be dumped");
  }
  if (call.Refused(out)) return;
  out.present ? call.reply().Bulk(durable::DumpString(out.value)) : call.reply().Null();
}

// ---- RESTORE ----

struct RestoreArgs {
  bool replaces = false;
  bool is_absolute = false;
};

// Returns Redis's error text, or an empty one. One of IDLETIME and FREQ may be repeated, as in
// Redis, and excludes the other.
std::string_view ParseRestore(std::span<const std::string_view> options, RestoreArgs& to) {
  bool has_idle_time = false;
  bool has_frequency = false;
  for (size_t i = 0; i < options.size(); ++i) {
    const bool has_value = i + 1 < options.size();
    if (EqualsIgnoringCase(options[i], "replace")) {
      to.replaces = true;
    } else if (EqualsIgnoringCase(options[i], "absttl")) {
      to.is_absolute = true;
    } else if (has_value && !has_frequency && EqualsIgnoringCase(options[i], "idletime")) {
      const auto seconds = ParseInt64(options[++i]);
      if (!seconds) return kNotAnInteger;
      if (*seconds < 0) return "ERR Invalid IDLETIME value, must be >= 0";
      has_idle_time = true;
    } else if (has_value && !has_idle_time && EqualsIgnoringCase(options[i], "freq")) {
      constexpr int64_t kFrequencyMax = 255;
      const auto frequency = ParseInt64(options[++i]);
      if (!frequency) return kNotAnInteger;
      if (*frequency < 0 || *frequency > kFrequencyMax) {
        return "ERR Invalid FREQ value, must be >= 0 and <= 255";
      }
      has_frequency = true;
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

// The request of RESTORE; an error text, with its code, if its lifetime or payload is wrong.
std::string_view MakeRestore(const ServerCall& call, const RestoreArgs& args, Scratch& scratch,
                             Request& request) {
  request = {.op = args.replaces ? Op::kPut : Op::kInsert, .key = call.arg(1), .other = {}};
  const auto lifetime_ms = ParseInt64(call.arg(2));
  if (!lifetime_ms) return kNotAnInteger;
  if (*lifetime_ms < 0) return "ERR Invalid TTL value, must be >= 0";
  const auto value =
      durable::RestoreValue(call.arg(3), {.string_bytes = call.engine().traits().value_bytes_max,
                                          .collection_bytes = CollectionBytesMax(call)});
  if (!value) return scratch.Concat("ERR ", value.error().what());
  request.type = value->type;
  request.value = scratch.Copy(value->bytes);
  if (*lifetime_ms == 0) return {};
  return ParseDeadline(call.arg(2), args.is_absolute ? kUnixMilliseconds : kMilliseconds,
                       PastTimes::kInvalid, call.now(), call.command().name, scratch,
                       request.deadline_ms);
}

// That a key is there is told before what is wrong with the payload, as in Redis.
Plan AddRestore(const ServerCall& call, Batch& batch) {
  RestoreArgs args;
  const std::string_view error = ParseRestore(call.args().subspan(4), args);
  if (!error.empty()) return Plan::Error(error);
  Request request;
  const std::string_view problem = MakeRestore(call, args, batch.scratch(), request);
  if (problem.empty()) {
    batch.Add(request);
    return Plan::Requests();
  }
  return args.replaces ? Plan::Error(problem) : PlanLength(call, batch);
}

// A collection is stored by an atomic batch, which makes it a large one if it has to be.
Plan PlanRestore(const ServerCall& call, Batch& batch) {
  const bool may_be_collection = !call.arg(3).empty() && call.arg(3)[0] != 0;
  if (may_be_collection && batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  return AddRestore(call, batch);
}

void FinishRestore(const ServerCall& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const bool is_wrong = batch.requests()[slot].op == Op::kGet;
  if (out.verdict == Verdict::kExists || (is_wrong && out.present)) {
    return call.Error("BUSYKEY Target key name already exists.");
  }
  if (!is_wrong) return call.reply().SimpleString("OK");
  RestoreArgs args;
  ParseRestore(call.args().subspan(4), args);
  Scratch scratch;
  Request request;
  call.Error(MakeRestore(call, args, scratch, request));
}

void RunRestore(const ServerCall& call) {
  Batch batch(call.engine().traits().atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
  const Plan plan = AddRestore(call, batch);
  if (plan.kind == Plan::Kind::kError) return call.Error(plan.error);
  call.Execute(batch);
  FinishRestore(call, batch, 0);
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"dump",
     2,
     kReadOnly | kRange | kAtomic | kKeyByKey,
     1,
     1,
     1,
     "generic",
     "2.6.0",
     "key",
     "Returns a value as RESTORE reads it.",
     {PlanGet, PlanDump},
     {FinishDumpString, FinishDump}},
    {"restore", -4, kWrite | kStores, 1, 1, 1, "generic", "2.6.0",
     "key milliseconds payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     "Stores a value that DUMP has returned.", PlanRestore, FinishRestore, RunRestore},
    {"restore-asking", -4, kWrite | kStores, 1, 1, 1, "server", "3.0.0",
     "key milliseconds payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     "Does what RESTORE does.", PlanRestore, FinishRestore, RunRestore},
};

}  // namespace
}  // namespace commands_dump

std::span<const Command> DumpCommands() { return commands_dump::kCommands; }

}  // namespace skep

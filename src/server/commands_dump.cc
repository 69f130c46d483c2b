// DUMP and RESTORE: a value as bytes that Redis reads and makes (durable/rdb_payload.h).
#include <optional>

#include "base/decimal.h"
#include "durable/rdb_payload.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/expiry_args.h"
#include "server/type_args.h"
#include "types/hash_fields.h"
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

// The hash without the fields that are due, with the deadlines of the wall clock; nothing if all
// are due.
std::optional<std::string_view> LiveHash(std::string_view value, const StoreNow& now,
                                         Scratch& scratch) {
  auto fields = types::ReadLiveHash(value, now.ms);
  if (!fields) return value;  // which is then found to be malformed
  if (fields->empty()) return std::nullopt;
  for (types::HashField& field : *fields) field.deadline_ms = now.ToWall(field.deadline_ms);
  return types::WriteHash(*fields, scratch);
}
// The hash with the deadlines of the store's time.
std::string_view InStoreTime(std::string_view value, const StoreNow& now, Scratch& scratch) {
  auto fields = types::ReadHash(value);
  if (!fields) return value;
  for (types::HashField& field : *fields) field.deadline_ms = now.FromWall(field.deadline_ms);
  return types::WriteHash(*fields, scratch);
}

void FinishDump(const ServerCall& call, const Batch& batch, uint32_t slot) {
  const auto types = TypesOf(call);
  if (call.Refused(batch, slot, types.size())) return;
  for (const uint8_t type : types) {
    const Outcome& out = batch.outcome(slot++);
    if (!out.present) return call.reply().Null();
    if (out.type != type) continue;
    if (type == types::kString) return call.reply().Bulk(durable::DumpString(out.value));
    Scratch scratch;
    std::string_view value = out.value;
    if (type == types::kHash && types::HasDeadlineForm(value)) {
      const auto live = LiveHash(value, call.now(), scratch);
      if (!live) return call.reply().Null();
      value = *live;
    }
    const auto payload = durable::DumpCollection(type, value);
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
  if (value->type == types::kHash && types::HasDeadlineForm(request.value)) {
    request.value = InStoreTime(request.value, call.now(), scratch);
  }
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

// ---- MIGRATE

// MIGRATE host port key database timeout [option ...] [KEYS key ...]: this server connects to no
// other, but answers wrong words, and keys that are not there, as Redis does.
constexpr size_t kMigrateKey = 3;
constexpr size_t kMigrateOptions = 6;

struct MigrateArgs {
  std::span<const std::string_view> keys;
  std::string_view error = {};
};

MigrateArgs ParseMigrate(std::span<const std::string_view> args) {
  MigrateArgs parsed{.keys = args.subspan(kMigrateKey, 1)};
  for (size_t i = kMigrateOptions; i < args.size(); ++i) {
    const size_t more = args.size() - i - 1;
    const bool is_flag =
        EqualsIgnoringCase(args[i], "copy") || EqualsIgnoringCase(args[i], "replace");
    if (is_flag) continue;
    if (EqualsIgnoringCase(args[i], "auth") && more >= 1) {
      i += 1;
    } else if (EqualsIgnoringCase(args[i], "auth2") && more >= 2) {
      i += 2;
    } else if (EqualsIgnoringCase(args[i], "keys")) {
      if (!args[kMigrateKey].empty()) {
        return {.error =
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the "
                    "empty string"};
      }
      parsed.keys = args.subspan(i + 1);
      break;
    } else {
      return {.error = kSyntaxError};
    }
  }
  const bool has_numbers = ParseInt64(args[kMigrateKey + 1]) && ParseInt64(args[kMigrateKey + 2]);
  if (!has_numbers) parsed.error = kNotAnInteger;
  return parsed;
}

Plan PlanMigrate(const Call& call, Batch& batch) {
  const auto [keys, error] = ParseMigrate(call.args());
  if (!error.empty()) return Plan::Error(error);
  for (const std::string_view key : keys) {
    batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  }
  return Plan::Requests();
}

void FinishMigrate(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t keys = ParseMigrate(call.args()).keys.size();
  bool has_key = false;
  for (uint32_t i = slot; i < slot + keys; ++i) {
    if (call.Refused(batch.outcome(i))) return;
    has_key |= batch.outcome(i).present;
  }
  if (!has_key) return call.reply().SimpleString("NOKEY");
  call.Error("ERR MIGRATE: this server connects to no other; use DUMP and RESTORE, or skep-dump");
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"dump",
     2,
     kReadOnly | kRange | kAtomic | kKeyByKey | kWhole,
     1,
     1,
     1,
     "generic",
     "2.6.0",
     "key",
     "Returns a value as RESTORE reads it.",
     {PlanGet, PlanDump},
     {FinishDumpString, FinishDump}},
    {"migrate", -6, kWrite | kRange | kAtomic | kKeyByKey, 3, 3, 1, "generic", "2.6.0",
     "host port key database timeout [COPY] [REPLACE] [AUTH password] [AUTH2 user password] "
     "[KEYS key [key ...]]",
     "Returns an error, or NOKEY if no key is there.", PlanMigrate, FinishMigrate},
    {"restore", -4, kWrite | kStores | kWhole, 1, 1, 1, "generic", "2.6.0",
     "key milliseconds payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     "Stores a value that DUMP has returned.", PlanRestore, FinishRestore, RunRestore},
    {"restore-asking", -4, kWrite | kStores | kWhole, 1, 1, 1, "server", "3.0.0",
     "key milliseconds payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     "Does what RESTORE does.", PlanRestore, FinishRestore, RunRestore},
};

}  // namespace
}  // namespace commands_dump

std::span<const Command> DumpCommands() { return commands_dump::kCommands; }

}  // namespace skep

// Commands about keys as objects: OBJECT, COPY and what there is not between databases.
#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/object_encoding.h"
#include "server/optimistic_write.h"
#include "server/server_call.h"
#include "server/subcommands.h"
#include "types/value_type.h"

namespace skep::commands {
namespace {

constexpr std::string_view kNoFrequency =
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
    "when switching between policies at runtime LRU and LFU data will take some time to adjust.";
constexpr std::string_view kNoIdleTime = "ERR the times of accesses to keys are not kept";

constexpr Subcommand kObjectSubcommands[] = {
    {"encoding", 3, "<key>",
     "Return how Redis would keep the value if it were stored anew: int, embstr, raw, listpack, "
     "intset, hashtable, quicklist or skiplist.",
     nullptr, 2},
    {"freq", 3, "<key>", "Return an error: accesses are not counted.", nullptr, 2},
    {"idletime", 3, "<key>", "Return an error: the times of accesses are not kept.", nullptr, 2},
    {"refcount", 3, "<key>", "Return 1: a value belongs to its key alone.", nullptr, 2},
};

constexpr std::string_view kNoSuchDatabase = "ERR DB index is out of range";
constexpr std::string_view kSameObjects = "ERR source and destination objects are the same";

struct CopyArgs {
  bool replaces = false;
  std::optional<int64_t> keyspace;
};

// Returns Redis's error text, or an empty one. `keyspaces`: how many there are.
std::string_view ParseCopy(std::span<const std::string_view> options, uint32_t keyspaces,
                           CopyArgs& to) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (EqualsIgnoringCase(options[i], "replace")) {
      to.replaces = true;
    } else if (EqualsIgnoringCase(options[i], "db") && i + 1 < options.size()) {
      to.keyspace = ParseInt64(options[++i]);
      if (!to.keyspace) return kNotAnInteger;
      if (*to.keyspace < INT_MIN || *to.keyspace > INT_MAX) {
        return "ERR value is out of range, value must between -2147483648 and 2147483647";
      }
      if (*to.keyspace < 0 || *to.keyspace >= keyspaces) return kNoSuchDatabase;
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

// Reads the value of a key, whatever its type, at one instant. Returns false, with the error sent,
// if it cannot.
bool ReadAnyValue(const ServerCall& call, std::string_view key, Batch& read) {
  for (int attempt = 0; attempt < kOptimisticAttemptsMax; ++attempt) {
    Batch look;
    look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
    call.Execute(look);
    if (call.Refused(look)) return false;
    read.Clear();
    read.set_answer_bytes_max(call.AnswerBytesMax());
    read.Add({.op = Op::kGet, .type = look.outcome(0).type, .key = key});
    call.Execute(read);
    const Outcome& out = read.outcome(0);
    const bool has_other_type =
        out.verdict == Verdict::kRefused && out.status.code() == Code::kWrongType;
    if (!has_other_type) return !call.Refused(out);
  }
  call.Error(kWrittenAllTheTime);
  return false;
}

// Whether the key is there now; nullopt, with the error sent, if that cannot be told.
std::optional<bool> IsPresentIn(const ServerCall& call, uint32_t keyspace, std::string_view key) {
  Session& session = call.session();
  const uint32_t own = std::exchange(session.keyspace, keyspace);
  Batch look;
  look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  call.Execute(look);
  session.keyspace = own;
  if (call.Refused(look)) return std::nullopt;
  return look.outcome(0).present;
}

// Copies a value that the key has had at one instant to another keyspace at a later one: keyspaces
// have no instants in common.
void CopyToKeyspace(const ServerCall& call, uint32_t keyspace, bool replaces) {
  Batch read;
  if (!ReadAnyValue(call, call.arg(1), read)) return;
  const Outcome& found = read.outcome(0);
  if (!found.present) return call.reply().Integer(0);
  Session& session = call.session();
  const uint32_t own = std::exchange(session.keyspace, keyspace);
  Batch write(call.engine().traits().atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
  write.Add({.op = replaces ? Op::kPut : Op::kInsert,
             .type = found.type,
             .key = call.arg(2),
             .value = found.value,
             .other = {},
             .deadline_ms = found.deadline_ms});
  call.Execute(write);
  session.keyspace = own;
  if (call.Refused(write)) return;
  call.reply().Integer(write.outcome(0).verdict == Verdict::kDone ? 1 : 0);
}

}  // namespace

std::span<const Subcommand> ObjectSubcommands() { return kObjectSubcommands; }

// The encoding of a collection follows from its members, for which its type must be known. A
// transaction, which asks once, gets the first encoding of its type.
Plan PlanObject(const Call& call, Batch& batch) {
  if (call.args().size() != 3) return Plan::Requests();
  const bool is_encoding = EqualsIgnoringCase(call.arg(1), "encoding");
  if (is_encoding && batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .key = call.arg(2)});
  return Plan::Requests();
}

void RunObject(const ServerCall& call) {
  Batch look;
  look.Add({.op = Op::kGet, .flags = Request::kIfOfType, .key = call.arg(2)});
  call.Execute(look);
  const uint8_t type = look.outcome(0).type;
  if (type == kPlainType || types::IsLarge(type)) return FinishObject(call, look, 0);
  Batch read;
  read.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = call.arg(2)});
  call.Execute(read);
  FinishObject(call, read, 0);
}

void FinishObject(const ServerCall& call, const Batch& batch, uint32_t slot) {
  if (call.args().size() < 3) return RunSubcommand(call);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Null();
  if (EqualsIgnoringCase(call.arg(1), "encoding")) {
    return call.reply().Bulk(EncodingOf(out.type, out.value, call.turn().options()));
  }
  if (EqualsIgnoringCase(call.arg(1), "refcount")) return call.reply().Integer(1);
  call.Error(EqualsIgnoringCase(call.arg(1), "freq") ? kNoFrequency : kNoIdleTime);
}

// A key that would not be moved anyway, as it is absent or there is one of its name, is answered as
// by Redis.
void RunMove(const ServerCall& call) {
  const auto to = ParseInt64(call.arg(2));
  if (!to) return call.Error(kNotAnInteger);
  if (*to < 0 || *to >= call.state().keyspaces().count()) return call.Error(kNoSuchDatabase);
  const uint32_t own = call.session().keyspace;
  if (*to == own) return call.Error(kSameObjects);
  const auto source = IsPresentIn(call, own, call.arg(1));
  if (!source) return;
  const auto target = IsPresentIn(call, static_cast<uint32_t>(*to), call.arg(1));
  if (!target) return;
  if (!*source || *target) return call.reply().Integer(0);
  call.Error(
      "ERR MOVE: nothing happens in two databases at one instant; use COPY with DB, and DEL");
}

void RunSwapDb(const ServerCall& call) {
  const auto first = ParseInt64(call.arg(1));
  if (!first) return call.Error("ERR invalid first DB index");
  const auto second = ParseInt64(call.arg(2));
  if (!second) return call.Error("ERR invalid second DB index");
  const int64_t count = call.state().keyspaces().count();
  if (std::min(*first, *second) < 0 || std::max(*first, *second) >= count) {
    return call.Error(kNoSuchDatabase);
  }
  if (*first == *second) return call.reply().SimpleString("OK");
  call.Error("ERR SWAPDB: nothing happens in two databases at one instant");
}

void RunCopy(const ServerCall& call) {
  CopyArgs args;
  const std::string_view error =
      ParseCopy(call.args().subspan(3), call.state().keyspaces().count(), args);
  if (!error.empty()) return call.Error(error);
  if (args.keyspace && *args.keyspace != call.session().keyspace) {
    if (call.rehearses()) return call.Error("ERR COPY: a transaction is about one database");
    return CopyToKeyspace(call, static_cast<uint32_t>(*args.keyspace), args.replaces);
  }
  const std::string_view from = call.arg(1);
  const std::string_view to = call.arg(2);
  if (from == to) return call.Error(kSameObjects);
  const auto make = [&](const Batch& read, Batch& write) {
    const Outcome& found = read.outcome(0);
    if (!found.present) return;
    write.Add({.op = args.replaces ? Op::kPut : Op::kInsert,
               .type = found.type,
               .key = to,
               .value = write.scratch().Copy(found.value),
               .other = {},
               .deadline_ms = found.deadline_ms});
  };
  Batch write(Batch::Kind::kAtomic);
  if (!WriteIfUnchanged(call, std::span(&from, 1), ValuesOf::kAnyTypes, make, write)) return;
  const bool has_stored = write.size() == 2 && write.outcome(1).verdict == Verdict::kDone;
  call.reply().Integer(has_stored ? 1 : 0);
}

}  // namespace skep::commands

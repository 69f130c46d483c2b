// Commands about single keys as objects: OBJECT, COPY.
#include <climits>
#include <optional>

#include "base/decimal.h"
#include "server/commands.h"
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

// How Redis keeps its large collections of this type.
std::string_view LargeEncodingOf(uint8_t type) {
  switch (types::KindOf(type)) {
    case types::kList:
      return "quicklist";
    case types::kSortedSet:
      return "skiplist";
    default:
      return "hashtable";
  }
}

// How Redis would keep a value that SET has stored; a collection in one value is kept as its
// smallest forms are.
std::string_view EncodingOf(std::string_view value, uint8_t type) {
  constexpr size_t kEmbeddedBytesMax = 44;
  if (types::IsLarge(type)) return LargeEncodingOf(type);
  if (type != kPlainType) return "listpack";
  if (value.size() <= kDecimalBytesMax && ParseInt64(value)) return "int";
  return value.size() <= kEmbeddedBytesMax ? "embstr" : "raw";
}

constexpr Subcommand kObjectSubcommands[] = {
    {"encoding", 3, "<key>",
     "Return how Redis would keep the value: int, embstr or raw; listpack; or, for a large "
     "collection, hashtable, skiplist or quicklist.",
     nullptr},
    {"freq", 3, "<key>", "Return an error: accesses are not counted.", nullptr},
    {"idletime", 3, "<key>", "Return an error: the times of accesses are not kept.", nullptr},
    {"refcount", 3, "<key>", "Return 1: a value belongs to its key alone.", nullptr},
};

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
      if (*to.keyspace < 0 || *to.keyspace >= keyspaces) return "ERR DB index is out of range";
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

}  // namespace

std::span<const Subcommand> ObjectSubcommands() { return kObjectSubcommands; }

Plan PlanObject(const Call& call, Batch& batch) {
  if (call.args().size() == 3) {
    batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .key = call.arg(2)});
  }
  return Plan::Requests();
}

void FinishObject(const ServerCall& call, const Batch& batch, uint32_t slot) {
  if (call.args().size() < 3) return RunSubcommand(call);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Null();
  if (EqualsIgnoringCase(call.arg(1), "encoding")) {
    return call.reply().Bulk(EncodingOf(out.value, out.type));
  }
  if (EqualsIgnoringCase(call.arg(1), "refcount")) return call.reply().Integer(1);
  call.Error(EqualsIgnoringCase(call.arg(1), "freq") ? kNoFrequency : kNoIdleTime);
}

void RunCopy(const ServerCall& call) {
  CopyArgs args;
  const std::string_view error =
      ParseCopy(call.args().subspan(3), call.state().keyspaces().count(), args);
  if (!error.empty()) return call.Error(error);
  if (args.keyspace.value_or(call.session().keyspace) != call.session().keyspace) {
    return call.Error("ERR COPY to another database: nothing happens in two at one instant");
  }
  const std::string_view from = call.arg(1);
  const std::string_view to = call.arg(2);
  if (from == to) return call.Error("ERR source and destination objects are the same");
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

// Commands about HyperLogLogs: PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST. The functions that do
// their work are in types/hyperloglog.h.
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "base/ascii.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/type_args.h"
#include "types/hyperloglog.h"

namespace skep {
namespace commands_hyperloglog {
namespace {

const Function* const kAdd = TypeFunctionNamed("hll-add");
const Function* const kCount = TypeFunctionNamed("hll-count");
const Function* const kUnion = TypeFunctionNamed("hll-union");
const Function* const kStore = TypeFunctionNamed("hll-store");
const Function* const kDense = TypeFunctionNamed("hll-dense");
const Function* const kRuns = TypeFunctionNamed("hll-runs");

Plan PlanAdd(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kAdd, call.args().subspan(2));
}

// Adds requests that unite the keys' registers; the last slot returns them.
uint32_t AddUnion(Batch& batch, std::span<const std::string_view> keys) {
  uint32_t slot = batch.Apply(keys[0], kUnion, {});
  for (const std::string_view key : keys.subspan(1)) slot = AddChained(batch, key, kUnion, slot);
  return slot;
}

Plan PlanCount(const Call& call, Batch& batch) {
  const auto keys = call.args().subspan(1);
  if (keys.size() == 1) {
    batch.Apply(keys[0], kCount, {});
  } else {
    AddUnion(batch, keys);
  }
  return Plan::Requests();
}

Plan PlanMerge(const Call& call, Batch& batch) {
  const uint32_t united = AddUnion(batch, call.args().subspan(1));
  AddChained(batch, call.arg(1), kStore, united);
  return Plan::Requests();
}

// Replies with the error if one of the slots was refused.
bool WasRefused(const Call& call, const Batch& batch, uint32_t slot, size_t count) {
  for (uint32_t i = slot; i < slot + count; ++i) {
    const Outcome& out = batch.outcome(i);
    if (out.verdict != Verdict::kRefused) continue;
    if (out.status.code() == Code::kCorrupt) {
      call.Error("INVALIDOBJ Corrupted HLL object detected");
    } else if (out.status.code() == Code::kWrongType && out.type == kPlainType) {
      call.Error("WRONGTYPE Key is not a valid HyperLogLog string value.");
    } else {
      call.Error(out.status);
    }
    return true;
  }
  return false;
}

void FinishAdd(const Call& call, const Batch& batch, uint32_t slot) {
  if (!WasRefused(call, batch, slot, 1)) call.reply().Integer(batch.outcome(slot).integer);
}

void FinishCount(const Call& call, const Batch& batch, uint32_t slot) {
  const auto keys = static_cast<uint32_t>(call.args().size() - 1);
  if (WasRefused(call, batch, slot, keys)) return;
  call.reply().Integer(batch.outcome(slot + keys - 1).integer);
}

void FinishMerge(const Call& call, const Batch& batch, uint32_t slot) {
  if (!WasRefused(call, batch, slot, call.args().size())) call.reply().SimpleString("OK");
}

// ---- PFDEBUG: what a HyperLogLog has inside, read by a function

enum class Inside : uint8_t { kDecode, kEncoding, kRegisters, kToDense };

std::optional<Inside> InsideNamed(std::string_view word) {
  if (EqualsIgnoringCase(word, "decode")) return Inside::kDecode;
  if (EqualsIgnoringCase(word, "encoding")) return Inside::kEncoding;
  if (EqualsIgnoringCase(word, "getreg")) return Inside::kRegisters;
  if (EqualsIgnoringCase(word, "todense")) return Inside::kToDense;
  return std::nullopt;
}

// As in Redis, an absent key is told before a wrong subcommand.
Plan PlanInside(const Call& call, Batch& batch) {
  const auto inside = InsideNamed(call.arg(1));
  batch.Apply(call.arg(2),
              inside == Inside::kDecode    ? kRuns
              : inside == Inside::kToDense ? kDense
                                           : kUnion,
              {});
  return Plan::Requests();
}

void ReplyRegisters(const Call& call, std::string_view bytes) {
  types::Registers registers;
  std::memcpy(&registers, bytes.data(), sizeof registers);
  RespWriter reply = call.reply();
  reply.Array(registers.values.size());
  for (const uint8_t value : registers.values) reply.Integer(value);
}

void FinishInside(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (WasRefused(call, batch, slot, 1)) return;
  if (!out.present) return call.Error("ERR The specified key does not exist");
  const auto inside = InsideNamed(call.arg(1));
  if (!inside) {
    return call.Error(
        fmt::format("ERR Unknown PFDEBUG subcommand '{}'", call.arg(1).substr(0, 128)));
  }
  if (call.args().size() != 3) {
    return call.Error(
        fmt::format("ERR Wrong number of arguments for the '{}' subcommand", call.arg(1)));
  }
  switch (*inside) {
    case Inside::kDecode:
      if (out.integer == 0) return call.Error("ERR HLL encoding is not sparse");
      return call.reply().Bulk(out.value);
    case Inside::kEncoding:
      return call.reply().SimpleString(out.value[0] != 0 ? "dense" : "sparse");
    case Inside::kRegisters:
      return ReplyRegisters(call, out.value);
    case Inside::kToDense:
      return call.reply().Integer(out.integer);
  }
}

void FinishSelfTest(const Call& call, const Batch&, uint32_t) {
  if (types::PassesSelfTest()) return call.reply().SimpleString("OK");
  call.Error("ERR TESTFAILED the estimates of HyperLogLogs are wrong");
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"pfadd", -2, kWrite | kStores | kFast, 1, 1, 1, "hyperloglog", "2.8.9",
     "key [element [element ...]]", "Adds elements to a HyperLogLog.", PlanAdd, FinishAdd},
    {"pfcount", -2, kReadOnly | kRange | kAtomicKeys, 1, -1, 1, "hyperloglog", "2.8.9",
     "key [key ...]", "Estimates how many elements HyperLogLogs have together.", PlanCount,
     FinishCount},
    {"pfdebug", 3, kWrite | kStores | kAdmin, 2, 2, 1, "hyperloglog", "2.8.9",
     "DECODE | ENCODING | GETREG | TODENSE key",
     "Tells how a HyperLogLog is kept, or makes it dense.", PlanInside, FinishInside},
    {"pfselftest", 1, kAdmin, 0, 0, 0, "hyperloglog", "2.8.9", "",
     "Tests the estimates of HyperLogLogs.", nullptr, FinishSelfTest},
    {"pfmerge", -2, kWrite | kStores | kAtomic, 1, -1, 1, "hyperloglog", "2.8.9",
     "destination [source [source ...]]", "Unites HyperLogLogs.", PlanMerge, FinishMerge},
};

}  // namespace
}  // namespace commands_hyperloglog

std::span<const Command> HyperLogLogCommands() { return commands_hyperloglog::kCommands; }

}  // namespace skep

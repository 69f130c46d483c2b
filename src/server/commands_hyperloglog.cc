// Commands about HyperLogLogs: PFADD, PFCOUNT, PFMERGE. The functions that do their work are in
// types/hyperloglog.h.
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/type_args.h"

namespace skep {
namespace commands_hyperloglog {
namespace {

const Function* const kAdd = TypeFunctionNamed("hll-add");
const Function* const kCount = TypeFunctionNamed("hll-count");
const Function* const kUnion = TypeFunctionNamed("hll-union");
const Function* const kStore = TypeFunctionNamed("hll-store");

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

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"pfadd", -2, kWrite | kStores | kFast, 1, 1, 1, "hyperloglog", "2.8.9",
     "key [element [element ...]]", "Adds elements to a HyperLogLog.", PlanAdd, FinishAdd},
    {"pfcount", -2, kReadOnly | kRange | kAtomicKeys, 1, -1, 1, "hyperloglog", "2.8.9",
     "key [key ...]", "Estimates how many elements HyperLogLogs have together.", PlanCount,
     FinishCount},
    {"pfmerge", -2, kWrite | kStores | kAtomic, 1, -1, 1, "hyperloglog", "2.8.9",
     "destination [source [source ...]]", "Unites HyperLogLogs.", PlanMerge, FinishMerge},
};

}  // namespace
}  // namespace commands_hyperloglog

std::span<const Command> HyperLogLogCommands() { return commands_hyperloglog::kCommands; }

}  // namespace skep

// Commands of the ordered keyspace: ranges, counts, neighbours.
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "server/commands.h"
#include "server/range_options.h"
#include "server/range_task.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

// A range of at most this many items shares the batch of the turn.
constexpr uint64_t kSharedItemsMax = 128;
// TYPE needs a batch that notes effects, which a server's client has none of.
constexpr unsigned kKrangeOptions =
    RangeArgs::kRev | RangeArgs::kLimit | RangeArgs::kWithValues | RangeArgs::kType;

// Reads [WITHVALUE] of KFLOOR and its kin, after the given number of words.
std::optional<bool> ParseWithValue(std::span<const std::string_view> args, size_t words) {
  if (args.size() == words) return false;
  if (args.size() == words + 1 && IsWithValues(args[words])) return true;
  return std::nullopt;
}

Plan PlanNeighbour(const Call& call, Batch& batch, size_t words, const Range& range, bool reverse) {
  const auto with_value = ParseWithValue(call.args(), words);
  if (!with_value) return Plan::Error(kSyntaxError);
  batch.Scan(range, {.limit = 1, .reverse = reverse, .keys_only = !*with_value});
  return Plan::Requests();
}

// How many items of the range KRANGE looks at: all, if it has to find those of a type.
uint64_t WantedItems(const RangeArgs& args) {
  if (args.limit == 0) return 0;
  if (args.type) return UINT64_MAX;
  return args.limit == kNoLimit ? UINT64_MAX : args.offset + args.limit;
}

RangeTask::Query QueryOf(const RangeArgs& args) {
  return {.range = args.range,
          .options = {.limit = args.limit, .reverse = args.reverse, .keys_only = !args.with_values},
          .offset = args.offset,
          .type = args.type};
}

Plan PlanItems(const Call& call, Batch& batch, unsigned options) {
  RangeArgs args;
  const auto error = ParseRangeArgs(call.args(), options, batch.scratch(), args);
  if (!error.empty()) return Plan::Error(error);
  const uint64_t wanted = WantedItems(args);
  if (wanted > kSharedItemsMax && batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  if (args.type) batch.set_notes_effects(true);
  batch.Scan(args.range, {.limit = static_cast<uint32_t>(std::min<uint64_t>(wanted, kNoLimit)),
                          .reverse = args.reverse,
                          .keys_only = !args.with_values});
  return Plan::Requests();
}

}  // namespace

Plan PlanKrange(const Call& call, Batch& batch) {
  return PlanItems(call, batch, kKrangeOptions & ~unsigned{RangeArgs::kType});
}

Plan PlanServerKrange(const ServerCall& call, Batch& batch) {
  return PlanItems(call, batch, kKrangeOptions);
}

void FinishKrange(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  RangeArgs args;
  ParseRangeOptions(call.args(), kKrangeOptions, args);
  if (out.more && out.item_count < WantedItems(args)) return call.Error(kTransactionScanError);
  ReplyWanted(call, batch, slot, QueryOf(args));
}

void RunKrange(const ServerCall& call) {
  RangeArgs args;
  Scratch scratch;
  ParseRangeArgs(call.args(), kKrangeOptions, scratch, args);
  RangeTask::Start(call, QueryOf(args));
}

Plan PlanKcount(const Call& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  RangeArgs args;
  const auto error = ParseRangeArgs(call.args(), 0, batch.scratch(), args);
  if (!error.empty()) return Plan::Error(error);
  batch.Count(args.range, kTransactionScanKeysMax);
  return Plan::Requests();
}

void FinishCount(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (out.more) return call.Error(kTransactionScanError);
  call.reply().Integer(out.integer);
}

void RunKcount(const ServerCall& call) {
  RangeArgs args;
  Scratch scratch;
  const auto error = ParseRangeArgs(call.args(), 0, scratch, args);
  if (!error.empty()) return call.Error(error);
  RangeTask::Start(call, {.range = args.range, .count_only = true});
}

Plan PlanKdelrange(const Call& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  RangeArgs args;
  const auto error = ParseRangeArgs(call.args(), RangeArgs::kLimitCount, batch.scratch(), args);
  if (!error.empty()) return Plan::Error(error);
  batch.DeleteRange(args.range, args.limit);
  return Plan::Requests();
}

void RunKdelrange(const Call& call) {
  RangeArgs args;
  Batch batch;
  const auto error = ParseRangeArgs(call.args(), RangeArgs::kLimitCount, batch.scratch(), args);
  if (!error.empty()) return call.Error(error);
  const uint32_t slot = batch.DeleteRange(args.range, args.limit);
  call.Execute(batch);
  FinishInteger(call, batch, slot);
}

Plan PlanKfloor(const Call& call, Batch& batch) {
  const Range range = Range::Between({}, KeyAfter(call.arg(1), batch.scratch()));
  return PlanNeighbour(call, batch, 2, range, true);
}

Plan PlanKceil(const Call& call, Batch& batch) {
  return PlanNeighbour(call, batch, 2, Range::From(call.arg(1)), false);
}

Plan PlanKfirst(const Call& call, Batch& batch) {
  return PlanNeighbour(call, batch, 1, Range::All(), false);
}

Plan PlanKlast(const Call& call, Batch& batch) {
  return PlanNeighbour(call, batch, 1, Range::All(), true);
}

void FinishNeighbour(const Call& call, const Batch& batch, uint32_t slot) {
  if (call.Refused(batch.outcome(slot))) return;
  const bool with_value = !batch.requests()[slot].has(Request::kKeysOnly);
  const auto items = batch.items(slot);
  RespWriter reply = call.reply();
  if (items.empty()) return with_value ? reply.NullArray() : reply.Null();
  if (with_value) reply.Array(2);
  const Item item = items.front();
  reply.Bulk(item.key);
  if (with_value) reply.Bulk(item.value);
}

}  // namespace skep::commands

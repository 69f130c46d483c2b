// Commands of the ordered keyspace: ranges, counts, neighbours.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/range_args.h"
#include "server/range_task.h"
#include "server/scan_token.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

// A range of at most this many items shares the batch of the turn.
constexpr uint64_t kSharedItemsMax = 128;
constexpr uint32_t kKscanCountDefault = 100;
constexpr uint32_t kKscanCountMax = 16 * 1024;
constexpr size_t kKscanBytesMax = 1 << 20;  // of a chunk
constexpr uint32_t kKscanVisitsMax = 2 * kKscanCountMax;

// Options that a range command may have.
enum RangeOption : unsigned {
  kRev = 1,
  kLimit = 2,
  kLimitCount = 4,
  kWithValues = 8,
  kCount = 16,
  kWithDeadlines = 32,
};

struct RangeArgs {
  Range range;
  bool reverse = false;
  bool with_values = false;
  bool with_deadlines = false;
  uint64_t offset = 0;
  uint32_t limit = kNoLimit;
  uint32_t count = kKscanCountDefault;
};

std::string_view TextOf(Status status, Scratch& scratch) {
  return scratch.Concat("ERR ", status.what());
}

// A count as in LIMIT: negative is no limit.
uint32_t LimitOf(int64_t count) {
  return count < 0 ? kNoLimit : static_cast<uint32_t>(std::min<int64_t>(count, kNoLimit - 1));
}

// Commands that answer one key are documented with WITHVALUE, the others with WITHVALUES. All take
// both.
bool IsWithValues(std::string_view word) {
  return EqualsIgnoringCase(word, "withvalue") || EqualsIgnoringCase(word, "withvalues");
}

// Reads one option at args[i] and moves i behind it. Returns an error text, or an empty one.
std::string_view ParseRangeOption(std::span<const std::string_view> args, size_t& i,
                                  unsigned allowed, RangeArgs& out) {
  const std::string_view name = args[i++];
  const size_t left = args.size() - i;
  if ((allowed & kRev) != 0 && EqualsIgnoringCase(name, "rev")) {
    out.reverse = true;
    return {};
  }
  if ((allowed & kWithValues) != 0 && IsWithValues(name)) {
    out.with_values = true;
    return {};
  }
  if ((allowed & kWithDeadlines) != 0 && EqualsIgnoringCase(name, "withdeadlines")) {
    out.with_deadlines = true;
    return {};
  }
  if ((allowed & kLimit) != 0 && EqualsIgnoringCase(name, "limit") && left >= 2) {
    const auto offset = ParseInt64(args[i++]);
    const auto count = ParseInt64(args[i++]);
    if (!offset || !count) return kNotAnInteger;
    out.limit = *offset < 0 ? 0 : LimitOf(*count);  // a negative offset gives nothing, as in Redis
    out.offset = static_cast<uint64_t>(std::max<int64_t>(*offset, 0));
    return {};
  }
  const bool limit = (allowed & kLimitCount) != 0 && EqualsIgnoringCase(name, "limit");
  const bool count = (allowed & kCount) != 0 && EqualsIgnoringCase(name, "count");
  if ((limit || count) && left >= 1) {
    const auto number = ParseInt64(args[i++]);
    if (!number) return kNotAnInteger;
    if (limit) {
      out.limit = LimitOf(*number);
    } else if (*number < 1) {
      return kSyntaxError;
    } else {
      out.count = static_cast<uint32_t>(std::min<int64_t>(*number, kKscanCountMax));
    }
    return {};
  }
  return kSyntaxError;
}

// Reads NAME (min max | PREFIX p) option... Returns an error text, or an empty one.
std::string_view ParseRangeArgs(std::span<const std::string_view> args, unsigned allowed,
                                Scratch& scratch, RangeArgs& out) {
  const auto range = ParseRangeWords(args[1], args[2], scratch);
  if (!range) return TextOf(range.error(), scratch);
  out.range = *range;
  for (size_t i = 3; i < args.size();) {
    if (const auto error = ParseRangeOption(args, i, allowed, out); !error.empty()) return error;
  }
  return {};
}

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

// A KSCAN in progress: the rest of it, and the version that it reads.
struct PinnedScan {
  KeyScan scan;
  std::shared_ptr<const Snapshot> pin;
};

// Begins a KSCAN; nullopt if an error was sent.
std::optional<PinnedScan> BeginKscan(const ServerCall& call) {
  Scratch scratch;
  RangeArgs args;
  const auto error =
      ParseRangeArgs(call.args(), kRev | kCount | kWithValues | kWithDeadlines, scratch, args);
  if (!error.empty()) {
    call.Error(error);
    return std::nullopt;
  }
  Engine& engine = call.engine();
  if (!engine.traits().ordered) {
    call.Error(Status(Code::kNotSupported, "this engine has no order"));
    return std::nullopt;
  }
  auto pinned = PinRange(call);
  if (!pinned) {
    call.Error(pinned.error());
    return std::nullopt;
  }
  return PinnedScan{.scan = {.keyspace = call.session().keyspace,
                             .version = pinned->ref().version,
                             .now_ms = pinned->ref().now_ms,
                             .lo = std::string(args.range.lo),
                             .hi = std::string(args.range.hi),
                             .unbounded = args.range.unbounded,
                             .options = {.limit = args.count,
                                         .reverse = args.reverse,
                                         .keys_only = !args.with_values},
                             .with_deadlines = args.with_deadlines},
                    .pin = std::make_shared<const Snapshot>(std::move(*pinned))};
}

// Finds the scan of a KSCAN NEXT; nullopt if an error was sent.
std::optional<PinnedScan> FindKscan(const ServerCall& call) {
  if (call.args().size() != 3) {
    call.Error(kSyntaxError);
    return std::nullopt;
  }
  auto scan = ReadScanToken(call.arg(2), call.state().token_secret());
  if (!scan) {
    call.Error("ERR invalid token: this server has not given it; begin the scan again");
    return std::nullopt;
  }
  if (scan->keyspace != call.session().keyspace) {
    call.Error("ERR invalid token: it belongs to another database");
    return std::nullopt;
  }
  const auto pin =
      call.state().key_scans().Find(scan->number, call.monotonic_ms(), call.session().info->id);
  if (!pin) {
    call.Error(
        "SNAPSHOTTOOOLD the scan has ended, has expired or had to make room; begin it again");
    return std::nullopt;
  }
  call.session().has_scans = true;
  return PinnedScan{.scan = std::move(*scan), .pin = *pin};
}

// The token with which the scan goes on from `bound`.
std::string GoOn(const ServerCall& call, PinnedScan& pinned, std::string_view bound) {
  KeyScan& scan = pinned.scan;
  if (scan.number == 0) {
    call.session().has_scans = true;
    scan.number =
        call.state().key_scans().Put(pinned.pin, 1, call.monotonic_ms(), call.session().info->id);
  }
  (scan.options.reverse ? scan.hi : scan.lo) = bound;
  scan.unbounded = scan.unbounded && !scan.options.reverse;
  return ScanTokenOf(scan, call.state().token_secret());
}

// Replies with the items of a batch's only scan, each with its deadline, -1 if it has none.
void ReplyWithDeadlines(const Call& call, const Batch& batch, bool with_values) {
  RespWriter reply = call.reply();
  const StoreNow now = call.now();
  const size_t fields = with_values ? 3 : 2;
  const bool is_flat = reply.protocol() == 2;
  reply.Array(batch.items(0).size() * (is_flat ? fields : 1));
  auto deadline = batch.effects().begin();
  for (const Item& item : batch.items(0)) {
    if (!is_flat) reply.Array(fields);
    reply.Bulk(item.key);
    if (with_values) reply.Bulk(item.value);
    const bool has_deadline = deadline != batch.effects().end() && deadline->key == item.key;
    reply.Integer(has_deadline ? static_cast<int64_t>(now.ToWall((deadline++)->deadline_ms)) : -1);
  }
}

void ReplyChunk(const ServerCall& call, PinnedScan pinned) {
  const KeyScan& scan = pinned.scan;
  Batch batch;
  batch.set_snapshot({.version = scan.version, .id = pinned.pin->ref().id, .now_ms = scan.now_ms});
  batch.set_scan_bytes_max(kKscanBytesMax);
  batch.set_scan_visits_max(kKscanVisitsMax);
  batch.set_notes_effects(scan.with_deadlines);
  const Range left{.lo = scan.lo, .hi = scan.hi, .unbounded = scan.unbounded};
  const uint32_t slot = batch.Scan(left, scan.options);
  call.Execute(batch);
  const Outcome& out = batch.outcome(slot);
  const bool goes_on = out.verdict != Verdict::kRefused && out.more;
  if (!goes_on) call.state().key_scans().EraseScan(scan.number);
  if (call.Refused(batch)) return;
  // The batch views the bounds, which GoOn changes, but does not read them again.
  const std::string token = goes_on ? GoOn(call, pinned, out.value) : "0";
  RespWriter reply = call.reply();
  reply.Array(2);
  reply.Bulk(token);
  if (scan.with_deadlines) {
    ReplyWithDeadlines(call, batch, !scan.options.keys_only);
  } else {
    ReplyItems(call, batch.items(slot), !scan.options.keys_only);
  }
}

// How many items of the range KRANGE looks at.
uint64_t WantedItems(const RangeArgs& args) {
  if (args.limit == 0) return 0;
  return args.limit == kNoLimit ? UINT64_MAX : args.offset + args.limit;
}

}  // namespace

Plan PlanKrange(const Call& call, Batch& batch) {
  RangeArgs args;
  const auto error =
      ParseRangeArgs(call.args(), kRev | kLimit | kWithValues, batch.scratch(), args);
  if (!error.empty()) return Plan::Error(error);
  const uint64_t wanted = WantedItems(args);
  if (wanted > kSharedItemsMax && batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  batch.Scan(args.range, {.limit = static_cast<uint32_t>(std::min<uint64_t>(wanted, kNoLimit)),
                          .reverse = args.reverse,
                          .keys_only = !args.with_values});
  return Plan::Requests();
}

void FinishKrange(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  RangeArgs args;
  Scratch scratch;
  ParseRangeArgs(call.args(), kRev | kLimit | kWithValues, scratch, args);
  if (out.more && out.item_count < WantedItems(args)) return call.Error(kTransactionScanError);
  ReplyItems(call, batch.items(slot).Without(args.offset), args.with_values);
}

void RunKrange(const ServerCall& call) {
  RangeArgs args;
  Scratch scratch;
  ParseRangeArgs(call.args(), kRev | kLimit | kWithValues, scratch, args);
  RangeTask::Start(
      call,
      {.range = args.range,
       .options = {.limit = args.limit, .reverse = args.reverse, .keys_only = !args.with_values},
       .offset = args.offset});
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
  const auto error = ParseRangeArgs(call.args(), kLimitCount, batch.scratch(), args);
  if (!error.empty()) return Plan::Error(error);
  batch.DeleteRange(args.range, args.limit);
  return Plan::Requests();
}

void RunKdelrange(const Call& call) {
  RangeArgs args;
  Batch batch;
  const auto error = ParseRangeArgs(call.args(), kLimitCount, batch.scratch(), args);
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

void RunKscan(const ServerCall& call) {
  const bool is_next = EqualsIgnoringCase(call.arg(1), "next");
  auto pinned = is_next ? FindKscan(call) : BeginKscan(call);
  if (pinned) ReplyChunk(call, std::move(*pinned));
}

}  // namespace skep::commands

// KSCAN: a scan of one version that the client carries on with tokens.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/commands.h"
#include "server/kscan_token.h"
#include "server/range_options.h"
#include "server/range_task.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

constexpr size_t kKscanBytesMax = 1 << 20;  // of a chunk
constexpr uint32_t kKscanVisitsMax = 2 * kKscanCountMax;
constexpr unsigned kKscanOptions =
    RangeArgs::kRev | RangeArgs::kCount | RangeArgs::kWithValues | RangeArgs::kWithDeadlines;

// A KSCAN in progress: the rest of it, and the version that it reads.
struct PinnedScan {
  KeyScan scan;
  std::shared_ptr<const Snapshot> pin;
};

// Begins a KSCAN; nullopt if an error was sent.
std::optional<PinnedScan> BeginKscan(const ServerCall& call) {
  Scratch scratch;
  RangeArgs args;
  const auto error = ParseRangeArgs(call.args(), kKscanOptions, scratch, args);
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
  auto scan = ReadKscanToken(call.arg(2), call.state().token_secret());
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
  return KscanTokenOf(scan, call.state().token_secret());
}

// Replies with the items of a batch's only scan, each with its deadline, -1 if it has none. The
// value of an item that is no string is nil.
void ReplyWithDeadlines(const Call& call, const Batch& batch, bool with_values) {
  RespWriter reply = call.reply();
  const StoreNow now = call.now();
  const size_t fields = with_values ? 3 : 2;
  const bool is_flat = reply.protocol() == 2;
  reply.Array(batch.items(0).size() * (is_flat ? fields : 1));
  auto effect = batch.effects().begin();
  for (const Item& item : batch.items(0)) {
    if (!is_flat) reply.Array(fields);
    reply.Bulk(item.key);
    const bool has_effect = effect != batch.effects().end() && effect->key == item.key;
    const Effect more = has_effect ? *effect++ : Effect();
    if (with_values && more.type == kPlainType) reply.Bulk(item.value);
    if (with_values && more.type != kPlainType) reply.Null();
    reply.Integer(more.deadline_ms != 0 ? static_cast<int64_t>(now.ToWall(more.deadline_ms)) : -1);
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

}  // namespace

void RunKscan(const ServerCall& call) {
  const bool is_next = EqualsIgnoringCase(call.arg(1), "next");
  auto pinned = is_next ? FindKscan(call) : BeginKscan(call);
  if (pinned) ReplyChunk(call, std::move(*pinned));
}

}  // namespace skep::commands

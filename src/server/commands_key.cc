// Commands about keys, whatever their values.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/item_types.h"
#include "server/range_task.h"
#include "server/scan_args.h"
#include "server/server_call.h"
#include "server/unordered_keys_task.h"
#include "types/value_type.h"

namespace skep::commands {
namespace {

constexpr size_t kScanBytesMax = 1 << 20;
constexpr uint32_t kScanVisitsMax = 16 * 1024;
constexpr std::string_view kNoWalkInTransaction =
    "ERR this database has no order: in a transaction its keys cannot be listed";

// The number of a cursor as Redis reads it, by strtoul: nothing is 0, a minus sign wraps around,
// and a zero byte ends the word.
std::optional<uint64_t> ParseCursor(std::string_view word) {
  word = word.substr(0, word.find('\0'));
  if (word.empty()) return 0;
  const bool is_negative = word.starts_with('-');
  if (is_negative || word.starts_with('+')) word.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return is_negative ? 0 - number : number;
}

void ReplyScan(const Call& call, uint64_t cursor, std::span<const std::string_view> keys) {
  RespWriter reply = call.reply();
  reply.Array(2);
  reply.Bulk(std::to_string(cursor));
  reply.Array(keys.size());
  for (const std::string_view key : keys) reply.Bulk(key);
}

// RENAME and RENAMENX: true if the key was present and the request was not refused; else replies
// with the error.
bool WasMovable(const Call& call, const Outcome& out) {
  if (call.Refused(out)) return false;
  if (out.verdict == Verdict::kAbsent) call.Error("ERR no such key");
  return out.verdict != Verdict::kAbsent;
}

// The range of keys that can match the pattern. `whole`: all of them do.
Range PatternRange(std::string_view pattern, Scratch& scratch, bool* whole) {
  return PrefixRange(scratch.Copy(LiteralPrefix(pattern, whole)), scratch);
}

std::vector<std::string_view> MatchingKeys(const ItemRange& items, std::string_view pattern) {
  std::vector<std::string_view> keys;
  for (const Item& item : items) {
    if (GlobMatch(pattern, item.key)) keys.push_back(item.key);
  }
  return keys;
}

// The keys that SCAN has found of its pattern and type.
std::vector<std::string_view> KeysOfType(const Batch& batch, uint32_t slot, const ScanArgs& scan) {
  if (!scan.type) return MatchingKeys(batch.items(slot), scan.pattern);
  std::vector<std::string_view> keys;
  ItemTypes types(batch, slot);
  for (const Item& item : batch.items(slot)) {
    if (types.IsWanted(item, scan.type) && GlobMatch(scan.pattern, item.key)) {
      keys.push_back(item.key);
    }
  }
  return keys;
}

bool HasOrder(const ServerCall& call) { return call.engine().traits().ordered; }

// Adds the requests of a SCAN.
Plan AddScan(const ServerCall& call, Batch& batch) {
  const auto number = ParseCursor(call.arg(1));
  if (!number) return Plan::Error("ERR invalid cursor");
  ScanArgs scan;
  if (const auto error = ParseScan(call.args().subspan(2), true, scan); !error.empty()) {
    return Plan::Error(error);
  }
  if (!HasOrder(call)) {
    batch.Walk(*number, {.limit = scan.count, .keys_only = true});
    return Plan::Requests();
  }
  bool whole = false;
  Range range = PatternRange(scan.pattern, batch.scratch(), &whole);
  if (*number != 0) {
    const auto from =
        call.state().cursors().Find(*number, call.monotonic_ms(), call.session().info->id);
    if (!from) return Plan::Error("ERR invalid cursor: unknown or expired; start at 0");
    if ((*from)->keyspace != call.session().keyspace) {
      return Plan::Error("ERR invalid cursor: it belongs to another database");
    }
    range.lo = std::max(range.lo, batch.scratch().Copy((*from)->next_key));
  }
  if (scan.type) batch.set_notes_effects(true);
  batch.Scan(range, {.limit = scan.count, .keys_only = true});
  return Plan::Requests();
}

}  // namespace

Plan PlanExists(const Call& call, Batch& batch) {
  const auto keys = call.args().subspan(1);
  for (const std::string_view key : keys) {
    batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key, .other = {}});
  }
  return Plan::Requests();
}

Plan PlanDel(const Call& call, Batch& batch) {
  const auto keys = call.args().subspan(1);
  for (const std::string_view key : keys) batch.Delete(key);
  return Plan::Requests();
}

Plan PlanRename(const Call& call, Batch& batch) {
  batch.Move(call.arg(1), call.arg(2));
  return Plan::Requests();
}

Plan PlanRenameNx(const Call& call, Batch& batch) {
  batch.Move(call.arg(1), call.arg(2), Request::kKeepExisting);
  return Plan::Requests();
}

Plan PlanRandomKey(const ServerCall& call, Batch& batch) {
  batch.Sample(call.state().environment().random.Next());
  return Plan::Requests();
}

void FinishType(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  call.reply().SimpleString(out.present ? types::NameOf(out.type) : "none");
}

void FinishRandomKey(const Call& call, const Batch& batch, uint32_t slot) {
  if (call.Refused(batch.outcome(slot))) return;
  const auto items = batch.items(slot);
  if (items.empty()) return call.reply().Null();
  call.reply().Bulk(items.front().key);
}

// For a command with as many slots as keys.
void FinishDoneCount(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t keys = call.args().size() - 1;
  if (call.Refused(batch, slot, keys)) return;
  int64_t done = 0;
  for (size_t i = 0; i < keys; ++i) {
    if (batch.outcome(slot++).verdict == Verdict::kDone) ++done;
  }
  call.reply().Integer(done);
}

void FinishRename(const Call& call, const Batch& batch, uint32_t slot) {
  if (WasMovable(call, batch.outcome(slot))) call.reply().SimpleString("OK");
}

void FinishRenameNx(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (WasMovable(call, out)) call.reply().Integer(out.verdict == Verdict::kDone ? 1 : 0);
}

Plan PlanKeys(const ServerCall& call, Batch& batch) {
  if (call.arg(1).size() > kPatternBytesMax) return Plan::Error(kPatternTooLong);
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  if (!HasOrder(call)) return Plan::Error(kNoWalkInTransaction);
  bool whole = false;
  batch.Scan(PatternRange(call.arg(1), batch.scratch(), &whole), {.keys_only = true});
  return Plan::Requests();
}

void FinishKeys(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (out.more) return call.Error(kTransactionScanError);
  const auto keys = MatchingKeys(batch.items(slot), call.arg(1));
  call.reply().Array(keys.size());
  for (const std::string_view key : keys) call.reply().Bulk(key);
}

void RunKeys(const ServerCall& call) {
  if (!HasOrder(call)) return UnorderedKeysTask::Start(call, call.arg(1));
  Scratch scratch;
  bool whole = false;
  const Range range = PatternRange(call.arg(1), scratch, &whole);
  RangeTask::Start(call, {.range = range,
                          .options = {.keys_only = true},
                          .pattern = whole ? std::nullopt : std::optional(call.arg(1))});
}

Plan PlanScan(const ServerCall& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  return HasOrder(call) ? AddScan(call, batch) : Plan::Error(kNoWalkInTransaction);
}

void FinishScan(const ServerCall& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  ScanArgs scan;
  ParseScan(call.args().subspan(2), true, scan);
  // Where all values are strings there is nothing of another type to look for.
  const bool has_types = call.engine().traits().types;
  if (!has_types && !scan.WantsType(types::NameOf(kPlainType))) return ReplyScan(call, 0, {});
  const auto keys = KeysOfType(batch, slot, scan);
  if (!HasOrder(call)) return ReplyScan(call, static_cast<uint64_t>(out.integer), keys);
  const uint64_t number = ParseCursor(call.arg(1)).value_or(0);
  auto& cursors = call.state().cursors();
  uint64_t next = 0;
  if (out.more) {
    auto cursor = std::make_shared<ScanCursor>();
    cursor->next_key = out.value;
    cursor->keyspace = call.session().keyspace;
    const size_t bytes = sizeof(ScanCursor) + cursor->next_key.size();
    call.session().has_scans = true;
    next =
        cursors.Put(std::move(cursor), bytes, call.monotonic_ms(), call.session().info->id, number);
  } else if (number != 0) {
    cursors.EraseScan(number);
  }
  ReplyScan(call, next, keys);
}

void RunScan(const ServerCall& call) {
  Batch batch;
  batch.set_scan_bytes_max(kScanBytesMax);
  batch.set_scan_visits_max(kScanVisitsMax);
  if (const Plan plan = AddScan(call, batch); plan.kind == Plan::Kind::kError) {
    return call.Error(plan.error);
  }
  call.Execute(batch);
  FinishScan(call, batch, 0);
}

}  // namespace skep::commands

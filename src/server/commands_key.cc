// Keys, whatever their values.
#include <algorithm>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/range_task.h"
#include "server/server.h"
#include "server/worker.h"

namespace skep::commands {
namespace {

constexpr uint32_t kScanCountDefault = 10;
constexpr uint32_t kScanCountMax = 4096;  // COUNT is a wish
constexpr size_t kScanBytesMax = 1 << 20;
constexpr uint32_t kScanVisitsMax = 16 * 1024;
// Matching takes time with pattern times key.
constexpr size_t kPatternBytesMax = 1024;
constexpr std::string_view kPatternTooLong = "ERR pattern exceeds the maximum size (1024 bytes)";

struct ScanArgs {
  std::string_view pattern = "*";
  uint32_t count = kScanCountDefault;
  bool only_strings = true;  // TYPE string, or none given
};

// SCAN's options; an error text if they are wrong, else empty.
std::string_view ParseScan(std::span<const std::string_view> options, ScanArgs& scan) {
  for (size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) return kSyntaxError;
    const std::string_view value = options[i + 1];
    if (EqualsIgnoringCase(options[i], "match")) {
      scan.pattern = value;
      if (value.size() > kPatternBytesMax) return kPatternTooLong;
    } else if (EqualsIgnoringCase(options[i], "type")) {
      scan.only_strings = EqualsIgnoringCase(value, "string");
    } else if (EqualsIgnoringCase(options[i], "count")) {
      const auto count = ParseInt64(value);
      if (!count) return kNotAnInteger;
      if (*count < 1) return kSyntaxError;
      scan.count = static_cast<uint32_t>(std::min<int64_t>(*count, kScanCountMax));
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

void ReplyScan(const Call& call, uint64_t cursor, std::span<const std::string_view> keys) {
  RespWriter reply = call.reply();
  reply.Array(2);
  reply.Bulk(std::to_string(cursor));
  reply.Array(keys.size());
  for (const std::string_view key : keys) reply.Bulk(key);
}

// RENAME and RENAMENX: true if the key was there and the request was not refused; else the error is
// the reply.
bool WasMovable(const Call& call, const Outcome& out) {
  if (call.Refused(out)) return false;
  if (out.verdict == Verdict::kAbsent) call.Error("ERR no such key");
  return out.verdict != Verdict::kAbsent;
}

}  // namespace

Plan PlanExists(const Call& call, Batch& batch) {
  const auto keys = call.args().subspan(1);
  if (keys.size() > 1 && batch.kind() != Batch::Kind::kAtomic) return Plan::Atomic();
  for (const std::string_view key : keys) {
    batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key, .other = {}});
  }
  return Plan::Requests();
}

Plan PlanDel(const Call& call, Batch& batch) {
  const auto keys = call.args().subspan(1);
  if (keys.size() > 1 && batch.kind() != Batch::Kind::kAtomic) return Plan::Atomic();
  for (const std::string_view key : keys) batch.Delete(key);
  return Plan::Requests();
}

Plan PlanRename(const Call& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Atomic();
  batch.Move(call.arg(1), call.arg(2));
  return Plan::Requests();
}

Plan PlanRenameNx(const Call& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Atomic();
  batch.Move(call.arg(1), call.arg(2), Request::kKeepExisting);
  return Plan::Requests();
}

Plan PlanRandomKey(const Call& call, Batch& batch) {
  batch.Sample(call.worker().random().Next());
  return Plan::Requests();
}

void FinishType(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  call.reply().SimpleString(out.present ? "string" : "none");
}

void FinishRandomKey(const Call& call, const Batch& batch, uint32_t slot) {
  if (call.Refused(batch.outcome(slot))) return;
  const auto items = batch.items(slot);
  if (items.empty()) return call.reply().Null();
  call.reply().Bulk(items[0].key);
}

// Of as many slots as there are keys.
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

void RunKeys(Call& call) {
  const std::string_view pattern = call.arg(1);
  if (pattern.size() > kPatternBytesMax) return call.Error(kPatternTooLong);
  bool whole = false;
  const std::string prefix = LiteralPrefix(pattern, &whole);
  Scratch scratch;
  RangeTask::Start(call, {.range = PrefixRange(prefix, scratch),
                          .options = {.keys_only = true},
                          .pattern = whole ? std::nullopt : std::optional(pattern)});
}

void RunScan(Call& call) {
  const auto number = ParseUint64(call.arg(1));
  if (!number) return call.Error("ERR invalid cursor");
  ScanArgs scan;
  if (const auto error = ParseScan(call.args().subspan(2), scan); !error.empty()) {
    return call.Error(error);
  }
  Worker& worker = call.worker();
  auto& cursors = call.server().cursors();
  bool whole = false;
  const std::string prefix = LiteralPrefix(scan.pattern, &whole);
  Batch batch;
  Range range = PrefixRange(prefix, batch.scratch());
  std::shared_ptr<const ScanCursor> from;
  if (*number != 0) {
    from = cursors.Find(*number, worker.monotonic_ms()).value_or(nullptr);
    if (from == nullptr) return call.Error("ERR invalid cursor: unknown or expired; start at 0");
    if (from->keyspace != call.session().keyspace) {
      return call.Error("ERR invalid cursor: it belongs to another database");
    }
    range.lo = std::max(range.lo, std::string_view(from->next_key));
  }
  if (!scan.only_strings) return ReplyScan(call, 0, {});
  const uint32_t slot = batch.Scan(range, {.limit = scan.count, .keys_only = true});
  batch.set_scan_bytes_max(kScanBytesMax);
  batch.set_scan_visits_max(kScanVisitsMax);
  call.Execute(batch);
  if (call.Refused(batch)) return;

  std::vector<std::string_view> keys;
  for (const Item& item : batch.items(slot)) {
    if (whole || GlobMatch(scan.pattern, item.key)) keys.push_back(item.key);
  }
  uint64_t next = 0;
  if (batch.outcome(slot).more) {
    auto cursor = std::make_shared<ScanCursor>();
    cursor->next_key = batch.outcome(slot).value;
    cursor->keyspace = call.session().keyspace;
    const size_t bytes = sizeof(ScanCursor) + cursor->next_key.size();
    next = cursors.Put(std::move(cursor), bytes, worker.monotonic_ms(), *number);
  } else if (*number != 0) {
    cursors.EraseScan(*number);
  }
  ReplyScan(call, next, keys);
}

}  // namespace skep::commands

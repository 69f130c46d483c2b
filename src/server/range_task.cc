#include "server/range_task.h"

#include <algorithm>

#include "server/glob.h"
#include "server/server_call.h"

namespace skep {
namespace {

// Limits of one chunk, during which other connections wait.
constexpr uint32_t kChunkItems = 512;
constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint32_t kChunkVisits = 4096;

// Whether the item is one of those that a query of this pattern and type asks for. To be called for
// each item of a scan, in their order.
bool IsWanted(const std::optional<std::string_view>& pattern,
              const std::optional<std::string_view>& type, const Item& item, ItemTypes& types) {
  return types.IsWanted(item, type) && (!pattern || GlobMatch(*pattern, item.key));
}

bool TrySend(const ServerCall& call, const RangeTask::Query& query) {
  Batch batch;
  ScanOptions chunk = query.options;
  const uint64_t wanted =
      query.options.limit == kNoLimit ? kNoLimit : query.offset + query.options.limit;
  chunk.limit = query.has_filter() ? kChunkItems
                                   : static_cast<uint32_t>(std::min<uint64_t>(wanted, kChunkItems));
  chunk.keys_only = query.options.keys_only;
  batch.set_notes_effects(query.type.has_value());
  batch.set_scan_bytes_max(kChunkBytes);
  batch.set_scan_visits_max(kChunkVisits);
  const uint32_t slot = batch.Scan(query.range, chunk);
  call.Execute(batch);
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) {
    call.Error(out.status);
    return true;
  }
  if (out.more && (out.item_count < wanted || query.has_filter())) return false;
  ReplyWanted(call, batch, slot, query);
  return true;
}

bool TryCount(const ServerCall& call, const RangeTask::Query& query) {
  Batch batch;
  const uint32_t slot = batch.Count(query.range, kChunkVisits);
  call.Execute(batch);
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) {
    call.Error(out.status);
    return true;
  }
  if (out.more) return false;
  call.reply().Integer(out.integer);
  return true;
}

}  // namespace

void ReplyItemsHead(const Call& call, size_t items, bool with_values) {
  const bool flat_pairs = with_values && call.session().protocol == 2;
  call.reply().Array(flat_pairs ? 2 * items : items);
}

void ReplyItem(RespWriter reply, const Item& item, bool with_values) {
  if (with_values && reply.protocol() == 3) reply.Array(2);
  reply.Bulk(item.key);
  if (with_values) reply.Bulk(item.value);
}

void ReplyItems(const Call& call, const ItemRange& items, bool with_values) {
  ReplyItemsHead(call, items.size(), with_values);
  for (const Item& item : items) ReplyItem(call.reply(), item, with_values);
}

void ReplyWanted(const Call& call, const Batch& batch, uint32_t slot,
                 const RangeTask::Query& query) {
  const bool with_values = !query.options.keys_only;
  if (!query.has_filter()) {
    return ReplyItems(call, batch.items(slot).Without(query.offset), with_values);
  }
  std::vector<Item> wanted;
  ItemTypes types(batch, slot);
  for (const Item& item : batch.items(slot)) {
    if (IsWanted(query.pattern, query.type, item, types)) wanted.push_back(item);
  }
  const size_t first = std::min<size_t>(query.offset, wanted.size());
  const size_t count = std::min<size_t>(query.options.limit, wanted.size() - first);
  ReplyItemsHead(call, count, with_values);
  for (const Item& item : std::span(wanted).subspan(first, count)) {
    ReplyItem(call.reply(), item, with_values);
  }
}

Result<Snapshot> PinRange(const ServerCall& call) {
  Engine& engine = call.engine();
  if (!engine.traits().snapshots) return Snapshot();
  const auto ref = engine.OpenSnapshot(call.time_ms());
  if (!ref) return Fail(ref.error());
  return Snapshot(engine, *ref);
}

void RangeTask::Start(const ServerCall& call, const Query& query) {
  if (query.count_only ? TryCount(call, query) : TrySend(call, query)) return;
  auto pinned = PinRange(call);
  if (!pinned) return call.Error(pinned.error());
  MemoryBudget& budget = call.state().keyspaces().budget();
  call.Start(std::unique_ptr<Task>(new RangeTask(std::move(*pinned), budget, query)));
}

RangeTask::RangeTask(Snapshot snapshot, MemoryBudget& budget, const Query& query)
    : snapshot_(std::move(snapshot)),
      ref_(snapshot_.ref()),
      is_pinned_(snapshot_.valid()),
      first_lo_(query.range.lo),
      first_hi_(query.range.hi),
      first_unbounded_(query.range.unbounded),
      options_(query.options),
      offset_(query.offset),
      count_only_(query.count_only),
      pattern_(query.pattern),
      type_(query.type),
      lo_(first_lo_),
      hi_(first_hi_),
      unbounded_(first_unbounded_),
      collected_(budget) {}

bool RangeTask::Step(const ServerCall& call) {
  if (!is_pinned_ && !count_only_) {
    return sending_ ? collected_.Send(call) : StepCollect(call);
  }
  if (sending_) return StepSend(call);
  // A count that can stop early or that looks at keys has to scan.
  const bool scans = pattern_ || type_ || options_.limit != kNoLimit;
  return scans ? StepCountByScan(call) : StepCount(call);
}

bool RangeTask::StepCount(const ServerCall& call) {
  Batch batch;
  batch.set_snapshot(ref_);
  const uint32_t slot = batch.Count(left(), kChunkVisits);
  call.Execute(batch);
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) return Fail(call, out.status);
  matched_ += static_cast<uint64_t>(out.integer);
  if (!out.more) return BeginSending(call);
  lo_.assign(out.value);
  return true;
}

bool RangeTask::StepCountByScan(const ServerCall& call) {
  Batch batch;
  const uint32_t slot = Scan(call, batch, true);
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) return Fail(call, out.status);
  ItemTypes types(batch, slot);
  for (const Item& item : batch.items(slot)) matched_ += Matches(item, types) ? 1 : 0;
  const bool enough = options_.limit != kNoLimit && matched_ >= offset_ + options_.limit;
  if (!out.more || enough) return BeginSending(call);
  GoOnFrom(batch.outcome(slot).value);
  return true;
}

bool RangeTask::BeginSending(const ServerCall& call) {
  if (count_only_) {
    call.reply().Integer(static_cast<int64_t>(matched_));
    return false;
  }
  const uint64_t limit = options_.limit == kNoLimit ? UINT64_MAX : options_.limit;
  to_send_ = std::min(matched_ - std::min(matched_, offset_), limit);
  ReplyItemsHead(call, to_send_, !options_.keys_only);
  sending_ = true;
  lo_ = first_lo_;
  hi_ = first_hi_;
  unbounded_ = first_unbounded_;
  matched_ = 0;
  return to_send_ > 0;
}

bool RangeTask::StepSend(const ServerCall& call) {
  Batch batch;
  const uint32_t slot = Scan(call, batch, options_.keys_only);
  if (batch.outcome(slot).verdict == Verdict::kRefused) {
    call.session().closing = true;  // see the head of range_task.h
    return false;
  }
  ItemTypes types(batch, slot);
  for (const Item& item : batch.items(slot)) {
    if (!Matches(item, types) || matched_++ < offset_) continue;
    ReplyItem(call.reply(), item, !options_.keys_only);
    if (--to_send_ == 0) return false;
  }
  GoOnFrom(batch.outcome(slot).value);
  return true;
}

bool RangeTask::StepCollect(const ServerCall& call) {
  Batch batch;
  const uint32_t slot = Scan(call, batch, options_.keys_only);
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) return Fail(call, out.status);
  const uint64_t wanted = options_.limit == kNoLimit ? UINT64_MAX : offset_ + options_.limit;
  ItemTypes types(batch, slot);
  for (const Item& item : batch.items(slot)) {
    if (matched_ == wanted) break;
    if (!Matches(item, types) || matched_++ < offset_) continue;
    ReplyItem(RespWriter(collected_.bytes(), call.session().protocol), item, !options_.keys_only);
    ++to_send_;
  }
  if (!collected_.HasRoom(call)) return false;
  if (out.more && matched_ < wanted) {
    GoOnFrom(out.value);
    return true;
  }
  sending_ = true;
  ReplyItemsHead(call, to_send_, !options_.keys_only);
  return collected_.Send(call);
}

bool RangeTask::Fail(const ServerCall& call, Status status) {
  call.Error(status);
  return false;
}

bool RangeTask::Matches(const Item& item, ItemTypes& types) const {
  return IsWanted(pattern_, type_, item, types);
}

uint32_t RangeTask::Scan(const ServerCall& call, Batch& batch, bool keys_only) {
  batch.set_snapshot(ref_);
  batch.set_notes_effects(type_.has_value());
  batch.set_scan_bytes_max(kChunkBytes);
  batch.set_scan_visits_max(kChunkVisits);
  ScanOptions chunk = options_;
  chunk.limit = kChunkItems;
  chunk.keys_only = keys_only;
  const uint32_t slot = batch.Scan(left(), chunk);
  call.Execute(batch);
  return slot;
}

void RangeTask::GoOnFrom(std::string_view bound) {
  (options_.reverse ? hi_ : lo_).assign(bound);
  unbounded_ = unbounded_ && !options_.reverse;
}

}  // namespace skep

#include "ranges/range_run.h"

#include <algorithm>

#include "ranges/foreign_floor.h"

namespace skep::ranges {
namespace {

bool IsBounded(const Request& request) { return !request.has(Request::kNoUpperBound); }

}  // namespace

RangeRun::RangeRun(const RangedEngine& engine, const Batch& batch, uint32_t slot, BatchWriter& out)
    : engine_(engine),
      batch_(batch),
      slot_(slot),
      out_(out),
      request_(batch.requests()[slot]),
      left_(request_.limit),
      visits_left_(batch.scan_visits_max()) {
  // A place may have other keys than its part's.
  if (request_.op == Op::kDeleteAll) {
    request_ = {.op = Op::kDeleteRange, .flags = Request::kNoUpperBound};
  }
}

void RangeRun::Run() {
  out_.outcome(slot_).verdict = Verdict::kDone;
  out_.BeginItems(slot_);
  size_t first = engine_.PartOf(request_.key);
  if (request_.has(Request::kSeekFloor) && !FindFloor(&first)) return;
  const size_t last = engine_.LastPartOf(request_);
  const bool reverse = request_.has(Request::kReverse);
  for (size_t i = 0; first + i <= std::max(first, last); ++i) {
    const size_t part = reverse ? std::max(first, last) - i : first + i;
    if (!RunPart(part, first + i >= last)) return;
  }
}

// If the part of the bound has such a key, its own answer counts, which is of one state: also one
// without items, of a range that ends before them. Else the scan begins in a part below, and that
// part's answer is of another state than the search.
bool RangeRun::FindFloor(size_t* first) {
  const size_t part = *first;
  Batch batch;
  Execute(part, batch);
  if (!IsDone(batch.outcome(0))) return false;
  const bool is_here =
      batch.outcome(0).item_count > 0 && (*batch.items(0).begin()).key <= request_.key;
  std::string_view end = KeyAfter(request_.key, out_.scratch());
  std::optional<std::string_view> floor;
  for (size_t at = part + 1; !is_here && !floor && at-- > 0; end = engine_.parts()[at].lower) {
    if (!FindLast(at, end, &floor)) return false;
    *first = at;
  }
  request_.flags &= static_cast<uint8_t>(~Request::kSeekFloor);
  if (floor && *first < part) {
    request_.key = *floor;
    return true;
  }
  *first = part + 1;
  return Take(batch, part, engine_.LastPartOf(request_) <= part) &&
         engine_.LastPartOf(request_) > part;
}

bool RangeRun::FindLast(size_t part, std::string_view end, std::optional<std::string_view>* key) {
  Batch batch;
  batch.set_now_ms(batch_.now_ms());
  batch.Scan(Range::Between(engine_.parts()[part].lower, end),
             {.limit = 1, .reverse = true, .keys_only = true});
  Engine& engine = *engine_.parts()[part].engine;
  engine.AwaitRelease(engine.Execute(batch));
  if (!IsDone(batch.outcome(0))) return false;
  for (const Item& item : batch.items(0)) *key = out_.scratch().Copy(item.key);
  return true;
}

Request RangeRun::Clip(size_t part) const {
  const auto& parts = engine_.parts();
  Request request = request_;
  request.limit = left_;
  request.key = std::max(request.key, std::string_view(parts[part].lower));
  if (part + 1 == parts.size()) return request;
  const std::string_view end = parts[part + 1].lower;
  request.other = IsBounded(request) ? std::min(request.other, end) : end;
  request.flags &= static_cast<uint8_t>(~Request::kNoUpperBound);
  return request;
}

void RangeRun::Execute(size_t part, Batch& batch) const {
  batch.set_now_ms(batch_.now_ms());
  batch.set_scan_visits_max(visits_left_);
  batch.set_notes_effects(out_.notes_effects());
  if (batch_.scan_bytes_max() != SIZE_MAX) {
    batch.set_scan_bytes_max(batch_.scan_bytes_max() -
                             std::min(item_bytes_, batch_.scan_bytes_max()));
  }
  batch.Add(Clip(part));
  Engine& engine = *engine_.parts()[part].engine;
  engine.AwaitRelease(engine.Execute(batch));
  DropFloorBelow(batch, 0, engine_.parts()[part].lower);
}

bool RangeRun::RunPart(size_t part, bool is_last) {
  Batch batch;
  Execute(part, batch);
  return IsDone(batch.outcome(0)) && Take(batch, part, is_last);
}

bool RangeRun::IsDone(const Outcome& told) {
  if (told.verdict == Verdict::kDone) return true;
  out_.outcome(slot_) = {.verdict = told.verdict, .status = told.status};
  return false;
}

bool RangeRun::Take(const Batch& from, size_t part, bool is_last) {
  const Outcome& told = from.outcome(0);
  out_.CountWork(from.work_bytes() - from.answer_bytes());
  TakeItems(from);
  if (told.more) {
    out_.outcome(slot_).more = true;
    out_.outcome(slot_).value = out_.scratch().Copy(told.value);
    return false;
  }
  if (is_last || !IsAtLimit()) return true;
  StopBehind(part);
  return false;
}

void RangeRun::TakeItems(const Batch& from) {
  const Outcome& told = from.outcome(0);
  out_.outcome(slot_).integer += told.integer;
  for (const Item& item : from.items(0)) {
    out_.AddItem(slot_, item);
    item_bytes_ += item.key.size() + item.value.size();
  }
  for (const Effect& effect : from.effects()) {
    out_.NoteAgain(slot_, effect);
  }
  if (visits_left_ != kNoLimit) visits_left_ -= std::min(visits_left_, told.item_count);
  if (left_ == kNoLimit) return;
  left_ -= request_.op == Op::kScan ? told.item_count : static_cast<uint32_t>(told.integer);
}

// The limit itself is left to the next part, which knows whether there is more.
bool RangeRun::IsAtLimit() const {
  return request_.op == Op::kScan && (visits_left_ == 0 || item_bytes_ > batch_.scan_bytes_max());
}

void RangeRun::StopBehind(size_t part) {
  const auto& parts = engine_.parts();
  const bool reverse = request_.has(Request::kReverse);
  out_.outcome(slot_).more = true;
  out_.outcome(slot_).value =
      out_.scratch().Copy(reverse ? parts[part].lower : parts[part + 1].lower);
}

}  // namespace skep::ranges

#include "ranges/range_run.h"

#include <algorithm>

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
      visits_left_(batch.scan_visits_max()) {}

void RangeRun::Run() {
  Outcome& outcome = out_.outcome(slot_);
  outcome.verdict = Verdict::kDone;
  out_.BeginItems(slot_);
  if (request_.op == Op::kDeleteAll) {
    for (size_t part = 0; part < engine_.parts().size(); ++part) {
      if (!RunPart(part, true)) return;
    }
    return;
  }
  if (request_.has(Request::kSeekFloor)) {
    request_.key = FindFloor();
    request_.flags &= static_cast<uint8_t>(~Request::kSeekFloor);
  }
  const size_t first = engine_.PartOf(request_.key);
  const size_t last = std::max(first, engine_.LastPartOf(request_));
  const bool reverse = request_.has(Request::kReverse);
  for (size_t i = 0; i <= last - first; ++i) {
    const size_t part = reverse ? last - i : first + i;
    if (!RunPart(part, i == last - first)) return;
  }
}

std::string_view RangeRun::FindFloor() const {
  const auto& parts = engine_.parts();
  Scratch& scratch = out_.scratch();
  std::string_view end = KeyAfter(request_.key, scratch);
  for (size_t part = engine_.PartOf(request_.key) + 1; part-- > 0;) {
    Batch batch;
    batch.set_now_ms(batch_.now_ms());
    batch.Scan(Range::Between(parts[part].lower, end),
               {.limit = 1, .reverse = true, .keys_only = true});
    parts[part].engine->AwaitRelease(parts[part].engine->Execute(batch));
    for (const Item& item : batch.items(0)) return scratch.Copy(item.key);
    end = parts[part].lower;
  }
  return request_.key;
}

Request RangeRun::Clip(size_t part) const {
  const auto& parts = engine_.parts();
  Request request = request_;
  request.limit = left_;
  if (request.op == Op::kDeleteAll) return request;
  request.key = std::max(request.key, std::string_view(parts[part].lower));
  if (part + 1 == parts.size()) return request;
  const std::string_view end = parts[part + 1].lower;
  request.other = IsBounded(request) ? std::min(request.other, end) : end;
  request.flags &= static_cast<uint8_t>(~Request::kNoUpperBound);
  return request;
}

bool RangeRun::RunPart(size_t part, bool is_last) {
  Batch batch;
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
  out_.CountWork(batch.work_bytes() - batch.answer_bytes());
  const Outcome& told = batch.outcome(0);
  Outcome& outcome = out_.outcome(slot_);
  if (told.verdict != Verdict::kDone) {
    outcome = {.verdict = told.verdict, .status = told.status};
    return false;
  }
  Take(batch);
  if (told.more) {
    outcome.more = true;
    outcome.value = out_.scratch().Copy(told.value);
    return false;
  }
  if (is_last || !IsAtLimit()) return true;
  StopBehind(part);
  return false;
}

void RangeRun::Take(const Batch& from) {
  const Outcome& told = from.outcome(0);
  Outcome& outcome = out_.outcome(slot_);
  outcome.integer += told.integer;
  for (const Item& item : from.items(0)) {
    out_.AddItem(slot_, item);
    item_bytes_ += item.key.size() + item.value.size();
  }
  for (const Effect& effect : from.effects()) {
    out_.NoteDeadline(slot_, effect.key, effect.deadline_ms);
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

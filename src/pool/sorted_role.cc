#include "pool/sorted_role.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {

SortedRole::SortedRole(IndexContext& context)
    : context_(context), log_end_(context.state.applied()), last_answer_ns_(context.now_ns()) {}

bool SortedRole::Handle(const rma::Event& event, MessageKind kind, std::string_view fields) {
  switch (kind) {
    case MessageKind::kShip:
      Append(event, fields);
      return true;
    case MessageKind::kScan:
      Scan(event, fields);
      return true;
    case MessageKind::kLost:
      TellLost(event, fields);
      return true;
    default:
      return false;
  }
}

void SortedRole::Append(const rma::Event& event, std::string_view fields) {
  uint64_t epoch = 0;
  LogBatch batch;
  if (!TakeVarint(fields, &epoch) || !LogBatch::Decode(fields, &batch) || !fields.empty()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (epoch != context_.map.epoch) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kWrongEpoch);
  }
  if (context_.map.sorted_server == 0) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  // A batch that came before, on a connection that has broken, has the same entries. One without
  // entries tells where its sender thinks that the log ends.
  const bool came_before = !batch.empty() && batch.end_index() <= log_end_ + 1;
  if (batch.first_index() != log_end_ + 1 && !came_before) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (batch.first_index() == log_end_ + 1 && !batch.empty()) {
    if (!AppendEntries(context_.log, batch, &needed_)) {
      return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
    }
    log_end_ = batch.end_index() - 1;
    log_.push_back(std::move(batch));
  }
  if (context_.applies_first) ApplyAll();
  shipments_.push_back(
      {.peer = event.peer, .token = event.token, .needed = needed_, .log_end = log_end_});
  AcknowledgeLogged();
}

bool SortedRole::AcknowledgeLogged() {
  bool did = false;
  for (; !shipments_.empty() && shipments_.front().needed.IsReached(context_.log); did = true) {
    const Shipment shipment = shipments_.front();
    shipments_.pop_front();
    last_answer_ns_ = context_.now_ns();
    fields_.clear();
    AppendVarint(fields_, shipment.log_end);
    context_.Answer(shipment.peer, shipment.token, fields_);
  }
  return did;
}

bool SortedRole::Turn(bool is_idle) {
  bool did = is_idle && ApplyFront();
  while (IsBehind() && ApplyFront()) did = true;
  return did;
}

bool SortedRole::ApplyFront() {
  if (log_.empty()) return false;
  verdicts_.clear();
  context_.state.Apply(log_.front(), &verdicts_);
  log_.pop_front();
  return true;
}

void SortedRole::ApplyAll() {
  while (ApplyFront()) {
  }
}

void SortedRole::Scan(const rma::Event& event, std::string_view fields) {
  ScanRequest scan;
  if (!DecodeScan(fields, &scan) || !fields.empty()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (scan.epoch != context_.map.epoch) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kWrongEpoch);
  }
  if (context_.state.tree() == nullptr) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  ApplyAll();
  AnswerScan(event, scan);
}

void SortedRole::AnswerScan(const rma::Event& event, const ScanRequest& scan) {
  const auto flags = static_cast<uint8_t>((scan.has_upper ? 0 : Request::kNoUpperBound) |
                                          (scan.is_reverse ? Request::kReverse : 0) |
                                          (scan.seeks_floor ? Request::kSeekFloor : 0));
  batch_.Clear();
  batch_.set_scan_bytes_max(kKeyBytesScanned);
  batch_.Add({.op = scan.counts_only ? Op::kCount : Op::kScan,
              .flags = flags,
              .limit = scan.counts_only ? scan.limit : std::min(scan.limit, kSlotsMax),
              .key = scan.lower,
              .other = scan.upper});
  context_.state.tree()->AwaitRelease(context_.state.tree()->Execute(batch_));
  const Outcome& outcome = batch_.outcome(0);
  if (outcome.verdict != Verdict::kDone) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  std::string slots;
  slots.reserve(size_t{outcome.item_count} * sizeof(Slot));
  if (!scan.counts_only) {
    for (const Item& item : batch_.items(0)) slots.append(item.value);
  }
  fields_.clear();
  EncodeScanReply({.applied = context_.state.applied(),
                   .count = static_cast<uint64_t>(outcome.integer),
                   .more = outcome.more,
                   .next = outcome.more ? outcome.value : std::string_view(),
                   .slots = slots},
                  fields_);
  context_.Answer(event.peer, event.token, fields_);
}

void SortedRole::TellLost(const rma::Event& event, std::string_view fields) {
  uint64_t epoch = 0;
  std::string_view lower;
  if (!TakeVarint(fields, &epoch) || !TakeBytes(fields, &lower) || !fields.empty()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (epoch != context_.map.epoch || context_.state.tree() == nullptr) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  ApplyAll();
  const Chunks& chunks = context_.state.chunks();
  fields_.clear();
  if (!context_.removes_lost || std::ranges::none_of(chunks.all(), &Chunks::Chunk::is_lost)) {
    AppendBytes(fields_, {});
    return context_.Answer(event.peer, event.token, fields_);
  }
  batch_.Clear();
  batch_.set_scan_bytes_max(kKeyBytesForLost);
  batch_.Scan(Range::From(lower), {.limit = kKeysForLost});
  context_.state.tree()->AwaitRelease(context_.state.tree()->Execute(batch_));
  const Outcome& outcome = batch_.outcome(0);
  AppendBytes(fields_, outcome.more ? outcome.value : std::string_view());
  for (const Item& item : batch_.items(0)) {
    if (!chunks.all()[SlotOf(item.value).chunk()].is_lost()) continue;
    AppendBytes(fields_, item.key);
    fields_.append(item.value);
  }
  context_.Answer(event.peer, event.token, fields_);
}

}  // namespace skep::pool

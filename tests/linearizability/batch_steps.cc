#include "tests/linearizability/batch_steps.h"

namespace skep::linearizability {
namespace {

// The year 3000: the time of a history is later than any machine's clock.
constexpr uint64_t kEpochMs = 32'503'680'000'000;

uint64_t TimeOf(uint64_t ms) { return ms == 0 ? 0 : ms - kEpochMs; }

Op OpOf(Action action) {
  switch (action) {
    case Action::kPut:
    case Action::kPutIfDiffers:
      return Op::kPut;
    case Action::kInsert:
      return Op::kInsert;
    case Action::kUpdate:
    case Action::kCompareAndSet:
      return Op::kUpdate;
    case Action::kDelete:
    case Action::kCompareAndDelete:
      return Op::kDelete;
    case Action::kExpire:
      return Op::kExpire;
    case Action::kAddDecimal:
      return Op::kApply;
    case Action::kRename:
      return Op::kMove;
    case Action::kRequireAbsent:
      return Op::kRequireAbsent;
    case Action::kRequirePresent:
      return Op::kRequirePresent;
    case Action::kRequireValue:
      return Op::kRequireValue;
    default:
      return Op::kGet;
  }
}

// Makes the request compare with a value, or with its digest.
void AddComparison(const Step& step, Request& request) {
  const bool is_condition = IsCondition(step.action);
  const bool differs = step.action == Action::kPutIfDiffers;
  if (step.by_digest) {
    request.digest = DigestOf(step.other);
    if (is_condition)
      request.op = Op::kRequireDigest;
    else
      request.when = differs ? Request::kDigestDiffers : Request::kDigestEquals;
  } else {
    request.other = step.other;
    if (!is_condition) request.when = differs ? Request::kDiffers : Request::kEquals;
  }
}

}  // namespace

uint64_t MsOf(uint64_t time) { return time == 0 ? 0 : kEpochMs + time; }

Range RangeOf(const Step& step) {
  return {.lo = step.key, .hi = step.other, .unbounded = step.unbounded};
}

ScanOptions OptionsOf(const Step& step) {
  return {.limit = step.limit,
          .reverse = step.reverse,
          .keys_only = step.keys_only,
          .seek_floor = step.floor};
}

Request PointOf(const Step& step) {
  Request request{.op = OpOf(step.action), .key = step.key, .value = step.value};
  if (step.action == Action::kAddDecimal) {
    request.function = functions::kAddDecimal;
  } else if (step.action == Action::kRename) {
    request.other = step.other;
    if (step.keep_existing) request.flags = Request::kKeepExisting;
  } else if (IsComparison(step.action)) {
    AddComparison(step, request);
  }
  request.deadline_ms = step.deadline == kKeep ? kKeepDeadline : MsOf(step.deadline);
  return request;
}

void AddStep(const Step& step, Batch& batch) {
  switch (step.action) {
    case Action::kScan:
      batch.Scan(RangeOf(step), OptionsOf(step));
      break;
    case Action::kCount:
      batch.Count(RangeOf(step));
      break;
    case Action::kDeleteRange:
      batch.DeleteRange(RangeOf(step), step.limit);
      break;
    case Action::kExpireRange:
      batch.ExpireRange(RangeOf(step), MsOf(step.deadline), step.limit);
      break;
    case Action::kRequireEmpty:
      batch.RequireEmpty(RangeOf(step));
      break;
    default:
      batch.Add(PointOf(step));
  }
}

void ReadAnswer(const Batch& batch, uint32_t slot, Step& step) {
  const Outcome& out = batch.outcome(slot);
  step.happened = out.verdict == Verdict::kDone;
  step.number = out.integer;
  if (step.action == Action::kGet) {
    step.told = true;
    step.deadline = TimeOf(out.deadline_ms);
    if (step.happened) step.found = std::string(out.value);
  } else if (!step.happened &&
             (IsComparison(step.action) || step.action == Action::kRequireEmpty)) {
    step.told = true;
    if (out.verdict == Verdict::kMismatch) step.found = std::string(out.value);
  }
  if (step.action != Action::kScan) return;
  for (const Item& item : batch.items(slot)) step.items.emplace_back(item.key, item.value);
}

}  // namespace skep::linearizability

#include "engine/testing/random_batch.h"

#include <algorithm>
#include <string>

namespace skep {
namespace {

// Keys begin with one of these; the last two are above the pivot.
constexpr char kFirstBytes[] = {'\0', 'a', 'b', '\xff'};
constexpr std::string_view kPivot = "b";
constexpr uint8_t kTestType = 200;

FunctionEffect Reverse(const FunctionInput& input) {
  using Action = FunctionEffect::Action;
  const std::string_view now = input.value.value_or("");
  if (input.operand == "fail") return {.status = {Code::kInvalidArgument, "told to fail"}};
  if (input.operand == "erase") return {.action = Action::kErase, .returned = now, .integer = -1};
  if (input.operand == "keep") return {.returned = now, .integer = input.value ? 1 : 0};
  char* const at = input.scratch->Allocate(now.size());
  std::ranges::reverse_copy(now, at);
  return {.action = Action::kReplace, .value = {at, now.size()}, .returned = now, .integer = 7};
}

}  // namespace

const Function* ReverseFunction() {
  static const Function* const function = *RegisterFunction("test-reverse", Reverse);
  return function;
}

const Function* TypedReverseFunction() {
  static const Function* const function =
      *RegisterFunction("test-reverse-typed", Reverse, kTestType);
  return function;
}

RandomBatch::RandomBatch(uint64_t seed)
    : own_(std::make_unique<SeededRandom>(seed)), choices_(*own_) {}

void RandomBatch::Fill(Batch& batch) {
  if (Below(8) == 0) batch.set_scan_bytes_max(Below(64));
  if (Below(8) == 0) batch.set_scan_visits_max(static_cast<uint32_t>(Below(12)));
  const uint64_t requests = 1 + Below(12);
  if (batch.kind() == Batch::Kind::kAtomic) return FillAtomic(batch, requests);
  const uint64_t form = Below(3);
  if (form == 1) return FillWithReads(batch);
  const Side side = form == 0 ? Side::kAnywhere : Side::kBelowPivot;
  for (uint64_t left = requests; left > 0; --left) AddPoint(batch, side);
  if (form == 2) AddRange(batch, Side::kAbovePivot);
  // Conditions and moves in an unordered batch must be refused.
  if (Below(40) == 0) AddCondition(batch);
  if (Below(40) == 0) AddMove(batch);
  if (Below(80) == 0) batch.BeginPart();
}

void RandomBatch::FillAtomic(Batch& batch, uint64_t requests) {
  // Parts may be empty, the first one too.
  const bool has_parts = Below(3) == 0;
  for (; requests > 0; --requests) {
    if (has_parts && Below(4) == 0) batch.BeginPart();
    const uint64_t lot = Below(24);
    lot < 14   ? AddPoint(batch, Side::kAnywhere)
    : lot < 18 ? AddRange(batch, Side::kAnywhere)
    : lot < 20 ? AddMove(batch)
               : AddRead(batch);
    if (Below(12) == 0) AddCondition(batch);
  }
}

void RandomBatch::FillWithReads(Batch& batch) {
  for (uint64_t left = 1 + Below(6); left > 0; --left) AddRead(batch);
}

void RandomBatch::Add(Batch& batch, Request request) {
  if (uses_types_ && request.op != Op::kApply && Below(8) == 0) request.type = kTestType;
  if (Below(4) == 0) request.flags |= Request::kWantHint;
  if (Below(16) == 0) request.hint.bits = choices_.Next();  // a wrong hint may only cost time
  batch.Add(request);
}

void RandomBatch::AddPoint(Batch& batch, Side side) {
  constexpr Op kOps[] = {Op::kGet,    Op::kGet,    Op::kPut,    Op::kPut,   Op::kPut,  Op::kInsert,
                         Op::kUpdate, Op::kDelete, Op::kExpire, Op::kApply, Op::kApply};
  Request r{.op = kOps[Below(std::size(kOps))], .key = Key(batch, side)};
  const bool stores = r.op == Op::kPut || r.op == Op::kInsert || r.op == Op::kUpdate;
  if (r.op != Op::kApply && Below(3) == 0) r.flags |= Request::kReturnPrevious;
  if (stores) r.value = Value(batch);
  if (stores && Below(2) == 0) r.deadline_ms = Below(4) == 0 ? kKeepDeadline : Deadline(batch);
  if (r.op == Op::kGet && Below(4) == 0) r.flags |= Request::kNoValue;
  if (r.op == Op::kGet && Below(4) == 0) {
    r.flags |= Request::kByteRange;
    r.bytes = {.first = static_cast<int64_t>(Below(24)) - 12,
               .last = static_cast<int64_t>(Below(24)) - 12};
  }
  if (r.op == Op::kExpire) {
    r.deadline_ms = Deadline(batch);
    r.when = WhenOfDeadline();
  }
  if (r.op == Op::kPut || r.op == Op::kUpdate || r.op == Op::kDelete) AddComparison(batch, r);
  // Conditions that the operation cannot have must be refused.
  if (Below(200) == 0) {
    r.when = static_cast<uint8_t>(Below(256));
    r.other = {};
  }
  if (r.op == Op::kApply) ChooseFunction(batch, r);
  Add(batch, r);
  // Some keys come several times in a row.
  if (Below(6) == 0) Add(batch, r);
}

void RandomBatch::ChooseFunction(Batch& batch, Request& request) {
  constexpr std::string_view kOperands[] = {"erase", "keep", "fail", ""};
  switch (Below(uses_types_ ? 7 : 6)) {
    case 0:
      request.function = functions::kAddDecimal;
      request.value = Value(batch);
      return;
    case 1:
      request.function = functions::kAppend;
      request.value = Value(batch);
      return;
    case 2:
      request.function = ReverseFunction();
      request.value = kOperands[Below(std::size(kOperands))];
      return;
    case 3:
      request.function = FindFunction(FunctionKind::kReduce, "sum", Element::kU8);
      return;
    case 6:
      request.function = TypedReverseFunction();
      request.value = kOperands[Below(std::size(kOperands))];
      return;
    default:
      return ChooseUpdate(batch, request);
  }
}

// Updates bytes, of which any value is a vector, or elements of two bytes, which do not fit some
// values.
void RandomBatch::ChooseUpdate(Batch& batch, Request& request) {
  const Element element = Below(3) == 0 ? Element::kU16 : Element::kI8;
  UpdateOptions options;
  options.returns = static_cast<UpdateOptions::Returns>(Below(3));
  options.is_vector = Below(4) == 0;
  options.create = Below(2) == 0 ? static_cast<uint32_t>(Below(5)) : 0;
  const size_t operands = options.is_vector ? Below(6) : 1;
  char* const at = batch.scratch().Allocate(operands * BytesOf(element));
  for (size_t i = 0; i < operands * BytesOf(element); ++i) at[i] = static_cast<char>(Below(256));
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", element);
  Batch made;
  made.UpdateElements(request.key, add, {at, operands * BytesOf(element)}, options);
  request.function = add;
  request.value = batch.scratch().Copy(made.requests().front().value);
}

void RandomBatch::AddComparison(Batch& batch, Request& request) {
  if (Below(3) != 0) return;
  constexpr Request::When kWhens[] = {Request::kEquals, Request::kDiffers, Request::kDigestEquals,
                                      Request::kDigestDiffers};
  const Request::When when = kWhens[Below(std::size(kWhens))];
  request.when = when;
  if (when == Request::kEquals || when == Request::kDiffers) {
    request.other = Value(batch);
  } else {
    request.digest = DigestOf(Value(batch));
  }
}

// Now and then moves a key onto itself.
void RandomBatch::AddMove(Batch& batch) {
  const std::string_view from = Key(batch);
  const std::string_view to = Below(8) == 0 ? from : Key(batch);
  batch.Move(from, to, Below(3) == 0 ? Request::kKeepExisting : 0);
}

void RandomBatch::AddRead(Batch& batch) {
  switch (Below(4)) {
    case 0:
      return Add(batch, {.op = Op::kGet, .key = Key(batch, Side::kAnywhere)});
    case 1:
      batch.Count(ARange(batch, Side::kAnywhere), Limit());
      return;
    case 2:
      if (batch.snapshot().id == 0) batch.Sample(choices_.Next());
      if (Below(4) == 0 && batch.kind() == Batch::Kind::kUnordered) {
        batch.Walk(0, {.limit = Limit(), .keys_only = Below(2) == 0});
      }
      [[fallthrough]];
    default:
      return AddScan(batch, Side::kAnywhere);
  }
}

void RandomBatch::AddScan(Batch& batch, Side side) {
  ScanOptions options{.limit = Limit(), .reverse = Below(3) == 0, .keys_only = Below(4) == 0};
  // Both options together, rarely: the scan must be refused.
  options.any_type = uses_types_ && Below(3) == 0;
  if (side == Side::kAnywhere) options.seek_floor = Below(options.reverse ? 20 : 3) == 0;
  batch.Scan(ARange(batch, side), options);
}

void RandomBatch::AddRange(Batch& batch, Side side) {
  switch (Below(5)) {
    case 0:
      batch.Count(ARange(batch, side), Limit());
      return;
    case 1:
      if (side == Side::kAnywhere && Below(8) == 0) {
        batch.DeleteAll();
      } else {
        batch.DeleteRange(ARange(batch, side), Limit());
      }
      return;
    case 2:
      return AddExpireRange(batch, side);
    default:
      return AddScan(batch, side);
  }
}

void RandomBatch::AddExpireRange(Batch& batch, Side side) {
  const Range range = ARange(batch, side);
  Request r{.op = Op::kExpireRange,
            .when = WhenOfDeadline(),
            .limit = Limit(),
            .key = range.lo,
            .other = range.hi,
            .deadline_ms = Deadline(batch)};
  if (range.unbounded) r.flags |= Request::kNoUpperBound;
  batch.Add(r);
}

// Conditions mostly hold, for otherwise no atomic batch would be applied.
void RandomBatch::AddCondition(Batch& batch) {
  const std::string_view key = Key(batch, Side::kAnywhere);
  switch (Below(10)) {
    case 0:
      batch.RequirePresent(key);
      return;
    case 1:
      batch.RequireValue(key, Value(batch));
      return;
    case 2:
      batch.RequireDigest(key, DigestOf(Value(batch)));
      return;
    case 3:
    case 4:
      return AddUnchanged(batch);
    case 5:
      batch.RequireEmpty(ARange(batch, Side::kAnywhere));
      return;
    default:
      batch.RequireAbsent(key);
      return;
  }
}

void RandomBatch::AddUnchanged(Batch& batch) {
  constexpr uint64_t kNoWatch = UINT64_MAX;
  if (watched_.empty()) {
    if (Below(8) == 0) batch.RequireUnchanged(Key(batch), kNoWatch);
    return;
  }
  const WatchedKey& one = watched_[Below(watched_.size())];
  // Rarely with a key that the watch is not of.
  const std::string_view key = Below(16) == 0 ? Key(batch) : batch.scratch().Copy(one.key);
  batch.RequireUnchanged(key, one.watch);
}

Range RandomBatch::ARange(Batch& batch, Side side) {
  if (Below(4) == 0) {
    const std::string_view prefix = Key(batch, side).substr(0, 1 + Below(2));
    // The empty prefix is a prefix of every key.
    if (side == Side::kAnywhere || !prefix.empty()) return PrefixRange(prefix, batch.scratch());
  }
  Range range;
  if (side == Side::kAbovePivot || Below(4) != 0) range.lo = Key(batch, side);
  range.unbounded = Below(3) == 0;
  if (!range.unbounded) range.hi = Key(batch, side);
  if (Below(8) == 0) range.lo = KeyAfter(range.lo, batch.scratch());
  return range;
}

std::string_view RandomBatch::Key(Batch& batch, Side side) {
  std::string key;
  const size_t length = side == Side::kAbovePivot ? 1 + Below(3) : Below(4);
  for (size_t i = 0; i < length; ++i) key += kFirstBytes[Below(std::size(kFirstBytes))];
  if (Below(16) == 0) key.append(20 + Below(40), 'a');
  if (side == Side::kAbovePivot && key < kPivot) key[0] = kFirstBytes[2 + Below(2)];
  if (side == Side::kBelowPivot && key >= kPivot) key[0] = kFirstBytes[Below(2)];
  return batch.scratch().Copy(key);
}

// A few short values, so that comparisons hold now and then; numbers, so that additions succeed;
// now and then a longer value.
std::string_view RandomBatch::Value(Batch& batch) {
  constexpr std::string_view kValues[] = {
      "", "0", "1", "-2", "9223372036854775807", std::string_view("\0\xff", 2)};
  if (Below(8) == 0) return batch.scratch().Copy(std::string(Below(300), 'x'));
  return kValues[Below(std::size(kValues))];
}

// Mostly a deadline near now, before or after it.
uint64_t RandomBatch::Deadline(const Batch& batch) {
  switch (Below(32)) {
    case 0:
      return kDeadlineMax;
    case 1:
      return kDeadlineMax + Below(2);  // one more must be refused
    case 2:
    case 3:
    case 4:
      return batch.now_ms() + 1000;
    case 5:
    case 6:
    case 7:
      return 0;
    default: {
      constexpr uint64_t kBeforeMax = 3;
      const uint64_t at = batch.now_ms() + Below(12);
      return at > kBeforeMax ? at - kBeforeMax : 1;
    }
  }
}

uint8_t RandomBatch::WhenOfDeadline() {
  if (Below(3) == 0) return 0;
  constexpr uint8_t kWhens[] = {Request::kHasNoDeadline,
                                Request::kHasDeadline,
                                Request::kLater,
                                Request::kEarlier,
                                Request::kHasDeadline | Request::kLater,
                                Request::kHasDeadline | Request::kEarlier};
  return kWhens[Below(std::size(kWhens))];
}

uint32_t RandomBatch::Limit() {
  return Below(2) == 0 ? kNoLimit : 1 + static_cast<uint32_t>(Below(6));
}

}  // namespace skep

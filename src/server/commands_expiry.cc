// Deadlines of keys: EXPIRE and TTL and their kin, GETEX, SETEX, KEXPIRE.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/expiry_args.h"
#include "server/range_args.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

constexpr size_t kShownMax = 128;  // bytes of a word that an error quotes

// Reads [NX | XX] [GT | LT] behind EXPIRE key time. Returns an error text or an empty one.
std::string_view ParseWhen(const Call& call, Scratch& scratch, uint8_t& when) {
  constexpr std::pair<std::string_view, uint8_t> kWords[] = {{"nx", Request::kHasNoDeadline},
                                                             {"xx", Request::kHasDeadline},
                                                             {"gt", Request::kLater},
                                                             {"lt", Request::kEarlier}};
  for (const std::string_view arg : call.args().subspan(3)) {
    const auto word = std::ranges::find_if(
        kWords, [&](const auto& w) { return EqualsIgnoringCase(w.first, arg); });
    if (word == std::end(kWords)) {
      return scratch.Concat("ERR Unsupported option ", arg.substr(0, kShownMax));
    }
    when |= word->second;
  }
  if ((when & Request::kHasNoDeadline) != 0 && when != Request::kHasNoDeadline) {
    return "ERR NX and XX, GT or LT options at the same time are not compatible";
  }
  if ((when & Request::kLater) != 0 && (when & Request::kEarlier) != 0) {
    return "ERR GT and LT options at the same time are not compatible";
  }
  return {};
}

// EXPIRE and its kin. As in Redis, the options are judged before the time.
Plan PlanExpireAs(const Call& call, Batch& batch, TimeForm form) {
  uint8_t when = 0;
  uint64_t deadline_ms = 0;
  auto error = ParseWhen(call, batch.scratch(), when);
  if (error.empty()) {
    error = ParseDeadline(call.arg(2), form, PastTimes::kAllowed, call.now(), call.command().name,
                          batch.scratch(), deadline_ms);
  }
  if (!error.empty()) return Plan::Error(error);
  batch.Expire(call.arg(1), deadline_ms, when);
  return Plan::Requests();
}

// SETEX and PSETEX: key time value.
Plan PlanSetFor(const Call& call, Batch& batch, TimeForm form) {
  Request request{.op = Op::kPut, .key = call.arg(1), .value = call.arg(3), .other = {}};
  const auto error = ParseDeadline(call.arg(2), form, PastTimes::kInvalid, call.now(),
                                   call.command().name, batch.scratch(), request.deadline_ms);
  if (!error.empty()) return Plan::Error(error);
  batch.Add(request);
  return Plan::Requests();
}

// Reads the option of GETEX key [option]; nullopt on a syntax error.
std::optional<ExpiryOption> ParseGetEx(const Call& call) {
  ExpiryOption expiry;
  for (size_t i = 2; i < call.args().size();) {
    if (!expiry.Read(call.args(), i, ExpiryOption::kTime | ExpiryOption::kPersist)) {
      return std::nullopt;
    }
  }
  return expiry;
}

// Replies -2 if the key is absent, -1 if it has no deadline.
template <typename Function>
void ReplyDeadline(const Call& call, const Outcome& out, Function value) {
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Integer(-2);
  call.reply().Integer(out.deadline_ms == 0 ? -1 : static_cast<int64_t>(value(out.deadline_ms)));
}

uint64_t LeftMs(const Call& call, uint64_t deadline_ms) {
  return deadline_ms - std::min(deadline_ms, call.time_ms());
}

// Rounds as Redis does.
uint64_t InSeconds(uint64_t ms) { return (ms + 500) / 1000; }

// ---- KEXPIRE ----

struct RangeExpiry {
  Range range;
  uint64_t deadline_ms = 0;
  bool deletes = false;  // the deadline has passed already
  uint32_t limit = kNoLimit;
};

// KEXPIRE (min max | PREFIX prefix) milliseconds [LIMIT count]. Returns an error text or an empty
// one.
std::string_view ParseKexpire(const Call& call, Scratch& scratch, RangeExpiry& out) {
  const auto args = call.args();
  if (args.size() != 4 && (args.size() != 6 || !EqualsIgnoringCase(args[4], "limit"))) {
    return kSyntaxError;
  }
  const auto range = ParseRangeWords(args[1], args[2], scratch);
  if (!range) return scratch.Concat("ERR ", range.error().what());
  out.range = *range;
  const StoreNow now = call.now();
  const auto error = ParseDeadline(args[3], kMilliseconds, PastTimes::kAllowed, now, "kexpire",
                                   scratch, out.deadline_ms);
  if (!error.empty()) return error;
  out.deletes = out.deadline_ms <= now.ms;
  if (args.size() == 4) return {};
  const auto limit = ParseInt64(args[5]);
  if (!limit) return kNotAnInteger;
  if (*limit >= 0) out.limit = static_cast<uint32_t>(std::min<int64_t>(*limit, kNoLimit - 1));
  return {};
}

uint32_t AddRangeExpiry(Batch& batch, const RangeExpiry& expiry) {
  return expiry.deletes ? batch.DeleteRange(expiry.range, expiry.limit)
                        : batch.ExpireRange(expiry.range, expiry.deadline_ms, expiry.limit);
}

// Goes through the range piece by piece. All its keys get the same deadline.
class ExpireTask final : public Task {
 public:
  explicit ExpireTask(const RangeExpiry& expiry)
      : lo_(expiry.range.lo),
        hi_(expiry.range.hi),
        unbounded_(expiry.range.unbounded),
        deadline_ms_(expiry.deadline_ms),
        left_(expiry.limit) {}

  bool Step(const ServerCall& call) override {
    Batch batch;
    const Range range{.lo = lo_, .hi = hi_, .unbounded = unbounded_};
    const uint32_t slot = batch.ExpireRange(range, deadline_ms_, std::min(left_, kStepKeys));
    call.Execute(batch);
    const Outcome& out = batch.outcome(slot);
    if (call.Refused(out)) return false;
    changed_ += out.integer;
    if (left_ != kNoLimit) left_ -= static_cast<uint32_t>(out.integer);
    if (out.more && left_ > 0) {
      lo_.assign(out.value);
      return true;
    }
    call.reply().Integer(changed_);
    return false;
  }

 private:
  // Takes some hundred microseconds.
  static constexpr uint32_t kStepKeys = 256;

  std::string lo_;
  const std::string hi_;
  const bool unbounded_;
  const uint64_t deadline_ms_;
  uint32_t left_;  // keys that may still be changed; kNoLimit: all
  int64_t changed_ = 0;
};

}  // namespace

Plan PlanExpire(const Call& call, Batch& batch) { return PlanExpireAs(call, batch, kSeconds); }
Plan PlanPexpire(const Call& call, Batch& batch) {
  return PlanExpireAs(call, batch, kMilliseconds);
}
Plan PlanExpireAt(const Call& call, Batch& batch) {
  return PlanExpireAs(call, batch, kUnixSeconds);
}
Plan PlanPexpireAt(const Call& call, Batch& batch) {
  return PlanExpireAs(call, batch, kUnixMilliseconds);
}

Plan PlanSetEx(const Call& call, Batch& batch) { return PlanSetFor(call, batch, kSeconds); }
Plan PlanPsetEx(const Call& call, Batch& batch) { return PlanSetFor(call, batch, kMilliseconds); }

Plan PlanPersist(const Call& call, Batch& batch) {
  batch.Persist(call.arg(1));
  return Plan::Requests();
}

// As in Redis, a wrong time is an error only if the key is present: then the request only looks.
Plan PlanGetEx(const Call& call, Batch& batch) {
  const auto expiry = ParseGetEx(call);
  if (!expiry) return Plan::Error(kSyntaxError);
  Request request{.op = Op::kGet, .flags = Request::kMayPin, .key = call.arg(1), .other = {}};
  const auto error =
      expiry->Resolve(call.now(), call.command().name, batch.scratch(), request.deadline_ms);
  if (!error.empty()) {
    request.flags = Request::kNoValue;
  } else if (expiry->kind() != ExpiryOption::kNone) {
    request.op = Op::kExpire;
    request.flags |= Request::kReturnPrevious;
    if (expiry->kind() == ExpiryOption::kPersist) request.when = Request::kHasDeadline;
  }
  batch.Add(request);
  return Plan::Requests();
}

void FinishGetEx(const Call& call, const Batch& batch, uint32_t slot) {
  const bool wrong_time = batch.requests()[slot].has(Request::kNoValue);
  if (!wrong_time || !batch.outcome(slot).present) return FinishValue(call, batch, slot);
  if (batch.outcome(slot).type != kPlainType) return call.Error(kWrongType);
  Scratch scratch;
  uint64_t deadline_ms = 0;
  call.Error(ParseGetEx(call)->Resolve(call.now(), call.command().name, scratch, deadline_ms));
}

void FinishTtl(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyDeadline(call, batch.outcome(slot),
                [&](uint64_t deadline_ms) { return InSeconds(LeftMs(call, deadline_ms)); });
}

void FinishPttl(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyDeadline(call, batch.outcome(slot),
                [&](uint64_t deadline_ms) { return LeftMs(call, deadline_ms); });
}

void FinishExpireTime(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyDeadline(call, batch.outcome(slot),
                [&](uint64_t deadline_ms) { return InSeconds(call.now().ToWall(deadline_ms)); });
}

void FinishPexpireTime(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyDeadline(call, batch.outcome(slot),
                [&](uint64_t deadline_ms) { return call.now().ToWall(deadline_ms); });
}

// KEXPIRE by itself takes as many turns as the range needs; in an atomic batch it is one request.
Plan PlanKexpire(const Call& call, Batch& batch) {
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  RangeExpiry expiry;
  const auto error = ParseKexpire(call, batch.scratch(), expiry);
  if (!error.empty()) return Plan::Error(error);
  AddRangeExpiry(batch, expiry);
  return Plan::Requests();
}

void RunKexpire(const ServerCall& call) {
  RangeExpiry expiry;
  Batch batch;
  const auto error = ParseKexpire(call, batch.scratch(), expiry);
  if (!error.empty()) return call.Error(error);
  if (expiry.deletes) {
    const uint32_t slot = AddRangeExpiry(batch, expiry);
    call.Execute(batch);
    return FinishInteger(call, batch, slot);
  }
  auto task = std::make_unique<ExpireTask>(expiry);
  if (task->Step(call)) call.Start(std::move(task));
}

}  // namespace skep::commands

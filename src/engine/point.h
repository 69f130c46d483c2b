// point.h: the effect of a point operation, or a condition, on the key it finds. The same for every
// engine.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "engine/batch_writer.h"
#include "engine/value_parts.h"
#include "skep/batch.h"
#include "types/value_type.h"

namespace skep {

// Whether a key with this deadline (0: none) is gone.
inline bool HasExpired(uint64_t deadline_ms, uint64_t now_ms) {
  return deadline_ms != 0 && deadline_ms <= now_ms;
}

// A key as an engine holds it, maybe past its deadline.
struct PointState {
  std::string_view value;
  uint64_t deadline_ms = 0;  // 0: none
  uint8_t type = kPlainType;
};

// What the engine has to do to the key.
struct PointEffect {
  enum class Action : uint8_t { kKeep, kStore, kErase };
  Action action = Action::kKeep;
  uint8_t type = kPlainType;  // kStore
  // kStore: the value, in the caller's bytes, the state's, or the batch's scratch; its deadline.
  std::string_view value = {};
  uint64_t deadline_ms = 0;
};

// Fills in the outcome of `slot`, but for its version and hint, and says what to do. `found` is
// what the engine holds; past its deadline it counts as absent (kKeep then leaves it where it is).
// May be called again if the key has changed meanwhile. Not for kMove, ranges, kRequireUnchanged.
//   kWrongType, of the value that is found;
//   kTooLarge  (also: a limit of the batch is reached), kInvalidArgument (a function makes a value
//              that is too short) and a function's own errors: the outcome is kRefused, and the key
//              is kept. It is also kept if the outcome is kPostponed.
PointEffect ApplyPoint(const Request& request, const std::optional<PointState>& found,
                       uint64_t now_ms, const EngineTraits& traits, BatchWriter& out,
                       uint32_t slot);

// Whether the request lets the bytes of the value that it finds be seen, so that ApplyPoint needs
// them. A kGet is another matter.
bool NeedsBytes(const Request& request);
// Whether all that the request does with the bytes of the value before is to return them, and they
// may be pinned for that.
bool MayPinPrevious(const Request& request);

// ApplyPoint for a kApply of a function that has a parts body, on a value in parts that is present.
// The request has no kOperandOfSlot.
PartsEffect ApplyParts(const Request& request, const ValueParts& value, const PointState& found,
                       const EngineTraits& traits, BatchWriter& out, uint32_t slot);

// Refuses a request because the value at its key has another type than it asks for.
void RefuseType(uint8_t type, BatchWriter& out, uint32_t slot);

// Whether the request's key was set aside by an earlier request of its batch (types/form_scope.h).
// Cost: two loads, as nearly no batch sets keys aside.
[[gnu::always_inline]] inline bool IsSetAside(const Request& request) {
  const types::FormScope* const scope = types::FormScope::Current();
  return scope != nullptr && scope->HasSetAside(request.key);
}
// Sets the request aside if it asks for a collection of `wanted` in one value and the value that it
// finds is the large form of that, and the thread's batch sets such requests aside.
bool SetsAsideLarge(const Request& request, uint8_t wanted, uint8_t found, BatchWriter& out,
                    uint32_t slot);

// Fills in what a kGet with kNoValue or kByteRange returns of the value that it finds.
void TellPart(const Request& request, const PointState& found, BatchWriter& out, uint32_t slot);

// ApplyPoint for a kGet, which changes nothing.
[[gnu::always_inline]] inline void ApplyGet(const Request& request,
                                            const std::optional<PointState>& found, uint64_t now_ms,
                                            BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  const bool is_absent = !found || HasExpired(found->deadline_ms, now_ms);
  if (out.IsFull() && (!is_absent || out.IsPostponing())) [[unlikely]]
    return out.LeaveOut(slot);
  if (IsSetAside(request)) [[unlikely]]
    return out.Postpone(slot);
  if (is_absent) {
    outcome.verdict = Verdict::kAbsent;
    return;
  }
  outcome.verdict = Verdict::kDone;
  outcome.present = true;
  outcome.deadline_ms = found->deadline_ms;
  outcome.type = found->type;
  if ((request.flags & (Request::kNoValue | Request::kByteRange)) != 0) {
    TellPart(request, *found, out, slot);
  } else if (found->type == request.type) [[likely]] {
    outcome.value = out.scratch().Copy(found->value);
  } else if (SetsAsideLarge(request, request.type, found->type, out, slot)) {
    return;
  } else if (!request.has(Request::kIfOfType)) {
    RefuseType(found->type, out, slot);
  }
}

inline bool IsUpdate(const Request& request) {
  return request.op == Op::kApply && request.function->kind == FunctionKind::kUpdate;
}

// Updates elements in the bytes of the value that the engine holds, which no reader of an older
// version may see any more. `requests` are of its key, in order, and the first of them IsUpdate():
// it is done, and so are those that follow it with the same function and options, as many as the
// batch's limits allow. Fills in their outcomes, from `slot` on, which are as BatchWriter made
// them. Returns how many were done. A request that does not fit the value is refused, and nothing
// is changed.
uint32_t UpdateInPlace(std::span<const Request> requests, std::span<char> value,
                       uint64_t deadline_ms, BatchWriter& out, uint32_t slot);

// The effect of kExpire and kExpireRange on a key that is present; kKeep if `when` does not hold.
PointEffect ApplyExpiry(const Request& request, const PointState& state, uint64_t now_ms);

}  // namespace skep

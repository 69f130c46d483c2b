#include "engine/point.h"

#include <algorithm>
#include <type_traits>

#include "engine/element_functions.h"
#include "engine/request_chain.h"

namespace skep {
namespace {

constexpr uint8_t kComparesValue =
    Request::kEquals | Request::kDiffers | Request::kDigestEquals | Request::kDigestDiffers;

// Whether the conditions of `when` about the value hold.
bool Holds(const Request& r, std::string_view value) {
  if ((r.when & kComparesValue) == 0) return true;
  if (r.needs(Request::kEquals)) return r.other == value;
  if (r.needs(Request::kDiffers)) return r.other != value;
  return (r.digest == DigestOf(value)) == r.needs(Request::kDigestEquals);
}

// Whether the request takes time with the length of the value that it finds, beside copying.
bool LooksAtValue(const Request& r) {
  return r.op == Op::kApply || (r.when & kComparesValue) != 0 || r.op == Op::kRequireValue ||
         r.op == Op::kRequireDigest;
}

// The type that the request asks for.
uint8_t TypeOf(const Request& r) { return r.op == Op::kApply ? r.function->type : r.type; }

// Whether the operation may act on the key it finds.
Verdict Judge(const Request& r, const PointState* now) {
  switch (r.op) {
    case Op::kInsert:
    case Op::kRequireAbsent:
      return now ? Verdict::kExists : Verdict::kDone;
    case Op::kPut:
      if (now) break;
      return r.needs(Request::kEquals) || r.needs(Request::kDigestEquals) ? Verdict::kAbsent
                                                                          : Verdict::kDone;
    default:
      if (!now) return Verdict::kAbsent;
      break;
  }
  switch (r.op) {
    case Op::kRequireValue:
      return r.other == now->value ? Verdict::kDone : Verdict::kMismatch;
    case Op::kRequireDigest:
      return r.digest == DigestOf(now->value) ? Verdict::kDone : Verdict::kMismatch;
    default:
      return Holds(r, now->value) ? Verdict::kDone : Verdict::kMismatch;
  }
}

// A value with a deadline that has passed already is deleted, not stored.
PointEffect Store(const PointState& state, bool present, uint64_t now_ms) {
  if (!HasExpired(state.deadline_ms, now_ms)) {
    return {.action = PointEffect::Action::kStore,
            .type = state.type,
            .value = state.value,
            .deadline_ms = state.deadline_ms};
  }
  return {.action = present ? PointEffect::Action::kErase : PointEffect::Action::kKeep};
}

// The value to store may be a part of the one that it replaces.
void NoteStored(std::string_view value, const PointState* now, BatchWriter& out, uint32_t slot) {
  if (!out.notes_effects()) return;
  const bool is_part = now != nullptr && !value.empty() && value.data() >= now->value.data() &&
                       value.data() < now->value.data() + now->value.size();
  out.Note(slot, Effect::Kind::kStore, is_part ? out.scratch().Copy(value) : value);
}

// The operand of a kApply.
std::string_view OperandOf(const Request& r, BatchWriter& out) {
  if (!r.has(Request::kOperandOfSlot)) return r.value;
  const std::string_view other = out.outcome(r.limit).value;
  return r.value.empty() ? other : out.scratch().Concat(r.value, other);
}

PointEffect ApplyFunction(const Request& r, const PointState* now, const EngineTraits& traits,
                          BatchWriter& out, uint32_t slot) {
  FunctionInput input{.value = {},
                      .operand = OperandOf(r, out),
                      .scratch = &out.scratch(),
                      .function = r.function,
                      .value_bytes_max = traits.value_bytes_max,
                      .now_ms = r.deadline_ms != 0 ? r.deadline_ms : out.now_ms()};
  if (now != nullptr) input.value = now->value;
  const FunctionEffect effect = r.function->body(input);
  types::FormScope* const scope = types::FormScope::Current();
  if (scope != nullptr && scope->TakeOutgrown() && scope->sets_aside()) [[unlikely]] {
    scope->SetAside(r.key);
    out.Postpone(slot);
    return {};
  }
  Status status = effect.status;
  if (status.ok() && effect.action == FunctionEffect::Action::kReplace) {
    if (effect.value.size() > traits.value_bytes_max) {
      status = {Code::kTooLarge, "value exceeds the maximum size", traits.value_bytes_max};
    } else if (effect.value.size() < traits.value_bytes_min) {
      status = {Code::kInvalidArgument, "value is shorter than those of this keyspace",
                traits.value_bytes_min};
    }
  }
  if (!status.ok()) {
    out.Refuse(slot, status);
    return {};
  }
  Outcome& outcome = out.outcome(slot);
  outcome.verdict = Verdict::kDone;
  outcome.integer = effect.integer;
  // The returned bytes may be a view of the value that is about to change.
  outcome.value = out.scratch().Copy(effect.returned);
  switch (effect.action) {
    case FunctionEffect::Action::kKeep:
      out.Note(slot, Effect::Kind::kNothing);
      return {};
    case FunctionEffect::Action::kErase:
      out.Note(slot, now ? Effect::Kind::kErase : Effect::Kind::kNothing);
      return {.action = now ? PointEffect::Action::kErase : PointEffect::Action::kKeep};
    case FunctionEffect::Action::kReplace:
      NoteStored(effect.value, now, out, slot);
      return {.action = PointEffect::Action::kStore,
              .type = r.function->type,
              .value = effect.value,
              .deadline_ms = now ? now->deadline_ms : 0};
  }
  return {};
}

}  // namespace

// Such a request also asks that the value has a type.
bool NeedsBytes(const Request& r) { return LooksAtValue(r) || r.has(Request::kReturnPrevious); }

bool MayPinPrevious(const Request& r) {
  return r.op != Op::kGet && r.has(Request::kReturnPrevious) && r.has(Request::kMayPin) &&
         !LooksAtValue(r);
}

PartsEffect ApplyParts(const Request& r, const ValueParts& value, const PointState& found,
                       const EngineTraits& traits, BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  outcome = {.present = true, .type = found.type, .deadline_ms = found.deadline_ms};
  if (out.IsFull()) {
    out.LeaveOut(slot);
    return {};
  }
  if (IsSetAside(r)) {
    out.Postpone(slot);
    return {};
  }
  if (found.type != r.function->type) {
    RefuseType(found.type, out, slot);
    return {};
  }
  PartsEffect effect = r.function->parts_body({.value = value,
                                               .operand = r.value,
                                               .scratch = &out.scratch(),
                                               .function = r.function,
                                               .value_bytes_max = traits.value_bytes_max});
  if (!effect.status.ok()) {
    out.Refuse(slot, effect.status);
    return {};
  }
  out.CountWork(r.value.size() + effect.seen_bytes);
  for (const PartEdit& edit : effect.edits) out.CountWork(edit.bytes.size());
  outcome.verdict = Verdict::kDone;
  outcome.integer = effect.integer;
  outcome.value = effect.returned;
  if (!effect.changes) out.Note(slot, Effect::Kind::kNothing);
  return effect;
}

void TellPart(const Request& r, const PointState& found, BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  if (r.has(Request::kNoValue)) {
    outcome.integer = static_cast<int64_t>(found.value.size());
  } else if (found.type == r.type) {
    const auto [begin, end] = r.bytes.Of(found.value.size());
    outcome.value = out.scratch().Copy(found.value.substr(begin, end - begin));
  } else if (!SetsAsideLarge(r, r.type, found.type, out, slot) && !r.has(Request::kIfOfType)) {
    RefuseType(found.type, out, slot);
  }
}

void RefuseType(uint8_t type, BatchWriter& out, uint32_t slot) {
  out.Refuse(slot, {Code::kWrongType, "the value at the key is of another type", type});
}

uint32_t UpdateInPlace(std::span<const Request> requests, std::span<char> value,
                       uint64_t deadline_ms, BatchWriter& out, uint32_t slot) {
  const Request& first = requests.front();
  const Function& update = *first.function;
  const auto parsed = ParseUpdate(first.value);
  const Status status = parsed ? CheckUpdate(update, *parsed, value.size()) : parsed.error();
  // Fullness is judged first: if operations before this one on its key were refused because of it,
  // `found` is not yet the value that the request is about.
  const bool is_full = out.IsFull();
  if (is_full || !status.ok()) {
    out.outcome(slot) = {.present = true, .deadline_ms = deadline_ms};
    is_full ? out.LeaveOut(slot) : out.Refuse(slot, status);
    return 1;
  }
  using Returns = UpdateOptions::Returns;
  const Returns returns = parsed->returns;
  const size_t size = value.size();
  constexpr size_t kAnswersBytesMax = size_t{64} << 10;  // of updates that are done together
  const size_t bytes_max =
      returns == Returns::kNothing ? out.work_left() : std::min(kAnswersBytesMax, out.work_left());
  size_t count_max = requests.size();
  if (count_max * size > bytes_max) count_max = std::max<size_t>(bytes_max / size, 1);
  const auto is_same = [&](const Request& r) {
    return r.op == Op::kApply && r.function == &update && r.value.size() == first.value.size() &&
           std::memcmp(r.value.data(), first.value.data(), kUpdateHeaderBytes) == 0;
  };
  size_t count = 1;
  while (count < count_max && is_same(requests[count])) ++count;
  out.CountWork(count * size);
  char* answer = returns == Returns::kNothing ? nullptr : out.scratch().Allocate(count * size);
  const size_t elements = size / BytesOf(update.element);
  const auto do_all = [&](const auto bytes) {
    Outcome* outcome = &out.outcome(slot);
    for (size_t i = 0; i < count; ++i, ++outcome) {
      if (returns == Returns::kOld) CopyBytes(answer, value.data(), bytes);
      update.kernel.update(update, value.data(), requests[i].value.data() + kUpdateHeaderBytes,
                           parsed->is_vector, elements);
      if (returns == Returns::kNew) CopyBytes(answer, value.data(), bytes);
      outcome->verdict = Verdict::kDone;
      outcome->present = true;
      outcome->deadline_ms = deadline_ms;
      outcome->integer = static_cast<int64_t>(elements);
      if (answer == nullptr) continue;
      outcome->value = {answer, bytes};
      answer += bytes;
    }
  };
  // A value of one element is a counter.
  if (size == 8) {
    do_all(std::integral_constant<size_t, 8>());
  } else {
    do_all(size);
  }
  return static_cast<uint32_t>(count);
}

PointEffect ApplyExpiry(const Request& r, const PointState& state, uint64_t now_ms) {
  const auto order = [](uint64_t deadline_ms) { return deadline_ms - 1; };  // none is the latest
  const uint64_t has = order(state.deadline_ms);
  const uint64_t gets = order(r.deadline_ms);
  if ((r.needs(Request::kHasNoDeadline) && state.deadline_ms != 0) ||
      (r.needs(Request::kHasDeadline) && state.deadline_ms == 0) ||
      (r.needs(Request::kLater) && gets <= has) || (r.needs(Request::kEarlier) && gets >= has)) {
    return {};
  }
  return Store({state.value, r.deadline_ms, state.type}, true, now_ms);
}

bool SetsAsideLarge(const Request& request, uint8_t wanted, uint8_t found, BatchWriter& out,
                    uint32_t slot) {
  types::FormScope* const scope = types::FormScope::Current();
  const bool is_large = types::IsLarge(found) && types::KindOf(found) == wanted;
  if (!is_large || scope == nullptr || !scope->sets_aside()) return false;
  scope->SetAside(request.key);
  out.Postpone(slot);
  return true;
}

PointEffect ApplyPoint(const Request& r, const std::optional<PointState>& found, uint64_t now_ms,
                       const EngineTraits& traits, BatchWriter& out, uint32_t slot) {
  if (r.op == Op::kGet) {
    out.outcome(slot) = Outcome{};
    ApplyGet(r, found, now_ms, out, slot);
    return {};
  }
  const bool present = found && !HasExpired(found->deadline_ms, now_ms);
  const PointState* const now = present ? &*found : nullptr;
  Outcome& outcome = out.outcome(slot);
  outcome = Outcome{.present = present,
                    .type = present ? now->type : kPlainType,
                    .deadline_ms = present ? now->deadline_ms : 0};
  if (out.IsFull()) [[unlikely]] {
    out.LeaveOut(slot);
    return {};
  }
  if (IsSetAside(r)) [[unlikely]] {
    out.Postpone(slot);
    return {};
  }
  if (r.op == Op::kApply && r.has(Request::kOperandOfSlot)) {
    if (r.limit >= slot) {
      out.Refuse(slot, {Code::kInvalidArgument, "an operand is of an earlier slot"});
      return {};
    }
    const std::string_view operand = out.outcome(r.limit).value;
    if (operand.empty() ? r.has(Request::kUnlessNone) : HasUnlessSome(r)) {
      outcome.verdict = Verdict::kDone;
      outcome.value = operand;
      out.Note(slot, Effect::Kind::kNothing);
      return {};
    }
  }
  if (present && now->type != TypeOf(r) && NeedsBytes(r)) [[unlikely]] {
    if (SetsAsideLarge(r, TypeOf(r), now->type, out, slot)) return {};
    RefuseType(now->type, out, slot);
    return {};
  }
  out.CountWork(r.value.size() + (present && LooksAtValue(r) ? now->value.size() : 0));
  if (r.op == Op::kApply) return ApplyFunction(r, now, traits, out, slot);
  outcome.verdict = Judge(r, now);
  const bool returns = r.has(Request::kReturnPrevious) || outcome.verdict == Verdict::kMismatch;
  if (present && returns) outcome.value = out.scratch().Copy(now->value);
  if (outcome.verdict != Verdict::kDone || !IsWrite(r.op)) return {};
  switch (r.op) {
    case Op::kDelete:
      return {.action = PointEffect::Action::kErase};
    case Op::kExpire: {
      const PointEffect effect = ApplyExpiry(r, *now, now_ms);
      if (effect.action == PointEffect::Action::kKeep) outcome.verdict = Verdict::kMismatch;
      return effect;
    }
    default: {
      const bool keeps = r.deadline_ms == kKeepDeadline;
      const uint64_t kept = present ? now->deadline_ms : 0;
      return Store({r.value, keeps ? kept : r.deadline_ms, r.type}, present, now_ms);
    }
  }
}

}  // namespace skep

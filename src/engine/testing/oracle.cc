#include "engine/testing/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace skep {
namespace {

bool OnlyReads(const Batch& batch) {
  return std::ranges::none_of(batch.requests(), [](const Request& r) { return IsWrite(r.op); });
}

bool IsPoint(Op op) {
  return !IsRange(op) && op != Op::kDeleteAll && op != Op::kSample && op != Op::kWalk;
}

bool CountsEverything(const Request& r) {
  return r.op == Op::kCount && r.key.empty() && r.has(Request::kNoUpperBound) &&
         r.limit == kNoLimit;
}

}  // namespace

std::string Oracle::Check(const Batch& batch, Version ticket, Version released) {
  if (const Code code = BatchRefusal(batch); code != Code::kOk) {
    return CheckRefusedAll(batch, code);
  }
  const bool at_snapshot = batch.snapshot().id != 0;
  OracleState& state = at_snapshot ? pinned_.at(batch.snapshot().id) : state_;
  if (!at_snapshot) state.Advance(batch.now_ms());
  std::string difference = batch.kind() == Batch::Kind::kAtomic ? CheckAtomic(batch, state)
                                                                : CheckUnordered(batch, state);
  if (!difference.empty()) return difference;
  return traits_.multi_version ? CheckVersions(batch, ticket, released)
                               : CheckNoVersions(batch, ticket);
}

// kOk, or why every slot of the batch must be refused.
Code Oracle::BatchRefusal(const Batch& batch) const {
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  if (!batch.part_begins().empty() && !is_atomic) return Code::kInvalidArgument;
  if (batch.snapshot().id == 0) return Code::kOk;
  if (!traits_.snapshots) return Code::kNotSupported;
  if (!OnlyReads(batch)) return Code::kInvalidArgument;
  return pinned_.contains(batch.snapshot().id) ? Code::kOk : Code::kSnapshotTooOld;
}

// A slot that would be refused in any state may give that reason instead, and then abort an atomic
// batch.
std::string Oracle::CheckRefusedAll(const Batch& batch, Code code) const {
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  if (batch.applied() == is_atomic) return "a refused atomic batch is not applied";
  bool some_static = false;
  for (const Request& r : batch.requests()) some_static |= StaticRefusal(r, batch) != Code::kOk;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (is_atomic && some_static && out.verdict == Verdict::kAborted) continue;
    const Code own = StaticRefusal(batch.requests()[slot], batch);
    const bool is_right =
        out.status.code() == code || (own != Code::kOk && out.status.code() == own);
    if (out.verdict != Verdict::kRefused || !is_right) {
      return fmt::format("slot {}: not refused with code {}, as the whole batch must be", slot,
                         static_cast<int>(code));
    }
  }
  return {};
}

std::string Oracle::CheckVersions(const Batch& batch, Version ticket, Version released) const {
  Version atomic_version = 0;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.version > ticket) return fmt::format("slot {}: its version is above the ticket", slot);
    if (!IsWrite(batch.requests()[slot].op) || out.version == 0) continue;
    if (out.version <= released) {
      return fmt::format("slot {}: it wrote at {}, already released", slot, out.version);
    }
    if (batch.kind() != Batch::Kind::kAtomic) continue;
    if (atomic_version != 0 && atomic_version != out.version) {
      return fmt::format("slot {}: an atomic batch wrote at two versions", slot);
    }
    atomic_version = out.version;
  }
  return CheckReadVersions(batch);
}

// Checks that a read's version is not above the point write of this batch that replaces the value.
// It may be the same: a batch may write at one version. (The check of the slot itself has the other
// bounds: not below the write that was read, nor above the ticket.)
std::string Oracle::CheckReadVersions(const Batch& batch) {
  std::map<std::string_view, Version> replaced_at;
  for (auto slot = static_cast<uint32_t>(batch.size()); slot-- > 0;) {
    const Request& r = batch.requests()[slot];
    const Outcome& out = batch.outcome(slot);
    const bool writes = IsWrite(r.op) && IsPoint(r.op) && out.version != 0;
    if (writes) replaced_at[r.key] = out.version;
    if (writes && r.op == Op::kMove) replaced_at[r.other] = out.version;
    if (r.op != Op::kGet || out.verdict != Verdict::kDone) continue;
    const auto replaced = replaced_at.find(r.key);
    if (replaced != replaced_at.end() && out.version > replaced->second) {
      return fmt::format("slot {}: read at {}, but replaced at {}", slot, out.version,
                         replaced->second);
    }
  }
  return {};
}

std::string Oracle::CheckNoVersions(const Batch& batch, Version ticket) {
  if (ticket != 0) return "a ticket of an engine that has one version";
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    if (batch.outcome(slot).version == 0) continue;
    return fmt::format("slot {}: a version of an engine that has one version", slot);
  }
  return {};
}

std::string Oracle::CheckUnordered(const Batch& batch, OracleState& state) const {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Expected expected = Perform(batch, slot, state);
    if (std::string d = Compare(batch, slot, expected); !d.empty()) return d;
  }
  return batch.applied() ? "" : "an unordered batch says it was not applied";
}

std::string Oracle::CheckAtomic(const Batch& batch, OracleState& state) const {
  std::string difference;
  const auto size = static_cast<uint32_t>(batch.size());
  ForEachPart(batch, [&](const Part& part) {
    bool is_applied = false;
    difference = CheckPart(batch, part, state, is_applied);
    if (!difference.empty()) return false;
    if (!part.is_first) return true;
    if (is_applied != batch.applied()) {
      difference = fmt::format("applied: {}, though it must be {}", batch.applied(), is_applied);
    } else if (!is_applied) {
      difference = CheckAborted(batch, {.begin = part.end, .end = size, .is_first = false}, {});
    }
    return is_applied && difference.empty();
  });
  return difference;
}

// If the part is applied, `state` becomes its result, else it stays. Several slots may stop the
// part: the engine may name any that is refused in every state; else the first condition that does
// not hold, for conditions come first; else the first operation that is refused.
std::string Oracle::CheckPart(const Batch& batch, const Part& part, OracleState& state,
                              bool& is_applied) const {
  std::map<uint32_t, Expected> culprits;
  std::map<uint32_t, Expected> all;
  OracleState changed = state;
  const auto stops = [&](uint32_t slot) {
    const Expected& expected = all.emplace(slot, Perform(batch, slot, changed)).first->second;
    const bool is_condition = IsCondition(batch.requests()[slot].op);
    const bool is_culprit =
        is_condition ? expected.verdict != Verdict::kDone : expected.verdict == Verdict::kRefused;
    if (is_culprit) culprits.emplace(slot, expected);
    return is_culprit;
  };
  bool stopped = false;
  for (const bool conditions : {true, false}) {
    for (uint32_t slot = part.begin; slot < part.end && !stopped; ++slot) {
      if (IsCondition(batch.requests()[slot].op) == conditions) stopped = stops(slot);
    }
  }
  is_applied = !stopped;
  if (is_applied) {
    for (const auto& [slot, expected] : all) {
      if (std::string d = Compare(batch, slot, expected); !d.empty()) return d;
    }
    state = std::move(changed);
    return {};
  }
  for (uint32_t slot = part.begin; slot < part.end; ++slot) {
    const Code code = StaticRefusal(batch.requests()[slot], batch);
    if (code == Code::kOk) continue;
    culprits.try_emplace(slot, Expected{.verdict = Verdict::kRefused, .code = code});
  }
  return CheckAborted(batch, part, culprits);
}

// Checks that one of the culprits is named, if there are any, and that all other slots are aborted.
std::string Oracle::CheckAborted(const Batch& batch, const Part& part,
                                 const std::map<uint32_t, Expected>& culprits) const {
  bool named = culprits.empty();
  for (uint32_t slot = part.begin; slot < part.end; ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict == Verdict::kAborted) {
      if (out.status.code() != Code::kAborted) return fmt::format("slot {}: not kAborted", slot);
      continue;
    }
    if (!traits_.atomic && out.status.code() == Code::kNotSupported) {
      named = true;
      continue;
    }
    const auto culprit = culprits.find(slot);
    if (named || culprit == culprits.end()) {
      return fmt::format("slot {}: not aborted, though its part is not applied", slot);
    }
    named = true;
    if (std::string d = Compare(batch, slot, culprit->second); !d.empty()) return d;
  }
  return named ? "" : fmt::format("slots {} to {}: none says why", part.begin, part.end);
}

// kOk, or why the request must be refused whatever the state.
Code Oracle::StaticRefusal(const Request& r, const Batch& batch) const {
  if (batch.kind() == Batch::Kind::kAtomic && !traits_.atomic) return Code::kNotSupported;
  if (IsRange(r.op) && !traits_.ordered && !CountsEverything(r)) return Code::kNotSupported;
  const bool writes_range =
      r.op == Op::kDeleteAll || r.op == Op::kDeleteRange || r.op == Op::kExpireRange;
  if (writes_range && !traits_.range_writes) return Code::kNotSupported;
  if (r.op == Op::kSample && !traits_.samples) return Code::kNotSupported;
  if (r.op == Op::kWalk && !traits_.walks) return Code::kNotSupported;
  if (r.op == Op::kApply && !traits_.functions) return Code::kNotSupported;
  const bool is_typed =
      r.type != kPlainType || (r.op == Op::kApply && r.function->type != kPlainType);
  if (is_typed && !traits_.types) return Code::kNotSupported;
  const bool gives = r.deadline_ms != 0 && r.deadline_ms != kKeepDeadline;
  const bool expires = gives || r.op == Op::kExpire || r.op == Op::kExpireRange;
  if (expires && !traits_.expiry) return Code::kNotSupported;
  if (const Code code = FormRefusal(r, batch); code != Code::kOk) return code;
  if (!IsPoint(r.op)) return Code::kOk;
  if (r.key.size() > traits_.key_bytes_max) return Code::kTooLarge;
  if (r.op == Op::kMove && r.other.size() > traits_.key_bytes_max) return Code::kTooLarge;
  if (r.key.size() < traits_.key_bytes_min) return Code::kInvalidArgument;
  if (r.op == Op::kMove && r.other.size() < traits_.key_bytes_min) return Code::kInvalidArgument;
  const bool is_operand = r.op == Op::kApply;
  if (r.value.size() > (is_operand ? traits_.operand_bytes_max() : traits_.value_bytes_max)) {
    return Code::kTooLarge;
  }
  const bool stores = r.op == Op::kPut || r.op == Op::kInsert || r.op == Op::kUpdate;
  if (stores && r.value.size() < traits_.value_bytes_min) return Code::kInvalidArgument;
  return Code::kOk;
}

Code Oracle::FormRefusal(const Request& r, const Batch& batch) const {
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  const bool at_snapshot = batch.snapshot().id != 0;
  if ((IsCondition(r.op) || r.op == Op::kMove) && !is_atomic) return Code::kInvalidArgument;
  if (r.op == Op::kWalk && is_atomic) return Code::kInvalidArgument;
  const bool is_of_now = r.op == Op::kSample || r.op == Op::kWalk || r.op == Op::kRequireUnchanged;
  if (at_snapshot && is_of_now) return Code::kInvalidArgument;
  if (r.has(Request::kSeekFloor) && r.has(Request::kReverse)) return Code::kInvalidArgument;
  return WhenRefusal(r);
}

Code Oracle::WhenRefusal(const Request& r) {
  const bool may_keep = r.op != Op::kExpire && r.op != Op::kExpireRange;
  if (r.deadline_ms > kDeadlineMax && !(may_keep && r.deadline_ms == kKeepDeadline)) {
    return Code::kInvalidArgument;
  }
  const bool of_deadline = r.needs(Request::kHasNoDeadline) || r.needs(Request::kHasDeadline) ||
                           r.needs(Request::kLater) || r.needs(Request::kEarlier);
  if (of_deadline && may_keep) return Code::kInvalidArgument;
  const int of_value = r.needs(Request::kEquals) + r.needs(Request::kDiffers) +
                       r.needs(Request::kDigestEquals) + r.needs(Request::kDigestDiffers);
  const bool compares = r.op == Op::kPut || r.op == Op::kUpdate || r.op == Op::kDelete;
  if (of_value > 1 || (of_value == 1 && !compares)) return Code::kInvalidArgument;
  return Code::kOk;
}

Expected Oracle::Perform(const Batch& batch, uint32_t slot, OracleState& state) const {
  if (const Code code = StaticRefusal(batch.requests()[slot], batch); code != Code::kOk) {
    return {.verdict = Verdict::kRefused, .code = code};
  }
  return state.Perform(batch, slot);
}

std::string Oracle::Compare(const Batch& batch, uint32_t slot, const Expected& expected) const {
  const Outcome& out = batch.outcome(slot);
  const auto differ = [&](std::string_view what) {
    return fmt::format("slot {} of {}, op {}: {}", slot, batch.size(),
                       static_cast<int>(batch.requests()[slot].op), what);
  };
  if (out.verdict != expected.verdict) {
    return differ(fmt::format("verdict {} instead of {} ({})", static_cast<int>(out.verdict),
                              static_cast<int>(expected.verdict), out.status.what()));
  }
  if (out.status.code() != expected.code) {
    return differ(fmt::format("refused with {} instead of code {}", out.status.ToString(),
                              static_cast<int>(expected.code)));
  }
  if (expected.verdict == Verdict::kRefused) return {};
  if (out.integer != expected.integer) {
    return differ(fmt::format("integer {} instead of {}", out.integer, expected.integer));
  }
  if (expected.is_point && out.present != expected.present) {
    return differ(fmt::format("present: {}", out.present));
  }
  if (expected.is_point && out.type != expected.type) {
    return differ(fmt::format("type {} instead of {}", out.type, expected.type));
  }
  if (expected.is_point && out.deadline_ms != expected.deadline_ms) {
    return differ(fmt::format("deadline {} instead of {}", out.deadline_ms, expected.deadline_ms));
  }
  if (expected.value_matters && out.value != expected.value) {
    return differ(fmt::format("value '{}' instead of '{}'", out.value, expected.value));
  }
  if (out.version < expected.read_version_min) {
    return differ(
        fmt::format("version {}, before the write at {}", out.version, expected.read_version_min));
  }
  const bool knows_change = expected.changed_version_matters && traits_.multi_version;
  if (knows_change && out.version != expected.changed_version) {
    return differ(
        fmt::format("changed at {} instead of {}", out.version, expected.changed_version));
  }
  const bool has_version = IsWrite(batch.requests()[slot].op) && traits_.multi_version;
  if (has_version && expected.wrote != (out.version != 0)) {
    return differ("a write has a version exactly if it changed something");
  }
  if (out.more && !expected.may_say_more) return differ("it says that there may be more");
  if (!out.more && expected.must_say_more) return differ("it does not say that there is more");
  if (expected.wrong_bound) return differ("the bound to go on from loses or repeats keys");
  if (!expected.items_matter) return {};
  const bool same = std::ranges::equal(
      batch.items(slot), expected.items,
      [](const Item& a, const auto& b) { return a.key == b.first && a.value == b.second; });
  return same ? ""
              : differ(fmt::format("its {} items differ from the {} expected",
                                   batch.items(slot).size(), expected.items.size()));
}

}  // namespace skep

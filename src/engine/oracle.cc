#include "engine/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace skep {
namespace {

// The visible keys of the range, ascending. kSeekFloor moves its start.
std::vector<std::string> KeysIn(const Request& r, const Oracle::Map& map) {
  std::string lo(r.key);
  if (r.has(Request::kSeekFloor)) {
    for (const auto& [key, stored] : map) {
      if (key <= r.key) lo = key;
    }
  }
  std::vector<std::string> keys;
  for (const auto& [key, stored] : map) {
    if (key >= lo && (r.has(Request::kNoUpperBound) || key < r.other)) keys.push_back(key);
  }
  return keys;
}

bool OnlyReads(const Batch& batch) {
  return std::ranges::none_of(batch.requests(), [](const Request& r) { return IsWrite(r.op); });
}

}  // namespace

std::string Oracle::Check(const Batch& batch, Version ticket, Version released) {
  const bool at_snapshot = batch.snapshot().id != 0;
  if (at_snapshot && !traits_.snapshots) return CheckRefusedAll(batch, Code::kNotSupported);
  if (at_snapshot && !OnlyReads(batch)) return CheckRefusedAll(batch, Code::kInvalidArgument);
  if (at_snapshot && !pinned_.contains(batch.snapshot().id)) {
    return CheckRefusedAll(batch, Code::kSnapshotTooOld);
  }
  Map& map = at_snapshot ? pinned_[batch.snapshot().id] : map_;
  std::string difference =
      batch.kind() == Batch::Kind::kAtomic ? CheckAtomic(batch, map) : CheckUnordered(batch, map);
  if (!difference.empty()) return difference;
  return traits_.multi_version ? CheckVersions(batch, ticket, released)
                               : CheckNoVersions(batch, ticket);
}

// A slot that would be refused in any state may say so instead, and then abort an atomic batch.
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

// That a read's version is not below the write it read, nor above the ticket, is checked with the
// rest of its slot; here, that it is not above the point write that replaces the value in this
// batch. It may be the same: a batch may write at one version.
std::string Oracle::CheckReadVersions(const Batch& batch) {
  std::map<std::string_view, Version> replaced_at;
  for (auto slot = static_cast<uint32_t>(batch.size()); slot-- > 0;) {
    const Request& r = batch.requests()[slot];
    const Outcome& out = batch.outcome(slot);
    const bool is_point = !IsRange(r.op) && r.op != Op::kDeleteAll;
    if (IsWrite(r.op) && is_point && out.version != 0) replaced_at[r.key] = out.version;
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

std::string Oracle::CheckUnordered(const Batch& batch, Map& map) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Expected expected = Perform(batch, slot, map);
    if (std::string d = Compare(batch, slot, expected); !d.empty()) return d;
  }
  return batch.applied() ? "" : "an unordered batch says it was not applied";
}

// Which slot is named does not matter if several stop the batch; that it does stop it does.
std::string Oracle::CheckAtomic(const Batch& batch, Map& map) {
  Map changed = map;
  std::map<uint32_t, Expected> culprits;
  bool stopped = false;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& r = batch.requests()[slot];
    const bool is_condition = IsCondition(r.op);
    const bool is_refused = StaticRefusal(r, batch) != Code::kOk;
    if (stopped && !is_condition && !is_refused) continue;  // it acts on nothing determined
    const Expected expected = Perform(batch, slot, is_condition ? map : changed);
    const bool stops =
        is_condition ? expected.verdict != Verdict::kDone : expected.verdict == Verdict::kRefused;
    if (stops) culprits.emplace(slot, expected);
    if (stops && !is_condition) stopped = true;
    if (!culprits.empty() || batch.applied() == false) continue;
    if (std::string d = Compare(batch, slot, expected); !d.empty()) return d;
  }
  if (culprits.empty() != batch.applied()) {
    return fmt::format("applied: {}, though {} slots stop it", batch.applied(), culprits.size());
  }
  if (culprits.empty()) {
    map = std::move(changed);
    return {};
  }
  for (const auto& [slot, expected] : culprits) {
    if (batch.outcome(slot).verdict != Verdict::kAborted) {
      return CheckAborted(batch, slot, expected);
    }
  }
  return "not applied, and no slot says why";
}

std::string Oracle::CheckAborted(const Batch& batch, uint32_t culprit,
                                 const Expected& expected) const {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (slot != culprit && out.verdict != Verdict::kAborted) {
      const bool all_refused = !traits_.atomic && out.status.code() == Code::kNotSupported;
      if (!all_refused) return fmt::format("slot {}: not aborted because of {}", slot, culprit);
    }
  }
  return Compare(batch, culprit, expected);
}

// kOk, or why the request must be refused whatever the state.
Code Oracle::StaticRefusal(const Request& r, const Batch& batch) const {
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  if (is_atomic && !traits_.atomic) return Code::kNotSupported;
  if (IsRange(r.op) && !traits_.ordered) return Code::kNotSupported;
  if (r.op == Op::kApply && !traits_.functions) return Code::kNotSupported;
  if (IsCondition(r.op) && !is_atomic) return Code::kInvalidArgument;
  if (r.op == Op::kSample && batch.snapshot().id != 0) return Code::kInvalidArgument;
  if (r.has(Request::kSeekFloor) && r.has(Request::kReverse)) return Code::kInvalidArgument;
  if (IsRange(r.op) || r.op == Op::kSample) return Code::kOk;
  if (r.key.size() > traits_.key_bytes_max) return Code::kTooLarge;
  if (r.value.size() > traits_.value_bytes_max) return Code::kTooLarge;
  return Code::kOk;
}

Oracle::Expected Oracle::Perform(const Batch& batch, uint32_t slot, Map& map) const {
  const Request& r = batch.requests()[slot];
  const Outcome& out = batch.outcome(slot);
  if (const Code code = StaticRefusal(r, batch); code != Code::kOk) {
    return {.verdict = Verdict::kRefused, .code = code};
  }
  switch (r.op) {
    case Op::kScan:
      return Scan(batch, slot, map);
    case Op::kCount:
      return Count(r, out, map);
    case Op::kDeleteRange:
      return DeleteRange(r, map);
    case Op::kDeleteAll:
      return DeleteAll(map);
    case Op::kSample:
      return Sample(batch, slot, map);
    case Op::kApply:
      return Apply(r, out, map);
    default:
      return Point(r, out, map);
  }
}

Verdict Oracle::Judge(const Request& r, const Map& map) {
  const auto at = map.find(r.key);
  const bool present = at != map.end();
  switch (r.op) {
    case Op::kPut:
      return Verdict::kDone;
    case Op::kInsert:
    case Op::kRequireAbsent:
      return present ? Verdict::kExists : Verdict::kDone;
    case Op::kCompareAndSet:
    case Op::kRequireValue:
      if (present && at->second.value != r.other) return Verdict::kMismatch;
      break;
    case Op::kCompareDigestAndSet:
    case Op::kRequireDigest:
      if (present && DigestOf(at->second.value) != r.digest) return Verdict::kMismatch;
      break;
    default:
      break;
  }
  return present ? Verdict::kDone : Verdict::kAbsent;
}

Oracle::Expected Oracle::Point(const Request& r, const Outcome& out, Map& map) {
  Expected expected{.verdict = Judge(r, map)};
  const auto at = map.find(r.key);
  const bool present = at != map.end();
  const bool done = expected.verdict == Verdict::kDone;
  expected.value_matters =
      r.op == Op::kGet || expected.verdict == Verdict::kMismatch || r.has(Request::kReturnPrevious);
  expected.present = present;
  if (present && r.has(Request::kNoValue)) {
    expected.integer = static_cast<int64_t>(at->second.value.size());
  } else if (present) {
    expected.value = at->second.value;
  }
  if (r.op == Op::kGet && done) expected.read_version_min = at->second.version;
  if (!IsWrite(r.op) || !done) return expected;
  expected.wrote = true;
  if (r.op == Op::kDelete) {
    map.erase(at);
  } else {
    map[std::string(r.key)] = {.value = std::string(r.value), .version = out.version};
  }
  return expected;
}

Oracle::Expected Oracle::Apply(const Request& r, const Outcome& out, Map& map) const {
  const auto at = map.find(r.key);
  Scratch scratch;
  FunctionInput input{.operand = r.value, .scratch = &scratch};
  if (at != map.end()) input.value = at->second.value;
  const FunctionEffect effect = r.function->body(input);
  if (!effect.status.ok()) return {.verdict = Verdict::kRefused, .code = effect.status.code()};
  Expected expected{.integer = effect.integer,
                    .present = at != map.end(),
                    .value_matters = true,
                    .value = std::string(effect.returned)};
  switch (effect.action) {
    case FunctionEffect::Action::kKeep:
      break;
    case FunctionEffect::Action::kErase:
      expected.wrote = at != map.end();
      if (at != map.end()) map.erase(at);
      break;
    case FunctionEffect::Action::kReplace:
      if (effect.value.size() > traits_.value_bytes_max) {
        return {.verdict = Verdict::kRefused, .code = Code::kTooLarge};
      }
      expected.wrote = true;
      map[std::string(r.key)] = {.value = std::string(effect.value), .version = out.version};
      break;
  }
  return expected;
}

Oracle::Expected Oracle::Scan(const Batch& batch, uint32_t slot, const Map& map) {
  const Request& r = batch.requests()[slot];
  const Outcome& out = batch.outcome(slot);
  std::vector<std::string> keys = KeysIn(r, map);
  if (r.has(Request::kReverse)) std::ranges::reverse(keys);
  Expected expected{.items_matter = true,
                    .wrong_bound = out.more && !MayGoOnFrom(batch, slot, map)};
  size_t bytes = 0;
  for (const std::string& key : keys) {
    expected.may_say_more = expected.items.size() == r.limit || bytes > batch.scan_bytes_max();
    expected.must_say_more = expected.may_say_more;
    if (expected.must_say_more) return expected;
    const bool stopped = out.more && expected.items.size() == out.item_count;
    if (stopped && batch.scan_visits_max() != kNoLimit) {
      expected.may_say_more = true;
      return expected;
    }
    const bool wants_value = !r.has(Request::kKeysOnly);
    expected.items.emplace_back(key, wants_value ? map.find(key)->second.value : "");
    bytes += key.size() + expected.items.back().second.size();
  }
  // More visits than items: there may be deleted keys behind them.
  expected.may_say_more = expected.items.size() == r.limit || bytes > batch.scan_bytes_max() ||
                          batch.scan_visits_max() != kNoLimit;
  return expected;
}

// What was seen lies before the bound to go on from, all that was not behind it.
bool Oracle::MayGoOnFrom(const Batch& batch, uint32_t slot, const Map& map) {
  const Request& r = batch.requests()[slot];
  const std::string_view bound = batch.outcome(slot).value;
  const bool reverse = r.has(Request::kReverse);
  const auto items = batch.items(slot);
  const auto seen = [&](const std::string& key) {
    return std::ranges::find(items, key, &Item::key) != items.end();
  };
  return std::ranges::all_of(KeysIn(r, map), [&](const std::string& key) {
    return seen(key) == (reverse ? key >= bound : key < bound);
  });
}

// A count may stop anywhere once it has visited `limit` keys; where it says it stopped, it must
// have counted what is before.
Oracle::Expected Oracle::Count(const Request& r, const Outcome& out, const Map& map) {
  const std::vector<std::string> keys = KeysIn(r, map);
  Expected expected{.integer = static_cast<int64_t>(keys.size())};
  expected.may_say_more = r.limit != kNoLimit;
  expected.must_say_more = keys.size() > r.limit;
  if (!out.more) return expected;
  expected.integer =
      std::ranges::count_if(keys, [&](const std::string& key) { return key < out.value; });
  if (expected.integer > r.limit || out.value <= r.key) expected.may_say_more = false;
  return expected;
}

Oracle::Expected Oracle::DeleteRange(const Request& r, Map& map) {
  std::vector<std::string> keys = KeysIn(r, map);
  Expected expected{.must_say_more = keys.size() > r.limit, .may_say_more = keys.size() >= r.limit};
  if (keys.size() > r.limit) keys.resize(r.limit);
  for (const std::string& key : keys) map.erase(key);
  expected.integer = static_cast<int64_t>(keys.size());
  expected.wrote = !keys.empty();
  return expected;
}

Oracle::Expected Oracle::DeleteAll(Map& map) {
  const Expected expected{.integer = static_cast<int64_t>(map.size()), .wrote = !map.empty()};
  map.clear();
  return expected;
}

Oracle::Expected Oracle::Sample(const Batch& batch, uint32_t slot, const Map& map) {
  if (map.empty()) return {.verdict = Verdict::kAbsent, .items_matter = true};
  Expected expected{.items_matter = true};
  const auto items = batch.items(slot);
  const auto at = items.size() == 1 ? map.find(items[0].key) : map.end();
  expected.items.emplace_back("a key of the map", "");
  if (at != map.end()) expected.items = {{at->first, at->second.value}};
  return expected;
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
  if (out.present != expected.present) return differ(fmt::format("present: {}", out.present));
  if (expected.value_matters && out.value != expected.value) {
    return differ(fmt::format("value '{}' instead of '{}'", out.value, expected.value));
  }
  if (out.version < expected.read_version_min) {
    return differ(
        fmt::format("version {}, before the write at {}", out.version, expected.read_version_min));
  }
  const bool has_version = IsWrite(batch.requests()[slot].op) && traits_.multi_version;
  if (has_version && expected.wrote != (out.version != 0)) {
    return differ("a write has a version exactly if it changed something");
  }
  if (out.more && !expected.may_say_more) return differ("it says that there may be more");
  if (!out.more && expected.must_say_more) return differ("it does not say that there is more");
  if (!expected.items_matter) return {};
  if (expected.wrong_bound) return differ("the bound to go on from loses or repeats keys");
  const bool same = std::ranges::equal(
      batch.items(slot), expected.items,
      [](const Item& a, const auto& b) { return a.key == b.first && a.value == b.second; });
  return same ? ""
              : differ(fmt::format("its {} items differ from the {} expected",
                                   batch.items(slot).size(), expected.items.size()));
}

}  // namespace skep

#include "engine/testing/oracle_state.h"

#include <algorithm>
#include <set>

namespace skep {

const OracleState::Stored* OracleState::Find(std::string_view key) const {
  const auto at = map_.find(key);
  return at == map_.end() || IsGone(at->second.deadline_ms) ? nullptr : &at->second;
}

size_t OracleState::live() const {
  return static_cast<size_t>(std::ranges::count_if(
      map_, [&](const auto& pair) { return !IsGone(pair.second.deadline_ms); }));
}

void OracleState::Reclaim() {
  std::erase_if(map_, [&](const auto& pair) { return IsGone(pair.second.deadline_ms); });
}

void OracleState::Watch(uint64_t watch, std::string_view key, uint64_t now_ms) {
  const Stored* const now = Find(key);
  const bool present = now != nullptr && (now->deadline_ms == 0 || now->deadline_ms > now_ms);
  watches_[watch] = {
      .key = std::string(key), .present = present, .deadline_ms = present ? now->deadline_ms : 0};
}

void OracleState::Touch(std::string_view key, Version at) {
  for (auto& [id, watched] : watches_) {
    if (watched.key != key || watched.touched) continue;
    watched.touched = true;
    watched.expired_before = HasExpired(watched);
    watched.version = at;
  }
}

void OracleState::Store(std::string_view key, Stored stored, Version at) {
  Touch(key, at);
  map_.insert_or_assign(std::string(key), std::move(stored));
}

void OracleState::Erase(std::string_view key, Version at) {
  Touch(key, at);
  map_.erase(map_.find(key));
}

// The present keys of the range, ascending. kSeekFloor moves its start.
OracleState::Keys OracleState::KeysIn(const Request& r) const {
  std::string lo(r.key);
  if (r.has(Request::kSeekFloor)) {
    for (const auto& [key, stored] : map_) {
      if (key <= r.key && !IsGone(stored.deadline_ms)) lo = key;
    }
  }
  Keys keys;
  for (const auto& [key, stored] : map_) {
    const bool in_range = key >= lo && (r.has(Request::kNoUpperBound) || key < r.other);
    if (in_range && !IsGone(stored.deadline_ms)) keys.push_back(key);
  }
  return keys;
}

Expected OracleState::Perform(const Batch& batch, uint32_t slot) {
  const Request& r = batch.requests()[slot];
  const Outcome& out = batch.outcome(slot);
  switch (r.op) {
    case Op::kScan:
      return Scan(batch, slot);
    case Op::kCount:
      return Count(r, out);
    case Op::kDeleteRange:
      return DeleteRange(r, out);
    case Op::kExpireRange:
      return ExpireRange(r, out);
    case Op::kDeleteAll:
      return DeleteAll(out);
    case Op::kSample:
      return Sample(batch, slot);
    case Op::kWalk:
      return Walk(batch, slot);
    case Op::kApply:
      return Apply(r, out);
    case Op::kMove:
      return Move(r, out);
    case Op::kRequireEmpty:
      return RequireEmpty(r);
    case Op::kRequireUnchanged:
      return RequireUnchanged(r);
    default:
      return Point(r, out);
  }
}

// Whether the conditions of `when` hold. An absent key has no value and no deadline.
bool OracleState::FitsWhen(const Request& r, const Stored* now) const {
  const auto same_value = [&] { return now != nullptr && now->value == r.other; };
  const auto same_digest = [&] { return now != nullptr && DigestOf(now->value) == r.digest; };
  if (r.needs(Request::kEquals) && !same_value()) return false;
  if (r.needs(Request::kDiffers) && same_value()) return false;
  if (r.needs(Request::kDigestEquals) && !same_digest()) return false;
  if (r.needs(Request::kDigestDiffers) && same_digest()) return false;
  const uint64_t old_deadline = now != nullptr ? now->deadline_ms : 0;
  if (r.needs(Request::kHasNoDeadline) && old_deadline != 0) return false;
  if (r.needs(Request::kHasDeadline) && old_deadline == 0) return false;
  const uint64_t old_end = old_deadline == 0 ? UINT64_MAX : old_deadline;
  const uint64_t new_end = r.deadline_ms == 0 ? UINT64_MAX : r.deadline_ms;
  if (r.needs(Request::kLater) && new_end <= old_end) return false;
  if (r.needs(Request::kEarlier) && new_end >= old_end) return false;
  return true;
}

Verdict OracleState::Judge(const Request& r, const Stored* now) const {
  const bool must_be_absent = r.op == Op::kInsert || r.op == Op::kRequireAbsent;
  if (must_be_absent) return now == nullptr ? Verdict::kDone : Verdict::kExists;
  if (r.op == Op::kPut && now == nullptr) {
    return FitsWhen(r, nullptr) ? Verdict::kDone : Verdict::kAbsent;
  }
  if (now == nullptr) return Verdict::kAbsent;
  bool fits = FitsWhen(r, now);
  if (r.op == Op::kRequireValue) fits = now->value == r.other;
  if (r.op == Op::kRequireDigest) fits = DigestOf(now->value) == r.digest;
  return fits ? Verdict::kDone : Verdict::kMismatch;
}

// Whether the value has the type that the request asks for, if it asks.
bool OracleState::FitsType(const Request& r, const Stored& now) {
  if (r.op == Op::kApply) return now.type == r.function->type;
  if (r.op == Op::kGet) {
    return r.has(Request::kNoValue) || r.has(Request::kIfOfType) || now.type == r.type;
  }
  const bool compares = r.op == Op::kRequireValue || r.op == Op::kRequireDigest ||
                        r.needs(Request::kEquals) || r.needs(Request::kDiffers) ||
                        r.needs(Request::kDigestEquals) || r.needs(Request::kDigestDiffers);
  const bool asks = compares || r.has(Request::kReturnPrevious);
  return !asks || now.type == r.type;
}

Expected OracleState::Point(const Request& r, const Outcome& out) {
  const Stored* const now = Find(r.key);
  if (now != nullptr && !FitsType(r, *now)) {
    return {.verdict = Verdict::kRefused, .code = Code::kWrongType};
  }
  Expected expected{.verdict = Judge(r, now), .is_point = true, .present = now != nullptr};
  const bool compared = expected.verdict == Verdict::kMismatch && r.op != Op::kExpire;
  expected.value_matters = r.op == Op::kGet || compared || r.has(Request::kReturnPrevious);
  if (now != nullptr) {
    expected.type = now->type;
    expected.deadline_ms = now->deadline_ms;
    const bool is_skipped = r.op == Op::kGet && now->type != r.type;
    if (r.has(Request::kNoValue)) {
      expected.integer = static_cast<int64_t>(now->value.size());
    } else if (!is_skipped) {
      expected.value = now->value;
      if (r.op == Op::kGet && r.has(Request::kByteRange)) {
        const auto [begin, end] = r.bytes.Of(now->value.size());
        expected.value = expected.value.substr(begin, end - begin);
      }
    }
  }
  if (expected.verdict != Verdict::kDone) return expected;
  if (r.op == Op::kGet) expected.read_version_min = now->version;
  if (IsWrite(r.op)) expected.wrote = StorePoint(r, now, out.version);
  return expected;
}

// Does the write of a point whose verdict is kDone. Returns whether it changed anything.
bool OracleState::StorePoint(const Request& r, const Stored* now, Version at) {
  if (r.op == Op::kExpire) {
    Expire(r.key, r.deadline_ms, at);
    return true;
  }
  uint64_t deadline_ms = r.deadline_ms;
  if (deadline_ms == kKeepDeadline) deadline_ms = now != nullptr ? now->deadline_ms : 0;
  if (r.op == Op::kDelete || IsGone(deadline_ms)) {
    if (now == nullptr) return false;
    Erase(r.key, at);
    return true;
  }
  Store(r.key,
        {.value = std::string(r.value), .type = r.type, .deadline_ms = deadline_ms, .version = at},
        at);
  return true;
}

// Requires that the key is present.
void OracleState::Expire(std::string_view key, uint64_t deadline_ms, Version at) {
  if (IsGone(deadline_ms)) return Erase(key, at);
  Touch(key, at);
  map_.find(key)->second.deadline_ms = deadline_ms;
}

Expected OracleState::Apply(const Request& r, const Outcome& out) {
  const Stored* const now = Find(r.key);
  if (now != nullptr && !FitsType(r, *now)) {
    return {.verdict = Verdict::kRefused, .code = Code::kWrongType};
  }
  Scratch scratch;
  FunctionInput input{.operand = r.value,
                      .scratch = &scratch,
                      .function = r.function,
                      .value_bytes_max = traits_.value_bytes_max,
                      .now_ms = now_ms_};
  if (now != nullptr) input.value = now->value;
  const FunctionEffect effect = r.function->body(input);
  if (!effect.status.ok()) return {.verdict = Verdict::kRefused, .code = effect.status.code()};
  Expected expected{.integer = effect.integer,
                    .is_point = true,
                    .present = now != nullptr,
                    .type = now != nullptr ? now->type : kPlainType,
                    .deadline_ms = now != nullptr ? now->deadline_ms : 0,
                    .value_matters = true,
                    .value = std::string(effect.returned)};
  switch (effect.action) {
    case FunctionEffect::Action::kKeep:
      break;
    case FunctionEffect::Action::kErase:
      expected.wrote = now != nullptr;
      if (now != nullptr) Erase(r.key, out.version);
      break;
    case FunctionEffect::Action::kReplace:
      if (effect.value.size() > traits_.value_bytes_max) {
        return {.verdict = Verdict::kRefused, .code = Code::kTooLarge};
      }
      if (effect.value.size() < traits_.value_bytes_min) {
        return {.verdict = Verdict::kRefused, .code = Code::kInvalidArgument};
      }
      expected.wrote = true;
      Store(r.key,
            {.value = std::string(effect.value),
             .type = r.function->type,
             .deadline_ms = expected.deadline_ms,
             .version = out.version},
            out.version);
      break;
  }
  return expected;
}

Expected OracleState::Move(const Request& r, const Outcome& out) {
  const Stored* const now = Find(r.key);
  if (now == nullptr) return {.verdict = Verdict::kAbsent, .is_point = true};
  Expected expected{
      .is_point = true, .present = true, .type = now->type, .deadline_ms = out.deadline_ms};
  if (r.has(Request::kKeepExisting) && Find(r.other) != nullptr) {
    expected.verdict = Verdict::kExists;
    return expected;
  }
  if (r.key == r.other) return expected;
  Stored moved = *now;
  moved.version = out.version;
  Erase(r.key, out.version);
  Store(r.other, std::move(moved), out.version);
  expected.wrote = true;
  return expected;
}

Expected OracleState::Scan(const Batch& batch, uint32_t slot) const {
  const Request& r = batch.requests()[slot];
  const Outcome& out = batch.outcome(slot);
  Keys keys = KeysIn(r);
  if (r.has(Request::kReverse)) std::ranges::reverse(keys);
  Expected expected{.items_matter = true, .wrong_bound = out.more && !MayGoOnFrom(batch, slot)};
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
    const Stored& stored = *Find(key);
    const bool wants_value =
        !r.has(Request::kKeysOnly) && (stored.type == kPlainType || r.has(Request::kAnyType));
    expected.items.emplace_back(key, wants_value ? stored.value : "");
    bytes += key.size() + expected.items.back().second.size();
  }
  // With a limit on visits there may be deleted keys behind the items.
  expected.may_say_more = expected.items.size() == r.limit || bytes > batch.scan_bytes_max() ||
                          batch.scan_visits_max() != kNoLimit;
  return expected;
}

// Whether the bound to go on from is right: every key that was seen lies before it, all others
// behind.
bool OracleState::MayGoOnFrom(const Batch& batch, uint32_t slot) const {
  const Request& r = batch.requests()[slot];
  const std::string_view bound = batch.outcome(slot).value;
  const bool reverse = r.has(Request::kReverse);
  const auto items = batch.items(slot);
  const auto seen = [&](const std::string& key) {
    return std::ranges::find(items, key, &Item::key) != items.end();
  };
  return std::ranges::all_of(KeysIn(r), [&](const std::string& key) {
    return seen(key) == (reverse ? key >= bound : key < bound);
  });
}

// A count may stop anywhere once it has visited `limit` keys; it must have counted all keys before
// the bound at which it says it stopped.
Expected OracleState::Count(const Request& r, const Outcome& out) const {
  const Keys keys = KeysIn(r);
  Expected expected{.integer = static_cast<int64_t>(keys.size())};
  expected.may_say_more = r.limit != kNoLimit;
  expected.must_say_more = keys.size() > r.limit;
  if (!out.more) return expected;
  expected.integer =
      std::ranges::count_if(keys, [&](const std::string& key) { return key < out.value; });
  if (expected.integer > r.limit || out.value <= r.key) expected.may_say_more = false;
  return expected;
}

// The outcome of a write of the first `limit` of these keys of its range.
Expected OracleState::ChangeFirst(Keys keys, const Request& r, const Outcome& out) const {
  Expected expected{.must_say_more = keys.size() > r.limit};
  const size_t changed = std::min<size_t>(keys.size(), r.limit);
  // A key that was passed over may lie behind the last that was changed.
  expected.may_say_more = changed == r.limit;
  expected.integer = static_cast<int64_t>(changed);
  expected.wrote = changed > 0;
  const bool loses = changed < keys.size() && out.value > keys[changed];
  const bool repeats = changed > 0 && out.value <= keys[changed - 1];
  expected.wrong_bound = out.more && (loses || repeats);
  return expected;
}

Expected OracleState::DeleteRange(const Request& r, const Outcome& out) {
  const Keys keys = KeysIn(r);
  const Expected expected = ChangeFirst(keys, r, out);
  for (int64_t i = 0; i < expected.integer; ++i) Erase(keys[static_cast<size_t>(i)], out.version);
  return expected;
}

Expected OracleState::ExpireRange(const Request& r, const Outcome& out) {
  Keys keys = KeysIn(r);
  std::erase_if(keys, [&](const std::string& key) { return !FitsWhen(r, Find(key)); });
  const Expected expected = ChangeFirst(keys, r, out);
  for (int64_t i = 0; i < expected.integer; ++i) {
    Expire(keys[static_cast<size_t>(i)], r.deadline_ms, kUnknown);
  }
  return expected;
}

Expected OracleState::DeleteAll(const Outcome& out) {
  Request all{.flags = Request::kNoUpperBound};
  const Keys keys = KeysIn(all);
  for (const std::string& key : keys) Erase(key, out.version);
  return {.integer = static_cast<int64_t>(keys.size()), .wrote = !keys.empty()};
}

Expected OracleState::Sample(const Batch& batch, uint32_t slot) const {
  if (live() == 0) return {.verdict = Verdict::kAbsent, .items_matter = true};
  Expected expected{.items_matter = true};
  const auto items = batch.items(slot);
  const Stored* const drawn = items.size() == 1 ? Find(items.front().key) : nullptr;
  expected.items.emplace_back("a key of the map", "");
  if (drawn != nullptr) {
    const bool is_plain = drawn->type == kPlainType;
    expected.items = {{std::string(items.front().key), is_plain ? drawn->value : ""}};
  }
  return expected;
}

// A step may return keys of the map in any order, each once. If it begins at the beginning and
// comes to the end, it returns all of them; it may stop before only because of a limit.
Expected OracleState::Walk(const Batch& batch, uint32_t slot) const {
  const Request& r = batch.requests()[slot];
  const int64_t next = batch.outcome(slot).integer;
  const bool may_stop = r.limit != kNoLimit || batch.scan_bytes_max() != SIZE_MAX ||
                        batch.scan_visits_max() != kNoLimit;
  Expected expected{.items_matter = true};
  std::set<std::string_view> seen;
  for (const Item& item : batch.items(slot)) {
    const Stored* const stored = Find(item.key);
    if (stored == nullptr || !seen.insert(item.key).second) {
      expected.items.emplace_back("a key of the map, once", "");
      continue;
    }
    const bool keys_only = r.has(Request::kKeysOnly);
    expected.items.emplace_back(item.key, keys_only ? std::string() : stored->value);
  }
  if (next != 0 && may_stop) expected.integer = next;
  if (r.cursor == 0 && next == 0 && seen.size() < live())
    expected.items.emplace_back("more keys", "");
  return expected;
}

Expected OracleState::RequireEmpty(const Request& r) const {
  const Keys keys = KeysIn(r);
  if (keys.empty()) return {};
  return {.verdict = Verdict::kMismatch, .value_matters = true, .value = keys[0]};
}

Expected OracleState::RequireUnchanged(const Request& r) const {
  const auto at = watches_.find(r.watch);
  if (at == watches_.end() || at->second.key != r.key) {
    return {.verdict = Verdict::kRefused, .code = Code::kInvalidArgument};
  }
  const Watched& watched = at->second;
  if (!watched.touched && !HasExpired(watched)) return {};
  // If the key expired before it was written, an engine may name the write, or the expiry (0).
  const bool is_known = watched.touched && watched.version != kUnknown;
  return {.verdict = Verdict::kMismatch,
          .changed_version_matters = is_known && !watched.expired_before,
          .changed_version = watched.version};
}

}  // namespace skep

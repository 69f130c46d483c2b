#include "collections/field_sweeper.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/large_record.h"

namespace skep::collections {
namespace {

constexpr uint64_t kNow = 1;  // a time that has passed

uint64_t EarlierOf(uint64_t a_ms, uint64_t b_ms) {
  return a_ms == 0 || b_ms == 0 ? std::max(a_ms, b_ms) : std::min(a_ms, b_ms);
}

// The deadline that a function's operand gives fields; 0: none.
uint64_t DeadlineIn(const Request& r) {
  static const std::array<const Function*, 3> functions = {
      FindFunction("hash-expire"), FindFunction("hash-get-until"), FindFunction("hash-set-until")};
  uint64_t deadline_ms = 0;
  const bool gives = std::ranges::find(functions, r.function) != functions.end();
  if (!gives || r.value.size() < types::FieldDeadline::kBytes) return 0;
  std::memcpy(&deadline_ms, r.value.data() + 1, sizeof(deadline_ms));
  return deadline_ms;
}

}  // namespace

bool FieldSweeper::MayGiveDeadline(const Request& r) {
  switch (r.op) {
    case Op::kApply:
      return r.function != nullptr && r.function->type == types::kHash && DeadlineIn(r) != 0;
    case Op::kPut:
    case Op::kInsert:
    case Op::kUpdate:
      return r.type == types::kHash && types::HasDeadlineForm(r.value);
    default:
      return false;
  }
}

void FieldSweeper::NoteRequest(const Request& r) {
  if (r.op == Op::kMove) {
    if (MayHaveHashes()) Note(r.other, kNow);
  } else {
    Note(r.key, r.op == Op::kApply ? DeadlineIn(r) : kNow);
  }
}

void FieldSweeper::Note(std::string_view key, uint64_t at_ms) {
  NoteGiven();
  Add(key, {.at_ms = at_ms});
}

void FieldSweeper::Erase(Hints::iterator at) {
  by_time_.erase({at->second.at_ms, at->first});
  key_bytes_ -= at->first.size();
  hints_.erase(at);
}

// Adds a hint to the one that the key may have: it is looked at at the earlier time, and a walk
// goes on where it was.
void FieldSweeper::Add(std::string_view key, const Hint& hint) {
  const MutexLock lock(mutex_);
  auto [at, is_new] = hints_.try_emplace(std::string(key), hint);
  if (is_new) {
    key_bytes_ += key.size();
  } else {
    by_time_.erase({at->second.at_ms, at->first});
    Hint& has = at->second;
    const uint64_t earlier_ms = std::min(has.at_ms, hint.at_ms);
    // A deadline that was noted during a walk may be of a field that the walk has passed already.
    if (hint.cursor) {
      const uint64_t noted_ms = has.at_ms;
      has = hint;
      has.next_ms = EarlierOf(has.next_ms, noted_ms);
    } else if (has.cursor) {
      has.next_ms = EarlierOf(has.next_ms, hint.at_ms);
    }
    has.at_ms = earlier_ms;
  }
  by_time_.emplace(at->second.at_ms, at->first);
  while (hints_.size() > kHintsMax || key_bytes_ > kHintBytesMax) {
    const auto last = std::prev(by_time_.end());
    lost_ms_ = std::min(lost_ms_, last->first);
    Erase(hints_.find(last->second));
  }
}

std::optional<std::pair<std::string, FieldSweeper::Hint>> FieldSweeper::TakeDue(uint64_t now_ms) {
  const MutexLock lock(mutex_);
  if (by_time_.empty() || by_time_.begin()->first > now_ms) return std::nullopt;
  const auto at = hints_.find(by_time_.begin()->second);
  std::pair<std::string, Hint> taken(at->first, at->second);
  Erase(at);
  return taken;
}

size_t FieldSweeper::hints() const {
  const MutexLock lock(mutex_);
  return hints_.size();
}

bool FieldSweeper::WantsPass(uint64_t now_ms) const {
  const MutexLock lock(mutex_);
  return lost_ms_ <= now_ms;
}

bool FieldSweeper::Run(Engine& engine, Access& access) {
  if (!MayHaveHashes()) return false;
  if (!run_mutex_.try_lock()) return false;
  const MutexLock lock(run_mutex_, std::adopt_lock);
  for (uint32_t looks = 0; looks < kSweepHashes; ++looks) {
    const auto due = TakeDue(access.now_ms());
    if (!due) {
      if (looks > 0) return true;
      if (!pass_at_ && WantsPass(access.now_ms())) {
        pass_at_.emplace();
        is_passing_.store(true, std::memory_order_relaxed);
        const MutexLock hints_lock(mutex_);
        lost_ms_ = kNoneLost;
      }
      return pass_at_ && Pass(access);
    }
    if (Look(engine, access, due->first, due->second) > 0) break;
  }
  return true;
}

uint64_t FieldSweeper::Look(Engine& engine, Access& access, const std::string& key, Hint hint) {
  const uint8_t type = access.TypeOf(key);
  if (type == types::kLargeForm + types::kHash) {
    const auto record = access.Record(key, types::kHash);
    if (record && record->last == 0) return 0;
    if (record) return Walk(engine, access, key, record->id, std::move(hint));
    Add(key, {.at_ms = access.now_ms() + kSegmentMs});  // it has come into one value meanwhile
    return 0;
  }
  if (type != types::kHash) return 0;
  static const Function* const drop = FindFunction("hash-drop-due");
  Batch batch;
  batch.set_now_ms(access.now_ms());
  batch.Apply(key, drop, {});
  engine.Execute(batch);
  const Outcome& out = batch.outcome(0);
  if (out.verdict != Verdict::kDone) {
    Add(key, {.at_ms = access.now_ms() + kSegmentMs});
  } else if (out.integer != 0) {
    Add(key, {.at_ms = static_cast<uint64_t>(out.integer)});
  }
  return 0;
}

// Removes what is due in a few segments of a large hash.
uint64_t FieldSweeper::Walk(Engine& engine, Access& access, const std::string& key, uint64_t id,
                            Hint hint) {
  static const Function* const drop = FindFunction("hash-drop-due");
  const std::string first = SegmentKey(id, Part::kMembers, {});
  const std::string lo = first + hint.cursor.value_or(std::string());
  Batch scan;
  // The segment with that separator may have been taken over by the one to its left.
  const uint32_t slot =
      scan.Scan(Range::From(lo), {.limit = kSweepSegments, .any_type = true, .seek_floor = true});
  access.Execute(scan);
  // Segments that were found are all that there were only if the record had the id afterwards, too.
  const auto record = access.Record(key, types::kHash);
  if (!record || record->id != id || scan.items(slot).empty()) {
    Add(key, {.at_ms = access.now_ms() + kSegmentMs});
    return 0;
  }
  uint64_t segments = 0;
  types::Texts due;
  hint.cursor.reset();
  for (const Item& item : scan.items(slot)) {
    if (!item.key.starts_with(first)) break;
    ++segments;
    const auto segment = ReadItem(Part::kMembers, item.value);
    if (!segment) return segments;
    std::string_view body = segment->body;
    types::HashField field;
    while (types::TakeHashField(body, &field)) {
      if (field.IsDue(access.now_ms())) {
        due.push_back(field.name);
      } else {
        hint.next_ms = EarlierOf(hint.next_ms, field.deadline_ms);
      }
    }
    hint.cursor = segment->fence ? std::optional<std::string>(*segment->fence) : std::nullopt;
  }
  if (!due.empty()) {
    Batch batch;
    batch.set_now_ms(access.now_ms());
    batch.Apply(key, drop, types::JoinTexts(due, batch.scratch()));
    engine.Execute(batch);
  }
  hint.segments += segments;
  if (hint.cursor) {
    hint.at_ms = kNow;
    Add(key, hint);
  } else if (hint.next_ms != 0) {
    const uint64_t again_ms = access.now_ms() + hint.segments * kSegmentMs;
    Add(key, {.at_ms = std::max(hint.next_ms, again_ms)});
  }
  return segments;
}

// Makes hints for the hashes with deadlines among the next keys.
bool FieldSweeper::Pass(Access& access) {
  Batch scan;
  const uint32_t slot =
      scan.Scan(Range::Between(*pass_at_, kHiddenFrom), {.limit = kPassKeys, .keys_only = true});
  access.Execute(scan);
  const Outcome& out = scan.outcome(slot);
  if (out.verdict == Verdict::kRefused) return false;
  Batch look;
  for (const Item& item : scan.items(slot)) {
    look.Add({.op = Op::kGet,
              .flags = Request::kIfOfType | Request::kByteRange,
              .type = types::kHash,
              .key = item.key,
              .bytes = {.first = 0, .last = 0}});
    look.Add({.op = Op::kGet,
              .flags = Request::kIfOfType,
              .type = types::kLargeForm + types::kHash,
              .key = item.key});
  }
  access.Execute(look);
  for (uint32_t i = 0; i < look.size(); i += 2) {
    const Outcome& small = look.outcome(i);
    const Outcome& large = look.outcome(i + 1);
    const auto record = large.type == types::kLargeForm + types::kHash
                            ? types::ReadLargeRecord(large.value)
                            : std::nullopt;
    const bool has_deadlines =
        (small.present && small.type == types::kHash && types::HasDeadlineForm(small.value)) ||
        (record && record->last != 0);
    if (has_deadlines) Note(look.requests()[i].key, kNow);
  }
  if (out.more) {
    pass_at_->assign(out.value);
    return true;
  }
  pass_at_.reset();
  is_passing_.store(false, std::memory_order_relaxed);
  return hints() > 0;
}

}  // namespace skep::collections

// Atomic batches of CollectionEngine.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collections/atomic_calls.h"
#include "collections/collection_engine.h"
#include "collections/moves.h"
#include "engine/only_reads.h"
#include "engine/partial_batch.h"

namespace skep::collections {
namespace {

bool OnlyReads(const Batch& batch) {
  return std::ranges::all_of(batch.requests(), [](const Request& r) {
    const bool is_read =
        r.op == Op::kGet || r.op == Op::kScan || r.op == Op::kCount || r.op == Op::kApply;
    return is_read && skep::OnlyReads(r);
  });
}

// The keys that a batch names in points of collections, and in moves.
std::vector<std::string_view> KeysToLock(const Batch& batch) {
  std::vector<std::string_view> keys;
  for (const Request& r : batch.requests()) {
    if (r.op == Op::kMove) keys.push_back(r.other);
    if (r.op == Op::kMove || KindWanted(r) != kPlainType) keys.push_back(r.key);
  }
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  return keys;
}

// The keys that one part alone is about, which deletes what they had before it asks for more of
// them: so nobody asks for that.
std::set<std::string_view> KeysDeletedFirst(const Batch& batch) {
  struct Use {
    uint32_t part;
    bool is_deleted_first;
    bool is_of_one_part = true;
  };
  std::map<std::string_view, Use> uses;
  ForEachPart(batch, [&](const skep::Part& part) {
    for (uint32_t slot = part.begin; slot < part.end; ++slot) {
      const Request& r = batch.requests()[slot];
      if (r.op == Op::kRequireUnchanged) continue;  // which reads nothing
      const auto note = [&](std::string_view key) {
        const bool is_delete = r.op == Op::kDelete && r.flags == 0 && r.when == 0;
        Use& use = uses.try_emplace(key, part.begin, is_delete).first->second;
        use.is_of_one_part = use.is_of_one_part && use.part == part.begin;
      };
      note(r.key);
      if (r.op == Op::kMove) note(r.other);
    }
    return true;
  });
  std::set<std::string_view> keys;
  for (const auto& [key, use] : uses) {
    if (use.is_deleted_first && use.is_of_one_part) keys.insert(key);
  }
  return keys;
}

// Leaves the batch to a caller that may wait, and has time for it.
void PostponeAll(Batch& batch) {
  BatchWriter out(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) out.Postpone(slot);
  out.set_applied(false);
}
bool IsPostponed(const Batch& batch) {
  return !batch.empty() && batch.outcome(0).verdict == Verdict::kPostponed;
}

// Whether these collections have more bytes together than the calls of the batch may look at.
bool AreTooLarge(Access& access, const Batch& batch, std::span<const std::string_view> keys) {
  if (batch.portion_bytes_max() == SIZE_MAX) return false;
  uint64_t bytes = 0;
  for (const std::string_view key : keys) {
    const auto record = access.Record(key, types::KindOf(access.TypeOf(key)));
    if (record) bytes += record->bytes;
  }
  return bytes > batch.portion_bytes_max();
}

// Makes the outcome of a get that of a function that only reads, which no snapshot runs.
void RunOnValue(const Function& function, std::string_view operand, BatchWriter& out,
                uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  const auto value = outcome.present ? std::optional(outcome.value) : std::nullopt;
  const FunctionEffect effect = RunFunction(function, value, operand, out.now_ms(), out.scratch());
  outcome.verdict = Verdict::kDone;
  outcome.version = 0;
  outcome.integer = effect.integer;
  outcome.value = effect.returned;  // of the operand, the value or the scratch
  if (!effect.status.ok()) out.Refuse(slot, effect.status);
}

}  // namespace

Version CollectionEngine::ExecuteAtomic(Batch& batch, const Needs& needs) {
  if (batch.snapshot().id != 0) return ReadAtSnapshot(batch);
  Access access = AccessOf(batch);
  const auto keys = KeysToLock(batch);
  bool is_done = false;
  Attempt attempt;
  for (int tries = 0; tries < kTriesMax && !is_done; ++tries) {
    if (!Pass(batch, keys)) {
      PostponeAll(batch);
      return access.ticket();
    }
    is_done = TryAtomic(access, batch, keys, needs, &attempt);
  }
  if (!is_done) {
    const Turnstiles::Turn turn(turnstiles_, keys, WaitOf(batch));
    if (!turn) {
      PostponeAll(batch);
      return access.ticket();
    }
    attempt.is_in_turn = true;
    for (int tries = 0; tries < kTurnTriesMax && !is_done; ++tries) {
      is_done = TryAtomic(access, batch, keys, needs, &attempt);
    }
  }
  if (!is_done) BatchWriter(batch).RefuseAll(types::kNoCollection);
  if (!IsPostponed(batch)) ConvertOutgrown(access, batch, std::move(attempt.joined));
  return access.ticket();
}

// False: a large collection has changed meanwhile, and nothing was done. True also if the batch is
// left out.
bool CollectionEngine::TryAtomic(Access& access, Batch& batch,
                                 const std::vector<std::string_view>& keys, const Needs& needs,
                                 Attempt* attempt) {
  access.Forget();
  const KeyLocks::Held held(locks_, keys, WaitOf(batch));
  if (!held) {
    PostponeAll(batch);
    return true;
  }
  std::optional<Moves> moves;
  if (needs.moves && has_hidden_.load(std::memory_order_relaxed)) {
    moves.emplace(access, batch);
    if (const Status s = moves->AddNames(); !s.ok()) {
      BatchWriter(batch).RefuseAll(s);
      return true;
    }
  }
  bool is_done = true;
  const auto large = LargeKeys(access, batch);
  if (large.empty()) {
    const types::FormScope scope(traits().value_bytes_max, false);
    access.Execute(batch);
  } else if (OnlyReads(batch)) {
    access.NoteTicket(ReadAtSnapshot(batch));
  } else {
    is_done = TryLarge(access, batch, large, attempt);
  }
  if (moves) moves->CutNames();
  return is_done;
}

// False: as TryAtomic.
bool CollectionEngine::TryLarge(Access& access, Batch& batch,
                                const std::vector<std::string_view>& large, Attempt* attempt) {
  const auto fill = [&](uint32_t slot, uint8_t kind, const Answer& answer) {
    Fill(batch, slot, kind, access, answer);
  };
  Status no_memory;
  // The values of keys without a large collection, which other threads may change again and again,
  // are foreseen in the first tries only.
  const bool foresees = !attempt->is_in_turn;
  const auto end =
      AtomicCalls(access, batch, large, foresees).Try(traits().value_bytes_max, fill, &no_memory);
  if (end == AtomicCalls::End::kAgain) return false;
  const bool is_left_out = end == AtomicCalls::End::kLong ||
                           (end == AtomicCalls::End::kNotSo && AreTooLarge(access, batch, large));
  if (is_left_out) {
    PostponeAll(batch);
    return true;
  }
  if (end == AtomicCalls::End::kNotSo) {
    if (!TryWhole(access, batch, large, &no_memory)) return false;
    attempt->joined = large;
  }
  if (no_memory.ok()) return true;
  // A part that stores nothing is not refused for memory, so the batch is done without the others.
  AtomicCalls without_stores(access, batch, large, foresees);
  if (!without_stores.RefuseStores(no_memory)) return true;
  switch (without_stores.Try(traits().value_bytes_max, fill, &no_memory)) {
    case AtomicCalls::End::kDone:
      return true;
    case AtomicCalls::End::kAgain:
      return false;
    case AtomicCalls::End::kLong:
      PostponeAll(batch);
      return true;
    case AtomicCalls::End::kNotSo:
      BatchWriter(batch).RefuseAll(no_memory);
      return true;
  }
  return true;
}

// The keys of points of collections that have a large one now.
std::vector<std::string_view> CollectionEngine::LargeKeys(Access& access,
                                                          const Batch& batch) const {
  if (!has_hidden_.load(std::memory_order_relaxed)) return {};
  std::set<std::string_view> keys;
  std::set<std::string_view> asked;
  const bool has_moves =
      std::ranges::any_of(batch.requests(), [](const Request& r) { return r.op == Op::kMove; });
  for (const Request& r : batch.requests()) {
    if (has_moves && (r.op == Op::kMove || KindWanted(r) != kPlainType)) asked.insert(r.key);
  }
  for (const Request& r : batch.requests()) {
    if (r.op == Op::kMove && r.key == r.other) continue;  // which changes nothing
    // A request on the key that a collection is moved to is about that collection.
    if (r.op == Op::kMove && types::IsLarge(access.TypeOf(r.key))) {
      if (asked.contains(r.other)) keys.insert(r.key);
      continue;
    }
    const bool asks = (r.op == Op::kApply || r.op == Op::kGet) && !r.has(Request::kNoValue);
    const bool chains = r.op == Op::kApply && r.has(Request::kOperandOfSlot);
    if (KindWanted(r) == kPlainType || (!asks && !chains)) continue;
    // A function of another type is refused whatever the form is.
    if (access.TypeOf(r.key) == types::kLargeForm + KindWanted(r)) keys.insert(r.key);
  }
  if (keys.empty()) return {};
  for (const std::string_view key : KeysDeletedFirst(batch)) keys.erase(key);
  return {keys.begin(), keys.end()};
}

// ---- Batches that only read ----

Version CollectionEngine::ReadAtSnapshot(Batch& batch) {
  BatchWriter out(batch);
  SnapshotRef at = batch.snapshot();
  if (at.id == 0) {
    const Result<SnapshotRef> opened = inner().OpenSnapshot(batch.now_ms());
    if (!opened) {
      out.RefuseAll(opened.error());
      return 0;
    }
    at = *opened;
  }
  bool is_left_out = false;
  ForEachPart(batch, [&](const skep::Part& part) {
    const bool is_read = ReadPart(batch, out, part, at);
    for (uint32_t slot = part.begin; slot < part.end; ++slot) {
      is_left_out = is_left_out || IsTooMuch(batch, slot);
    }
    return (is_read || !part.is_first) && !is_left_out;
  });
  if (is_left_out) PostponeAll(batch);
  if (batch.snapshot().id == 0) inner().CloseSnapshot(at);
  return at.version;
}

// Whether the batch leaves out what is as long as this slot is, or as all slots so far are. At a
// snapshot each slot says for itself that it is too long.
bool CollectionEngine::IsTooMuch(const Batch& batch, uint32_t slot) {
  if (!LeavesOut(batch) || batch.snapshot().id != 0) return false;
  return batch.IsTooLong(slot) || batch.work_bytes() / kPortionsMax > batch.portion_bytes_max();
}

// False: a request was refused, so nothing of the part counts, or the rest is too much.
bool CollectionEngine::ReadPart(Batch& batch, BatchWriter& out, const skep::Part& part,
                                SnapshotRef at) {
  for (uint32_t slot = part.begin; slot < part.end; ++slot) {
    ReadSlot(batch, out, slot, at);
    if (IsTooMuch(batch, slot)) return false;
    if (batch.outcome(slot).verdict != Verdict::kRefused) continue;
    out.Abort(part, slot);
    return false;
  }
  return true;
}

void CollectionEngine::ReadSlot(Batch& batch, BatchWriter& out, uint32_t slot, SnapshotRef at) {
  Access access(inner(), batch.now_ms(), segment_bytes_, at);
  access.set_portion_bytes_max(batch.portion_bytes_max());
  Request r = batch.requests()[slot];
  if (r.op == Op::kApply && r.has(Request::kOperandOfSlot)) {
    if (r.limit >= slot) {
      return out.Refuse(slot, {Code::kInvalidArgument, "an operand is of an earlier slot"});
    }
    const std::string_view other = batch.outcome(r.limit).value;
    if (r.has(Request::kUnlessNone) && other.empty()) {
      out.outcome(slot).verdict = Verdict::kDone;
      return;
    }
    r.value = out.scratch().Concat(r.value, other);
    r.flags = 0;
  }
  const uint8_t kind = KindWanted(r);
  const auto record = kind != kPlainType ? access.Record(r.key, kind) : std::nullopt;
  if (record) {
    LargeCall call(access, r.key, kind, *record);
    const auto answer = r.op == Op::kApply ? call.Apply(*r.function, r.value) : call.Whole();
    const Status gone(Code::kSnapshotTooOld, "the snapshot is gone");
    return answer ? Fill(batch, slot, kind, access, *answer) : out.Refuse(slot, gone);
  }
  Batch one;
  CopySettings(batch, one);
  if (r.op == Op::kApply) {
    one.Add({.op = Op::kGet, .type = r.function->type, .key = r.key});
  } else {
    one.Add(r);
  }
  one.set_notes_effects(out.notes_effects());
  access.Execute(one);
  CopyOutcome(one, 0, out, slot);
  for (const Effect& effect : one.effects()) out.NoteAgain(slot, effect);
  if (r.op == Op::kApply && batch.outcome(slot).verdict != Verdict::kRefused) {
    RunOnValue(*r.function, r.value, out, slot);
  }
}

// ---- Batches that write ----

// Executes the batch with the large collections put into one value before its own requests. False:
// one of them has changed meanwhile. If the batch is refused for memory, *no_memory has the error
// that its outcomes have.
bool CollectionEngine::TryWhole(Access& access, Batch& batch,
                                const std::vector<std::string_view>& large, Status* no_memory) {
  BatchWriter out(batch);
  Batch whole(Batch::Kind::kAtomic);
  CopySettings(batch, whole);
  whole.set_notes_effects(out.notes_effects());
  Scratch& scratch = whole.scratch();
  for (const std::string_view key : large) {
    const uint8_t kind = types::KindOf(access.TypeOf(key));
    const auto found = IsCollection(kind) ? access.Record(key, kind) : std::nullopt;
    if (!found) continue;  // it is gone: the batch finds what there is
    types::LargeRecord record;
    const auto value = LargeCall(access, key, kind, *found).Whole(&record);
    if (!value) return false;
    if (!value->status.ok()) {
      out.RefuseAll(value->status);
      return true;
    }
    whole.Add({.op = Op::kRequireValue,
               .type = static_cast<uint8_t>(types::kLargeForm + kind),
               .key = key,
               .other = scratch.Copy(types::BytesOf(record))});
    whole.Add({.op = Op::kPut,
               .type = kind,
               .key = key,
               .value = scratch.Copy(value->value),
               .deadline_ms = kKeepDeadline});
  }
  const auto shift = static_cast<uint32_t>(whole.size());
  size_t parts = 0;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    for (; parts < batch.part_begins().size() && batch.part_begins()[parts] == slot; ++parts) {
      whole.BeginPart();
    }
    Request r = batch.requests()[slot];
    const bool is_chained = r.op == Op::kApply && r.has(Request::kOperandOfSlot);
    if (is_chained && r.limit < slot) r.limit += shift;
    whole.Add(r);
  }
  {
    const types::FormScope scope(traits().value_bytes_max, false);
    access.Execute(whole);
  }
  for (uint32_t slot = 0; slot < shift; ++slot) {
    const Outcome& outcome = whole.outcome(slot);
    const Verdict verdict = outcome.verdict;
    if (verdict == Verdict::kDone || verdict == Verdict::kAborted) continue;
    if (verdict != Verdict::kRefused || outcome.status.code() == Code::kWrongType) return false;
    if (outcome.status.code() == Code::kOutOfMemory) *no_memory = outcome.status;
    out.RefuseAll(outcome.status);
    return true;
  }
  for (uint32_t slot = 0; slot < batch.size(); ++slot) CopyOutcome(whole, shift + slot, out, slot);
  for (const Effect& effect : whole.effects()) {
    if (effect.slot >= shift) out.NoteAgain(effect.slot - shift, effect);
  }
  out.set_applied(whole.applied());
  if (whole.applied()) sweeper_.Want();
  return true;
}

// Converts the collections of the batch's functions and values that have outgrown one value, and
// those under `keys`, which the batch has joined into one.
void CollectionEngine::ConvertOutgrown(Access& access, const Batch& batch,
                                       std::vector<std::string_view> keys) {
  for (const Request& r : batch.requests()) {
    if (!skep::OnlyReads(r) && KindWanted(r) != kPlainType) keys.push_back(r.key);
    if (r.op == Op::kMove) keys.push_back(r.other);
  }
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  for (const std::string_view key : keys) ConvertIfOutgrown(access, key, WaitOf(batch));
}

void CollectionEngine::ConvertIfOutgrown(Access& access, std::string_view key, Wait wait) {
  Batch look;
  look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  const Outcome& found = access.Execute(look).outcome(0);
  const bool is_outgrown =
      IsCollection(found.type) && static_cast<uint64_t>(found.integer) > value_bytes_;
  // Without memory, or without the lock, it stays in one value until it is written again.
  Status unwanted;
  if (is_outgrown) MakeLarge(access, key, found.type, wait, &unwanted);
}

}  // namespace skep::collections

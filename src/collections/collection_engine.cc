#include "collections/collection_engine.h"

#include <algorithm>
#include <utility>

#include "collections/check.h"
#include "collections/conversion.h"
#include "collections/joint_calls.h"
#include "collections/names.h"
#include "collections/sample_again.h"
#include "engine/partial_batch.h"

namespace skep::collections {
namespace {

constexpr size_t kSegmentBytesMin = 64;
constexpr size_t kSegmentBytesMax = size_t{1} << 10;

constexpr Status kHidden(Code::kInvalidArgument,
                         "a key of this keyspace does not begin with 8 bytes of 255");
constexpr Status kReserved(Code::kInvalidArgument,
                           "the type of the value is the store's own, not for clients");

}  // namespace

bool CanHaveCollections(const EngineTraits& traits) {
  return traits.ordered && traits.types && traits.functions && traits.atomic && traits.snapshots &&
         traits.whole_batches && traits.counts_itself && traits.range_writes;
}

bool HasParts(Engine& engine) {
  Batch batch;
  batch.Scan(Range::From(kHiddenFrom), {.limit = 1, .keys_only = true});
  engine.Execute(batch);
  if (batch.items(0).empty()) return false;
  Batch look;
  look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = batch.items(0).front().key});
  engine.Execute(look);
  return look.outcome(0).present && look.outcome(0).type == types::kSegment;
}

CollectionEngine::CollectionEngine(std::unique_ptr<Engine> inner, size_t value_bytes,
                                   MemoryBudget* budget)
    : ForwardingEngine(std::move(inner)),
      plain_gets_(PlainGetsOf(this->inner())),
      value_bytes_(value_bytes),
      segment_bytes_(std::clamp(value_bytes / 4, kSegmentBytesMin, kSegmentBytesMax)),
      segment_hints_(budget),
      sweeper_(locks_) {}

// ---- What is hidden ----

Status CollectionEngine::WhyRefused(const Request& r) {
  if (r.op == Op::kDeleteAll || r.op == Op::kSample || IsRange(r.op)) return {};
  if (IsHidden(r.key) || (r.op == Op::kMove && IsHidden(r.other))) return kHidden;
  const bool has_function = r.op == Op::kApply && r.function != nullptr;
  const uint8_t type = has_function ? r.function->type : r.type;
  if (types::IsLarge(type) || type == types::kSegment) return kReserved;
  return {};
}

// Bounds the ranges of the batch, and says what else it needs.
CollectionEngine::Needs CollectionEngine::Prepare(Batch& batch) {
  Needs needs;
  const auto requests = batch.requests();
  for (uint32_t slot = 0; slot < requests.size(); ++slot) {
    const Request& r = requests[slot];
    // Most requests are points of plain values, which need nothing.
    if (r.op < Op::kMove && r.type == kPlainType && !IsHidden(r.key)) [[likely]]
      continue;
    if (IsRange(r.op)) {
      // The floor of a hidden key is the last key that is seen.
      const bool has_hidden_floor = r.has(Request::kSeekFloor) && IsHidden(r.key);
      if (has_hidden_floor || r.has(Request::kNoUpperBound) || IsHidden(r.other)) {
        BatchWriter::BoundRange(batch, slot, has_hidden_floor ? &kHiddenFrom : nullptr,
                                kHiddenFrom);
      }
      continue;
    }
    needs.field_deadlines = needs.field_deadlines || FieldSweeper::MayGiveDeadline(r);
    if (r.op == Op::kSample) {
      needs.samples = true;
      // Nothing can be drawn again once an atomic batch was applied: its samples are told where the
      // keys end that are drawn.
      BatchWriter::BoundSample(batch, slot, kHiddenFrom);
    }
    needs.moves = needs.moves || r.op == Op::kMove;
    needs.deletes_all = needs.deletes_all || r.op == Op::kDeleteAll;
    needs.collections = needs.collections || KindWanted(r) != kPlainType;
    needs.refuses = needs.refuses || !WhyRefused(r).ok();
  }
  return needs;
}

bool CollectionEngine::HasHidden() {
  if (!was_looked_at_.load(std::memory_order_acquire)) [[unlikely]]
    CountHidden();
  return has_hidden_.load(std::memory_order_relaxed);
}

// Counts the hidden items of the wrapped engine, into which large collections may have been loaded
// before the first batch.
void CollectionEngine::CountHidden() {
  Batch batch;
  batch.Count(Range::From(kHiddenFrom));
  inner().Execute(batch);
  const int64_t count = batch.outcome(0).integer;
  if (was_looked_at_.exchange(true, std::memory_order_acq_rel) || count == 0) return;
  hidden_items_.Add(0, count);
  has_deadlines_.store(true, std::memory_order_relaxed);
  has_hidden_.store(true, std::memory_order_relaxed);
  sweeper_.Want();
}

// An id that none has had since the engine was made, and none has that was loaded.
uint64_t CollectionEngine::NewId(Access& access) {
  if (last_id_.load(std::memory_order_relaxed) == 0) {
    Batch batch;
    batch.Scan(Range::From(kHiddenFrom), {.limit = 1, .reverse = true, .keys_only = true});
    access.Execute(batch);
    const ItemRange items = batch.items(0);
    uint64_t none = 0;
    const uint64_t found = items.empty() ? 0 : IdOf(items.front().key);
    last_id_.compare_exchange_strong(none, std::max<uint64_t>(found, 1), std::memory_order_relaxed);
  }
  return last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
}

void CollectionEngine::HideTypes(Batch& batch) {
  BatchWriter out(batch, BatchWriter::KeepOutcomes());
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    Outcome& outcome = out.outcome(slot);
    if (!types::IsLarge(outcome.type)) continue;
    const Request& r = batch.requests()[slot];
    if (r.op == Op::kGet && r.has(Request::kIfOfType)) continue;
    outcome.type = types::KindOf(outcome.type);
    if (r.op != Op::kGet || !r.has(Request::kNoValue)) continue;
    // The length that is asked for is that of the members, not of the record.
    Access access = AccessOf(batch);
    const auto record = access.Record(r.key, outcome.type);
    if (record) outcome.integer = static_cast<int64_t>(record->bytes);
  }
}

// Asks for a sweep if the batch may have taken the record of a large collection away.
void CollectionEngine::NoteLeft(const Batch& batch) {
  bool wants = false;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Op op = batch.requests()[slot].op;
    if (!IsWrite(op) || batch.outcome(slot).verdict != Verdict::kDone) continue;
    const bool may_expire = op == Op::kExpire || op == Op::kExpireRange || op == Op::kMove;
    if (may_expire) has_deadlines_.store(true, std::memory_order_relaxed);
    wants = wants || types::IsLarge(batch.outcome(slot).type) || op == Op::kMove ||
            op == Op::kDeleteRange || op == Op::kExpireRange;
  }
  if (wants) sweeper_.Want();
}

// ---- Batches ----

Version CollectionEngine::Execute(Batch& batch) {
  const bool has_hidden = HasHidden();
  const Needs needs = Prepare(batch);
  if (needs.refuses) {
    return ExecutePartly(*this, batch,
                         [&](uint32_t slot) { return WhyRefused(batch.requests()[slot]); });
  }
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  // At a snapshot the fields of hashes are due, or not, as when it was opened.
  const bool is_snapshot = batch.snapshot().id != 0;
  if (needs.collections) {
    batch.set_now_ms(is_snapshot ? batch.snapshot().now_ms : now_.Advance(batch.now_ms()));
  }
  if (needs.field_deadlines) field_sweeper_.NoteGiven();
  if (needs.deletes_all) hidden_items_.BeginDelete();
  Version ticket = is_atomic && (needs.collections || needs.moves) ? ExecuteAtomic(batch, needs)
                                                                   : ExecuteUnordered(batch, needs);
  if (needs.field_deadlines || needs.moves) NoteFieldDeadlines(batch);
  if (needs.deletes_all) CountDeletedAll(batch);
  if (!has_hidden && !has_hidden_.load(std::memory_order_relaxed)) return ticket;
  NoteLeft(batch);
  HideTypes(batch);
  if (needs.samples && !is_atomic) SampleAgain(inner(), batch);
  return ticket;
}

// Tells the sweeper which keys may have got hashes with deadlines.
void CollectionEngine::NoteFieldDeadlines(const Batch& batch) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& r = batch.requests()[slot];
    const bool is_done = batch.outcome(slot).verdict == Verdict::kDone;
    const bool matters = r.op == Op::kMove || FieldSweeper::MayGiveDeadline(r);
    if (is_done && matters) field_sweeper_.NoteRequest(r);
  }
}

// Takes the hidden items off the count of the first delete of everything that was done.
void CollectionEngine::CountDeletedAll(Batch& batch) {
  BatchWriter out(batch, BatchWriter::KeepOutcomes());
  Outcome* deleted = nullptr;
  for (uint32_t slot = 0; slot < batch.size() && deleted == nullptr; ++slot) {
    Outcome& outcome = out.outcome(slot);
    const bool is_done = outcome.verdict == Verdict::kDone && outcome.version != 0;
    if (batch.requests()[slot].op == Op::kDeleteAll && is_done) deleted = &outcome;
  }
  const int64_t hidden = hidden_items_.EndDelete(deleted != nullptr ? deleted->version : 0);
  if (deleted != nullptr) segment_hints_.ForgetAll();
  if (deleted != nullptr) deleted->integer = std::max<int64_t>(deleted->integer - hidden, 0);
}

// Sets keys aside that are known to have had large collections, so that the wrapped engine does not
// look them up. Returns whether all requests of the batch are well-formed and set aside now.
bool CollectionEngine::SetAsideHinted(const Batch& batch, types::FormScope& scope) const {
  const std::string_view* last = nullptr;
  bool last_is_aside = false;
  bool all_are = true;
  size_t hinted = 0;
  for (const Request& r : batch.requests()) {
    if (r.op != Op::kApply || KindWanted(r) == kPlainType) {
      all_are = false;
      continue;
    }
    if (last == nullptr || r.key != *last) {
      last_is_aside = scope.HasSetAside(r.key);
      if (!last_is_aside && hinted < kHintedMax && large_hints_.Has(r.key)) {
        scope.SetAside(r.key);
        ++hinted;
        last_is_aside = true;
      }
      last = &r.key;
    }
    all_are = all_are && last_is_aside && IsSoundPoint(r, traits());
  }
  return all_are;
}

Version CollectionEngine::ExecuteUnordered(Batch& batch, const Needs& needs) {
  Version ticket = 0;
  std::vector<uint32_t> aside;
  {
    types::FormScope scope(value_bytes_, batch.kind() == Batch::Kind::kUnordered);
    if (scope.sets_aside() && needs.collections && SetAsideHinted(batch, scope)) {
      BatchWriter out(batch);
      for (uint32_t slot = 0; slot < batch.size(); ++slot) out.Postpone(slot);
    } else {
      ticket = inner().Execute(batch);
    }
    if (!scope.has_set_aside()) return ticket;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const bool is_aside = batch.outcome(slot).verdict == Verdict::kPostponed &&
                            scope.HasSetAside(batch.requests()[slot].key);
      if (is_aside) aside.push_back(slot);
    }
  }
  const auto key_of = [&](uint32_t slot) { return batch.requests()[slot].key; };
  if (!std::ranges::is_sorted(aside, {}, key_of)) std::ranges::stable_sort(aside, {}, key_of);
  // Each execution does something, whatever it has looked at, unless another call has the turn at
  // the first key: else the next one would not, either.
  const BatchWriter out(batch, BatchWriter::KeepOutcomes());
  for (size_t i = 0; i < aside.size() && (i == 0 || !out.IsPostponing());) {
    const size_t begin = i;
    while (i < aside.size() && key_of(aside[i]) == key_of(aside[begin])) ++i;
    ticket = std::max(ticket, DoOfKey(batch, std::span(aside).subspan(begin, i - begin)));
  }
  return ticket;
}

// Does the requests of one key that were set aside, in their order. What is left when the batch has
// done its work, what follows a call that was too long, and what would wait for another call's
// turn, stays postponed.
Version CollectionEngine::DoOfKey(Batch& batch, std::span<const uint32_t> slots) {
  const BatchWriter out(batch, BatchWriter::KeepOutcomes());
  Version ticket = 0;
  size_t group_max = kGroupMax;
  do {
    const Request& first = batch.requests()[slots.front()];
    if (!Pass(batch, std::span(&first.key, 1))) break;
    const Function* const function = first.op == Op::kApply ? first.function : nullptr;
    const bool reads_view = function != nullptr && LargeCall::ReadsView(*function);
    const auto is_like_first = [&](uint32_t slot) {
      const Request& r = batch.requests()[slot];
      if (r.op != Op::kApply || r.function == nullptr) return false;
      if (slot != slots.front() && r.function == function) return true;
      return KindWanted(r) == KindWanted(first) &&
             (reads_view ? LargeCall::ReadsView(*r.function) : JointCalls::Has(*r.function));
    };
    const auto behind =
        std::ranges::find_if_not(slots.first(std::min(slots.size(), group_max)), is_like_first);
    const auto together = static_cast<size_t>(behind - slots.begin());
    size_t done = 0;
    if (together > 1) {
      Access access = AccessOf(batch);
      done = TryTogether(access, batch, slots.first(together));
      ticket = std::max(ticket, access.ticket());
    }
    const bool has_failed = together > 1 && done == 0;
    group_max = has_failed ? kGroupAfterFailure : std::min(2 * group_max, kGroupMax);
    if (done == 0) {
      ticket = std::max(ticket, DoAlone(batch, slots.front()));
      done = 1;
    }
    // Whoever makes a call that was left out makes it before what follows it on its key.
    const uint32_t last = slots[done - 1];
    if (batch.IsTooLong(last) || batch.outcome(last).verdict == Verdict::kPostponed) break;
    slots = slots.subspan(done);
  } while (!slots.empty() && !out.IsPostponing());
  return ticket;
}

// Waits while another call has the turn at one of the keys. False: another one has, and the batch
// must not wait: what is to be done stays postponed.
bool CollectionEngine::Pass(const Batch& batch, std::span<const std::string_view> keys) {
  if (!LeavesOut(batch)) {
    turnstiles_.Pass(keys);
    return true;
  }
  return std::ranges::none_of(keys, [&](std::string_view key) { return turnstiles_.IsTaken(key); });
}

// Does requests about members, or ends, of one large collection, or reads of its ranks and ranges;
// returns how many of them.
size_t CollectionEngine::TryTogether(Access& access, Batch& batch,
                                     std::span<const uint32_t> slots) {
  const std::string_view key = batch.requests()[slots.front()].key;
  const uint8_t kind = KindWanted(batch.requests()[slots.front()]);
  std::vector<FunctionCall> calls;
  calls.reserve(slots.size());
  for (const uint32_t slot : slots) {
    const Request& r = batch.requests()[slot];
    calls.push_back({.function = r.function, .operand = r.value});
  }
  for (int tries = 0; tries < kGroupTriesMax; ++tries) {
    if (!Pass(batch, std::span(&key, 1))) return 0;
    access.Forget();
    const auto record = access.Record(key, kind);
    large_hints_.Note(key, record.has_value());
    if (!record) return 0;
    std::vector<Answer> answers;
    answers.reserve(calls.size());
    const auto is_long = [&](const FunctionCall& call) {
      return JointCalls::Has(*call.function) && JointCalls::IsLong(access, kind, *record, call);
    };
    calls.erase(std::ranges::find_if(calls, is_long), calls.end());
    if (calls.empty()) return 0;
    const bool is_done = LargeCall::ReadsView(*calls.front().function)
                             ? LargeCall(access, key, kind, *record).ReadTogether(calls, &answers)
                             : JointCalls::Of(access, key, kind, *record)->Run(calls, &answers);
    if (!is_done) {
      // A wrong hint is corrected by now, and the older state that was read was not at fault.
      if (!access.TakeWrongHint()) access.WantNewest();
      continue;
    }
    for (size_t i = 0; i < answers.size(); ++i) Fill(batch, slots[i], kind, access, answers[i]);
    return answers.size();
  }
  return 0;
}

// Does a request that was set aside.
Version CollectionEngine::DoAlone(Batch& batch, uint32_t slot) {
  Access access = AccessOf(batch);
  const std::span key(&batch.requests()[slot].key, 1);
  for (int tries = 0; tries < kTriesMax && access.work() <= kLongAttemptBytes; ++tries) {
    if (!Pass(batch, key)) return access.ticket();
    if (TryAlone(access, batch, slot)) return access.ticket();
    access.WantNewest();
  }
  const Turnstiles::Turn turn(turnstiles_, key, WaitOf(batch));
  if (!turn) return access.ticket();
  for (int tries = 0; tries < kTurnTriesMax; ++tries) {
    if (TryAlone(access, batch, slot)) return access.ticket();
  }
  BatchWriter(batch, BatchWriter::KeepOutcomes()).Refuse(slot, types::kNoCollection);
  return access.ticket();
}

// False: something has changed meanwhile, and the request has to be tried again.
bool CollectionEngine::TryAlone(Access& access, Batch& batch, uint32_t slot) {
  access.Forget();
  const Request& r = batch.requests()[slot];
  const uint8_t kind = KindWanted(r);
  if (kind != kPlainType && (r.op == Op::kApply || r.op == Op::kGet)) {
    const auto record = access.Record(r.key, kind);
    large_hints_.Note(r.key, record.has_value());
    if (record) {
      LargeCall call(access, r.key, kind, *record);
      const auto answer = r.op == Op::kApply ? call.Apply(*r.function, r.value) : call.Whole();
      if (!answer) return false;
      Fill(batch, slot, kind, access, *answer);
      return true;
    }
  }
  if (TryInOneValue(access, batch, slot, value_bytes_, true)) return true;
  Status status;
  const auto made = MakeLarge(access, r.key, kind, WaitOf(batch), &status);
  if (!made) {
    BatchWriter(batch, BatchWriter::KeepOutcomes()).Postpone(slot);
    return true;
  }
  switch (*made) {
    case WriteResult::kDone:
      return false;
    case WriteResult::kRefused:
      BatchWriter(batch, BatchWriter::KeepOutcomes()).Refuse(slot, status);
      return true;
    case WriteResult::kAgain:
      break;
  }
  // A new collection that is too large for one value is made in one, and converted at once.
  if (!TryInOneValue(access, batch, slot, traits().value_bytes_max, true)) {
    // It is set aside because it is too large for that, too, or because it has become large.
    return TryInOneValue(access, batch, slot, traits().value_bytes_max, false) &&
           batch.outcome(slot).status.code() == Code::kTooLarge;
  }
  if (batch.outcome(slot).verdict == Verdict::kDone) {
    ConvertIfOutgrown(access, r.key, WaitOf(batch));
  }
  return true;
}

// Does a request where collections in one value may have so many bytes. False: it was set aside.
bool CollectionEngine::TryInOneValue(Access& access, Batch& batch, uint32_t slot, size_t bytes_max,
                                     bool sets_aside) {
  Batch one;
  one.Add(batch.requests()[slot]);
  one.set_scan_bytes_max(batch.scan_bytes_max());
  BatchWriter out(batch, BatchWriter::KeepOutcomes());
  one.set_notes_effects(out.notes_effects());
  {
    types::FormScope scope(bytes_max, sets_aside);
    access.Execute(one);
    if (scope.has_set_aside()) return false;
  }
  CopyOutcome(one, 0, out, slot);
  for (const Effect& effect : one.effects()) out.NoteAgain(slot, effect);
  return true;
}

void CollectionEngine::Fill(Batch& batch, uint32_t slot, uint8_t kind, Access& access,
                            const Answer& answer) {
  BatchWriter out(batch, BatchWriter::KeepOutcomes());
  Outcome& outcome = out.outcome(slot);
  outcome = {.verdict = Verdict::kDone,
             .present = true,
             .type = kind,
             .more = answer.is_too_long,
             .integer = answer.integer,
             .deadline_ms = access.deadline_ms(),
             .version = answer.keeps ? 0 : answer.version};
  out.CountWork(answer.value.size() + access.TakeWork());
  hidden_items_.Add(answer.version, answer.segments_added);
  if (answer.is_erased) {
    sweeper_.Want();
    out.Note(slot, Effect::Kind::kErase);
  }
  if (!answer.status.ok()) return out.Refuse(slot, answer.status);
  if (out.scratch().used() + answer.value.size() > batch.answer_bytes_max()) {
    return out.RefuseAnswer(slot);
  }
  outcome.value = out.scratch().Copy(answer.value);
}

// Converts the collection at the key, if it is of this kind and lies in one value. Nothing: it must
// not wait for the lock of the key, which another thread has.
std::optional<WriteResult> CollectionEngine::MakeLarge(Access& access, std::string_view key,
                                                       uint8_t kind, Wait wait, Status* status) {
  const KeyLocks::Held held(locks_, std::span(&key, 1), wait);
  if (!held) return std::nullopt;
  const Conversion conversion = Convert(access, key, kind, NewId(access));
  *status = conversion.status;
  if (conversion.result == WriteResult::kDone) {
    hidden_items_.Add(conversion.version, conversion.segments);
    has_hidden_.store(true, std::memory_order_relaxed);
    conversions_.fetch_add(1, std::memory_order_relaxed);
    if (conversion.deadlines > 0) field_sweeper_.Note(key, access.now_ms());
  }
  return conversion.result;
}

// ---- The rest of the interface ----

bool CollectionEngine::ReadsRecords() {
  Access access(inner(), 0, segment_bytes_);
  return collections::ReadsRecords(access);
}

Result<uint64_t> CollectionEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (IsHidden(key)) return Fail(kHidden);
  return inner().Watch(key, now_ms);
}

bool CollectionEngine::Maintain(uint64_t now_ms) {
  const uint64_t field_now_ms = now_.Advance(now_ms);
  Access hashes(inner(), field_now_ms, segment_bytes_);
  bool more = field_sweeper_.Run(*this, hashes);
  more = inner().Maintain(now_ms) || more;
  if (!HasHidden()) return more;
  const uint64_t expired = inner().Statistics().expired_keys;
  if (expired_keys_.exchange(expired, std::memory_order_relaxed) != expired) sweeper_.Want();
  // A write that replaces a collection whose deadline has passed tells nobody what it has replaced.
  const uint64_t looked_ms = looked_ms_.load(std::memory_order_relaxed);
  if (has_deadlines_.load(std::memory_order_relaxed) && now_ms >= looked_ms + kLookMs) {
    looked_ms_.store(now_ms, std::memory_order_relaxed);
    sweeper_.Want();
  }
  Access access(inner(), now_ms, segment_bytes_);
  const Sweeper::Step step = sweeper_.Run(access);
  hidden_items_.Add(step.version, -step.deleted);
  if (step.deleted > 0) segment_hints_.Forget(step.id);
  swept_items_.fetch_add(static_cast<uint64_t>(step.deleted), std::memory_order_relaxed);
  return more || step.more;
}

EngineStatistics CollectionEngine::Statistics() const {
  EngineStatistics statistics = inner().Statistics();
  statistics.items -= std::min(statistics.items, static_cast<uint64_t>(hidden_items_.count()));
  return statistics;
}

void CollectionEngine::Describe(uint64_t now_ms, const StatsVisitor& visit) const {
  inner().Describe(now_ms, visit);
  visit("collection_items", static_cast<uint64_t>(hidden_items_.count()));
  visit("collection_conversions", conversions_.load(std::memory_order_relaxed));
  visit("collection_hint_bytes", segment_hints_.bytes());
  visit("collection_items_swept", swept_items_.load(std::memory_order_relaxed));
}

const char* CollectionEngine::Verify() const {
  const char* const broken = inner().Verify();
  return broken != nullptr ? broken : CheckCollections(inner());
}

}  // namespace skep::collections

#include "hash/atomic_run.h"

#include <algorithm>
#include <new>

#include "base/reserve_more.h"
#include "hash/sampler.h"

namespace skep::hash {
namespace {

bool CountsKeys(Op op) { return op == Op::kDeleteAll || op == Op::kCount; }
bool NeedsAll(Op op) { return op == Op::kSample || CountsKeys(op); }

}  // namespace

Version AtomicRun::Do() {
  ListPartitions();
  if (std::ranges::any_of(batch_.requests(), CountsKeys, &Request::op)) {
    core_.ApproachDue(std::max(core_.now.Latest(), batch_.now_ms()));
  }
  const Locks locks(core_, locked_);
  PrefetchRecords();
  now_ms_ = core_.now.Advance(batch_.now_ms());
  ExecuteParts(batch_, out_, *this);
  return core_.numbers.wanted() ? Number() : 0;
}

// Locks the partitions in ascending order (partition.h).
AtomicRun::Locks::Locks(Core& core, const std::bitset<kPartitionsMax>& locked)
    : core_(core), locked_(locked) {
  for (size_t i = 0; i < core_.partitions.size(); ++i) {
    if (locked_[i]) core_.partitions[i]->lock.lock();
  }
}

AtomicRun::Locks::~Locks() {
  for (size_t i = 0; i < core_.partitions.size(); ++i) {
    if (locked_[i]) core_.partitions[i]->lock.unlock();
  }
}

// Numbers the batch's writes; its partitions must still be locked (sequence_numbers.h).
Version AtomicRun::Number() {
  const Version number = NumberWrites(batch_, core_.numbers, out_);
  Version ticket = 0;
  for (size_t i = 0; i < core_.partitions.size(); ++i) {
    if (!locked_[i]) continue;
    Version& last = core_.partitions[i]->number;
    if (number != 0) last = number;
    ticket = std::max(ticket, last);
  }
  return ticket;
}

// Lists the partitions that the batch needs, and starts fetching its buckets.
void AtomicRun::ListPartitions() {
  LinesToFetch lines;
  for (const Request& r : batch_.requests()) {
    if (NeedsAll(r.op)) locked_.set();
    const uint64_t hash = HashOf(r.key);
    locked_.set(core_.PartitionOf(hash));
    lines.Add(core_.TableOf(hash).LineOf(hash));
    if (r.op == Op::kMove) locked_.set(core_.PartitionOf(HashOf(r.other)));
  }
  lines.Fetch();
}

// Starts fetching the records; their buckets have been fetched side by side before.
void AtomicRun::PrefetchRecords() const {
  LinesToFetch lines;
  for (const Request& r : batch_.requests()) {
    const Key key = KeyOf(r.key);
    const Table& table = core_.TableOf(key.hash);
    table.AddLine(table.LeadOf(table.FirstBucket(key), key), &lines);
  }
  lines.Fetch();
}

void AtomicRun::BeginPart(const Part& part) {
  constexpr size_t kKeysASlot = 2;
  station_.Reset(kKeysASlot * (part.end - part.begin), 0);
  is_cleared_ = false;
}

ReservationStation::Entry& AtomicRun::EntryOf(std::string_view key) {
  const Key k = KeyOf(key);
  const auto [entry, is_new] = station_.Add(k);
  if (is_new && !is_cleared_) ReservationStation::Load(entry, core_.TableOf(k.hash), now_ms_);
  return entry;
}

void AtomicRun::Perform(uint32_t slot) {
  const Request& r = request(slot);
  if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) return out_.Refuse(slot, s);
  switch (r.op) {
    case Op::kMove:
      return Move(slot);
    case Op::kRequireUnchanged:
      JudgeUnchanged(r, core_.watches, now_ms_, out_, slot);
      return;
    case Op::kDeleteAll:
      return DeleteAll(slot);
    case Op::kSample:
      return Sample(slot);
    case Op::kCount:
      out_.outcome(slot) = {.verdict = Verdict::kDone, .integer = CountAll()};
      return;
    default:
      return Point(slot);
  }
}

void AtomicRun::Point(uint32_t slot) {
  const Request& r = request(slot);
  ReservationStation::Do(EntryOf(r.key), r, slot, now_ms_, traits_, core_.budget, out_);
}

void AtomicRun::Move(uint32_t slot) {
  const Request& r = request(slot);
  // Both entries are added before a reference to either is held: adding one leaves the others in
  // place.
  ReservationStation::Entry& from = EntryOf(r.key);
  ReservationStation::Entry& to = EntryOf(r.other);
  std::optional<PointState> state;
  if (from.is_present) state = {.value = from.value, .deadline_ms = from.deadline_ms};
  if (!JudgeMove(r, state, to.is_present, out_, slot)) return;
  if (!core_.budget.HasRoomFor(0)) return out_.RefuseMemory(slot, core_.budget);
  const PointEffect store = {
      .action = PointEffect::Action::kStore, .value = from.value, .deadline_ms = from.deadline_ms};
  ReservationStation::Apply(to, store, r, slot, out_.scratch());
  ReservationStation::Apply(from, {.action = PointEffect::Action::kErase}, r, slot, out_.scratch());
}

// Returns the number of keys as the part has left them so far.
int64_t AtomicRun::CountAll() const {
  int64_t keys = is_cleared_ ? 0 : static_cast<int64_t>(core_.LiveItems(now_ms_));
  for (const ReservationStation::Entry& entry : station_.entries()) {
    if (!is_cleared_ && entry.was_live) --keys;
    if (entry.is_present) ++keys;
  }
  return keys;
}

void AtomicRun::DeleteAll(uint32_t slot) {
  const int64_t keys = CountAll();
  for (ReservationStation::Entry& entry : station_.entries()) {
    if (!entry.is_present) continue;
    entry.is_present = false;
    entry.is_written = true;
  }
  is_cleared_ = true;
  out_.outcome(slot) = {.verdict = Verdict::kDone, .integer = keys};
}

void AtomicRun::Sample(uint32_t slot) {
  out_.BeginItems(slot);
  const auto drawn = Sampler(core_, request(slot).random, now_ms_, &station_, is_cleared_).Draw();
  out_.outcome(slot).verdict = drawn ? Verdict::kDone : Verdict::kAbsent;
  if (!drawn) return;
  out_.AddItem(slot, {.key = drawn->key, .value = drawn->value});
}

// Prepares the part's writes where no reader sees them yet. Returns false if there is no memory for
// the write of the slot `culprit`.
bool AtomicRun::PrepareAll(std::vector<Writing>* writings, const Part& part, uint32_t* culprit) {
  try {
    for (const ReservationStation::Entry& entry : station_.entries()) {
      if (!entry.is_written || !entry.is_present) continue;
      const bool stores = entry.last_store != ReservationStation::kNone;
      *culprit = stores ? entry.last_store : part.begin;
      ReserveMore(*writings, 1);
      Writing writing{.table = &core_.TableOf(entry.key.hash), .key = entry.key, .prepared = {}};
      if (!writing.table->Prepare(entry.key, entry.value, entry.deadline_ms,
                                  stores ? Arena::Limit::kObey : Arena::Limit::kExceed,
                                  &writing.prepared)) {
        return false;
      }
      writings->push_back(writing);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Returns the slot for which there is no memory, if there is one; nothing is changed then.
std::optional<uint32_t> AtomicRun::FinishPart(const Part& part) {
  std::vector<Writing> writings;
  uint32_t culprit = part.begin;
  if (!PrepareAll(&writings, part, &culprit)) {
    for (const Writing& w : writings) w.table->Drop(w.prepared);
    out_.RefuseMemory(culprit, core_.budget);
    return culprit;
  }
  // Nothing fails from here on.
  if (is_cleared_) {
    for (const auto& partition : core_.partitions) partition->table.EraseAll();
    core_.watches.TouchRange({}, {}, true, 0);
  }
  for (const ReservationStation::Entry& entry : station_.entries()) {
    if (!entry.is_written) continue;
    core_.watches.Touch(entry.key.bytes, 0);
    if (!entry.is_present) core_.TableOf(entry.key.hash).Erase(entry.key);
  }
  for (const Writing& w : writings) w.table->Install(w.key, w.prepared);
  return std::nullopt;
}

}  // namespace skep::hash

#include "btree/batch_executor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "btree/atomic_points.h"
#include "btree/atomic_ranges.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/point_read.h"
#include "btree/range_delete.h"
#include "btree/ranges.h"
#include "btree/sampler.h"
#include "engine/only_reads.h"
#include "engine/point.h"

namespace skep::btree {
namespace {

constexpr size_t kRetiredMax = 64;        // retired pieces that a batch keeps to itself
constexpr uint32_t kUnpausedItems = 256;  // of a scan; a longer one pauses the writes

// Whether the batch may be read at the released version. A function that only reads is applied to
// the newest value, as its caller expects of a function, but for those of segments of large
// collections: they are part of a read (collections/access.h).
bool ReadsAtVersion(const Batch& batch) {
  return std::ranges::all_of(batch.requests(), [](const Request& r) {
    return !IsWrite(r.op) || (OnlyReads(r) && r.function->type == types::kSegment);
  });
}

bool IsRangeDelete(Op op) { return op == Op::kDeleteRange || op == Op::kDeleteAll; }

}  // namespace

template <class Layout>
Version BatchExecutor<Layout>::Execute() {
  if (const Status s = CheckBatch(batch_, traits_); !s.ok()) {
    out_.RefuseAll(s);
    return 0;
  }
  now_ms_ = core_.now.Advance(batch_.now_ms());
  // If a request throws, all that was announced ends with the thread state.
  core_.versions.EnterEpoch(thread_);
  const Version ticket = DoBatch();
  core_.versions.LeaveEpoch(thread_);
  if (writes_) core_.versions.EndWrites(thread_);
  pin_.reset();
  return ticket;
}

template <class Layout>
Version BatchExecutor<Layout>::DoBatch() {
  if (batch_.snapshot().id != 0) return DoAtSnapshot();
  if (batch_.kind() == Batch::Kind::kUnordered) return DoUnordered();
  if (ReadsAtVersion(batch_) && core_.multi_version.reads_at_versions() && !NeedsNewest()) {
    const Version at = BeginReading();
    DoReads(at);
    EndReading();
    return at;
  }
  return DoAtomic();
}

template <class Layout>
Version BatchExecutor<Layout>::DoUnordered() {
  Version ticket = 0;
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    if (IsTimeToRest(i)) {
      EndReading();
      Rest();
    }
    look_ahead_.Prepare(batch_.requests(), i);
    ticket = std::max(ticket, DoSlot(i));
    if (thread_.retired.size() > kRetiredMax) Reclaim();
  }
  EndReading();
  return ticket;
}

// Whether the batch has requests that are not read at a version.
template <class Layout>
bool BatchExecutor<Layout>::NeedsNewest() const {
  return std::ranges::any_of(batch_.requests(), [](const Request& r) {
    return r.op == Op::kSample || r.op == Op::kRequireUnchanged;
  });
}

// Begins to read at a version, by protocol S of versions.h.
template <class Layout>
Version BatchExecutor<Layout>::BeginReading() {
  read_at_ = core_.multi_version.BeginReading(thread_, core_.gate);
  now_ms_ = core_.now.Advance(batch_.now_ms());
  reads_ = true;
  return read_at_;
}

// The version of the scans of an unordered batch that follow each other: one for all until the
// batch rests, as each may see any or none of the batch's own writes.
template <class Layout>
Version BatchExecutor<Layout>::ReadingVersion() {
  return reads_ ? read_at_ : BeginReading();
}

template <class Layout>
void BatchExecutor<Layout>::EndReading() {
  if (!reads_) return;
  thread_.read_floor.store(ThreadState::kIdle, std::memory_order_release);
  reads_ = false;
}

template <class Layout>
void BatchExecutor<Layout>::BeginWrites() {
  core_.versions.BeginWrites(thread_);
  writes_ = true;
  wrote_ = true;
}

// Rests between two requests of a long batch, which holds no pointers there. Leaving the epoch lets
// pieces be freed. Raising the floor alone would not release the versions that others have finished
// while a write of this batch was unfinished: they have scanned, and there may be no later writer
// that scans again.
template <class Layout>
void BatchExecutor<Layout>::Rest() {
  core_.versions.LeaveEpoch(thread_);
  core_.versions.EnterEpoch(thread_);
  if (!writes_) return;
  core_.versions.Raise(thread_);
  upkeep_.Release();
}

// Rests in a batch that reads at one version. From its first rest on that version is pinned, so
// that the batch holds back no more than what it sees (snapshots.h).
template <class Layout>
void BatchExecutor<Layout>::RestReading() {
  if (reads_) {
    pin_.emplace(core_.snapshots, Snapshots::ReadVersion{read_at_});
    EndReading();
  }
  Rest();
}

// Reclaims in the middle of a long batch, which holds no pointers between two of its requests.
template <class Layout>
void BatchExecutor<Layout>::Reclaim() {
  PauseWrites();
  EndReading();
  core_.versions.LeaveEpoch(thread_);
  upkeep_.AfterBatch(thread_);
  core_.versions.EnterEpoch(thread_);
}

// Called before a request that takes long, so that no thread has to wait for this batch's versions.
template <class Layout>
void BatchExecutor<Layout>::PauseWrites() {
  if (!writes_) return;
  core_.versions.EndWrites(thread_);
  upkeep_.Release();
  writes_ = false;
}

// Waits, out of the epoch, for the writes that were under way. A range delete has to wait for them
// here or with the writers stopped.
template <class Layout>
void BatchExecutor<Layout>::AwaitReleased(Version version) {
  PauseWrites();
  upkeep_.Release();
  if (core_.multi_version.IsReleased(version, core_.gate)) return;
  EndReading();
  core_.versions.LeaveEpoch(thread_);
  while (!core_.gate.IsReleased(version)) {
    std::this_thread::yield();
    upkeep_.Release();
  }
  core_.versions.EnterEpoch(thread_);
}

template <class Layout>
Version BatchExecutor<Layout>::DoAtSnapshot() {
  const SnapshotRef snapshot = batch_.snapshot();
  now_ms_ = snapshot.now_ms;
  const Snapshots::Use use(core_.snapshots, snapshot.id);
  if (use.version()) {
    DoReads(*use.version());
  } else {
    out_.RefuseAll({Code::kSnapshotTooOld, "the snapshot is gone"});
  }
  return snapshot.version;
}

// Executes a batch that only reads, all at one version.
template <class Layout>
void BatchExecutor<Layout>::DoReads(Version at) {
  if (batch_.kind() == Batch::Kind::kUnordered) {
    for (uint32_t i = 0; i < batch_.size(); ++i) Read(i, at);
    return;
  }
  ForEachPart(batch_, [&](const Part& part) {
    // The first condition that does not hold; else the first operation that is refused.
    std::optional<uint32_t> culprit;
    for (uint32_t i = part.begin; i < part.end; ++i) {
      Read(i, at);
      const Verdict verdict = out_.outcome(i).verdict;
      const bool is_condition = IsCondition(request(i).op);
      if (is_condition && verdict != Verdict::kDone) {
        culprit = i;
        break;
      }
      if (verdict == Verdict::kRefused && !culprit) culprit = i;
    }
    if (culprit) out_.Abort(part, *culprit);
    return !culprit || !part.is_first;
  });
}

template <class Layout>
void BatchExecutor<Layout>::Read(uint32_t i, Version at) {
  if (IsTimeToRest(i)) RestReading();
  // Searches for floors come from a look-up of parts of one collection, which asks in order.
  const bool seeks_floors = request(i).op == Op::kScan && request(i).has(Request::kSeekFloor);
  look_ahead_.Prepare(batch_.requests(), i, seeks_floors);
  const Request& r = request(i);
  // A point that is sound in an unordered batch is so in an atomic one and at a snapshot.
  const Status s = IsSoundPoint(r, traits_) ? Status() : CheckRequest(r, batch_, traits_);
  if (!s.ok()) {
    out_.Refuse(i, s);
  } else if (IsRange(request(i).op)) {
    out_.IsPostponing() ? out_.Postpone(i) : DoRange(i, at);
  } else {
    Get(i, LeafOf(i, at), at);
  }
}

// Finds the leaf of request `i` at a version.
template <class Layout>
LeafPlace BatchExecutor<Layout>::LeafOf(uint32_t i, Version at) const {
  if (const auto place = look_ahead_.CurrentAt(i, request(i), at)) return *place;
  LeafPlace place = reader_.Find(request(i).key, at);
  place.is_stale_hint = request(i).hint.bits != 0;
  return place;
}

// Reads a point, runs a function that only reads on it, or checks a condition, at a version or in
// the newest state.
template <class Layout>
Version BatchExecutor<Layout>::Get(uint32_t i, const LeafPlace& place, Version at) {
  return ReadPoint<Layout>(core_, request(i), place, at, now_ms_, traits_, out_, i);
}

// Like Get for a kGet, in the newest state.
template <class Layout>
inline Version BatchExecutor<Layout>::GetNewest(uint32_t i) {
  const Request& r = request(i);
  Version seen;
  // A leaf whose sorted items have the key covers it, so that need not be asked.
  if (const LeafPlace place = look_ahead_.Surmised(i);
      place.node != nullptr && ReadPlain<Layout>(r, place, now_ms_, out_, i, &seen)) {
    return seen;
  }
  const LeafPlace place = look_ahead_.Newest(i, r);
  if (ReadPlain<Layout>(r, place, now_ms_, out_, i, &seen)) return seen;
  return Get(i, place, kNewest);
}

template <class Layout>
void BatchExecutor<Layout>::DoRange(uint32_t i, Version at) {
  const Ranges<Layout> ranges(core_, at, now_ms_, &thread_.scanned);
  switch (request(i).op) {
    case Op::kScan: {
      if (out_.LeavesOutScan(i)) return;
      const auto place = look_ahead_.CurrentAt(i, request(i), at);
      ranges.Scan(request(i), batch_.scan_bytes_max(), batch_.scan_visits_max(), place, out_, i);
      if (place) TellHint(request(i), *place, &out_.outcome(i));
      return;
    }
    case Op::kCount:
      ranges.Count(request(i), out_, i);
      return out_.CountWork(kVisitBytes * static_cast<size_t>(out_.outcome(i).integer));
    default:
      return ranges.RequireEmpty(request(i), out_, i);
  }
}

// Executes one request of an unordered batch. Returns the version it has seen or made.
template <class Layout>
Version BatchExecutor<Layout>::DoSlot(uint32_t i) {
  const Request& r = request(i);
  if (!IsSoundPoint(r, traits_)) [[unlikely]] {
    if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) {
      out_.Refuse(i, s);
      return 0;
    }
    if (r.op > Op::kApply && out_.IsPostponing()) {
      out_.Postpone(i);
      return 0;
    }
  }
  switch (r.op) {
    case Op::kGet:
      // A thread that stops the writers must not wait for a batch of reads.
      if (writes_) core_.versions.RaiseInTime(thread_);
      return GetNewest(i);
    case Op::kApply:
      return OnlyReads(r) ? ApplyReading(i) : Write(i);
    case Op::kScan:
    case Op::kCount: {
      if (r.limit > kUnpausedItems) {
        PauseWrites();
      } else if (writes_) {
        core_.versions.RaiseInTime(thread_);
      }
      const Version at = ReadingVersion();
      DoRange(i, at);
      return at;
    }
    case Op::kSample:
      return Sample(i);
    case Op::kDeleteRange:
    case Op::kDeleteAll:
      return DeleteRange(i);
    case Op::kExpireRange:
      return ExpireRange(i);
    default:
      return Write(i);
  }
}

// Runs a function that only reads on the newest value. It takes no lock and draws no version.
template <class Layout>
Version BatchExecutor<Layout>::ApplyReading(uint32_t i) {
  if (IsSetAside(request(i))) [[unlikely]] {
    out_.Postpone(i);
    return 0;
  }
  if (writes_) core_.versions.RaiseInTime(thread_);
  return Get(i, look_ahead_.Newest(i, request(i)), kNewest);
}

// Executes a point of an unordered batch that may write.
template <class Layout>
Version BatchExecutor<Layout>::Write(uint32_t i) {
  const Request& r = request(i);
  if (IsSetAside(r)) [[unlikely]] {
    out_.Postpone(i);
    return 0;
  }
  // The floor of an earlier scan is given up: the memory that it holds back may be what the write
  // needs.
  EndReading();
  if (!writes_) BeginWrites();
  return writer_.Execute(thread_, r, &now_ms_, &look_ahead_, traits_, out_, i);
}

template <class Layout>
Version BatchExecutor<Layout>::Sample(uint32_t i) {
  out_.BeginItems(i);
  Sampler<Layout> sampler(core_, request(i).random, now_ms_);
  const auto item = sampler.Draw();
  out_.outcome(i).verdict = item ? Verdict::kDone : Verdict::kAbsent;
  if (!item) return core_.Stamp(core_.versions.last_drawn());
  out_.AddItem(i, *item);
  return sampler.version();
}

template <class Layout>
Version BatchExecutor<Layout>::DeleteRange(uint32_t i) {
  const Request& r = request(i);
  const bool all = r.op == Op::kDeleteAll;
  const std::string_view lo = all ? std::string_view() : r.key;
  const bool unbounded = all || r.has(Request::kNoUpperBound);
  // Every write that was drawn before the delete began counts, the batch's own among them.
  AwaitReleased(core_.versions.last_drawn());
  const Version at = BeginReading();
  if (core_.multi_version.reads_at_versions() &&
      !RangeDelete<Layout>::HasKey(core_, at, lo, r.other, unbounded, now_ms_)) {
    EndReading();
    out_.outcome(i) = {.verdict = Verdict::kDone};
    return at;
  }
  BeginWrites();
  RangeDelete<Layout> range_delete(core_, upkeep_);
  const auto result =
      range_delete.Run(thread_, lo, r.other, unbounded,
                       all || r.limit == kNoLimit ? UINT64_MAX : r.limit, batch_.now_ms());
  EndReading();
  if (result.no_memory) {
    out_.RefuseMemory(i, core_.budget);
    return 0;
  }
  Outcome& outcome = out_.outcome(i);
  outcome.verdict = Verdict::kDone;
  outcome.integer = static_cast<int64_t>(result.keys);
  outcome.version = result.version;
  outcome.more = result.more;
  if (result.more) outcome.value = out_.scratch().Copy(result.bound);
  // A key may be absent because of a write that is not released.
  return result.version != 0 ? result.version : core_.Stamp(core_.versions.last_drawn());
}

// Expires each key by a write of its own, in steps, so that no thread waits for the nodes or
// versions of a long range.
template <class Layout>
Version BatchExecutor<Layout>::ExpireRange(uint32_t i) {
  constexpr uint32_t kStep = 64;
  const Request r = request(i);
  const bool unbounded = r.has(Request::kNoUpperBound);
  int64_t changed = 0;
  std::string from(r.key);
  Outcome result = {.verdict = Verdict::kDone};
  std::vector<std::string> keys;
  const BatchWriter::Whole whole(out_);
  do {
    keys.clear();
    PauseWrites();
    Rest();
    BeginWrites();
    Cursor<Layout> cursor(core_, kNewest, now_ms_);
    cursor.SeekAtLeast(from);
    for (; keys.size() < kStep && cursor.Settle(r.other, unbounded); cursor.Next()) {
      keys.emplace_back(cursor.key());
    }
    for (const std::string& key : keys) {
      const auto stop_before = [&] {
        result.more = true;
        result.value = out_.scratch().Copy(key);
      };
      if (changed == int64_t{r.limit} && r.limit != kNoLimit) {
        stop_before();
        break;
      }
      Request one = r;
      one.op = Op::kExpire;
      one.key = key;
      one.flags = 0;
      writer_.Execute(thread_, one, &now_ms_, nullptr, traits_, out_, i);
      const Outcome& outcome = out_.outcome(i);
      if (outcome.verdict == Verdict::kRefused) {
        // A refused request has changed nothing.
        if (changed == 0) return core_.Stamp(core_.versions.last_drawn());
        stop_before();
        break;
      }
      if (outcome.verdict != Verdict::kDone) continue;
      ++changed;
      result.version = outcome.version;
      out_.NoteDeadline(i, key, r.deadline_ms, outcome.version);
    }
    if (thread_.retired.size() > kRetiredMax) Reclaim();
    if (!keys.empty()) from = keys.back() + '\0';
  } while (keys.size() == kStep && !result.more);
  result.integer = changed;
  out_.outcome(i) = result;
  // A key may be absent because of a write that is not released.
  return core_.Stamp(core_.versions.last_drawn());
}

template <class Layout>
Version BatchExecutor<Layout>::DoAtomic() {
  BeginWrites();
  if (batch_.size() == 1 && IsRangeDelete(request(0).op)) {
    const Status s = CheckRequest(request(0), batch_, traits_);
    if (s.ok()) {
      const Version ticket = DeleteRange(0);
      if (out_.outcome(0).verdict == Verdict::kRefused) out_.AbortAllBut(0);
      return ticket;
    }
  }
  const auto context = [&](AtomicLists& lists) {
    return AtomicContext<Layout>{core_,  upkeep_, thread_, look_ahead_,
                                 batch_, out_,    traits_, lists};
  };
  if (!NamesRanges(batch_)) {
    return AtomicPoints<Layout>(context(thread_.workspace->atomic)).Execute();
  }
  AtomicLists lists;
  return AtomicRanges<Layout>(context(lists)).Execute();
}

template class BatchExecutor<PaperLayout>;
template class BatchExecutor<HeadLayout>;

}  // namespace skep::btree

#include "model/model_engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/reserve_more.h"
#include "engine/atomic_parts.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep {
namespace {

constexpr size_t kSweepEntries = 16;      // of stale_ and the graveyard, at each batch
constexpr size_t kMaintainEntries = 512;  // of each list, at each Maintain

}  // namespace

// One batch from start to end. Lives under the mutex.
class ModelEngine::Run {
 public:
  Run(ModelEngine& engine, Batch& batch)
      : engine_(engine),
        batch_(batch),
        out_(batch),
        atomic_(batch.kind() == Batch::Kind::kAtomic) {}

  // Returns the ticket. The analysis does not see that the caller holds this engine's mutex.
  Version Do() SKEP_NO_THREAD_SAFETY_ANALYSIS {
    if (const Status s = CheckBatch(batch_, engine_.traits_); !s.ok()) {
      out_.RefuseAll(s);
      return engine_.version_;
    }
    if (const SnapshotRef at = batch_.snapshot(); at.id != 0) {
      const auto opened = engine_.snapshots_.find(at.id);
      if (opened == engine_.snapshots_.end()) {
        out_.RefuseAll({Code::kSnapshotTooOld, "the snapshot is gone"});
        return engine_.version_;
      }
      read_at_ = opened->second.version;
      now_ms_ = at.now_ms;
    } else {
      now_ms_ = engine_.now_.Advance(batch_.now_ms());
    }
    try {
      DoAll();
    } catch (const std::bad_alloc&) {  // the operations already done have their versions
      if (wrote_) engine_.gate_.Release(++engine_.version_);
      throw;
    }
    if (wrote_) engine_.gate_.Release(++engine_.version_);
    return read_at_ == kNewest ? engine_.version_ : read_at_;
  }

  // The interface of ExecuteParts, which does not know the mutex.
  void BeginPart(const Part&) {}
  void Perform(uint32_t slot) SKEP_NO_THREAD_SAFETY_ANALYSIS { DoSlot(slot); }
  std::optional<uint32_t> FinishPart(const Part&) SKEP_NO_THREAD_SAFETY_ANALYSIS {
    Apply();
    return std::nullopt;
  }
  void TakeBack(const Part&) SKEP_NO_THREAD_SAFETY_ANALYSIS { TakeBackAll(); }

 private:
  static constexpr Version kNewest = UINT64_MAX;

  const Request& request(uint32_t slot) const { return batch_.requests()[slot]; }
  Version write_version() const SKEP_REQUIRES(engine_.mutex_) { return engine_.version_ + 1; }

  void DoAll() SKEP_REQUIRES(engine_.mutex_) {
    if (atomic_) return DoAtomic();
    for (uint32_t slot = 0; slot < batch_.size(); ++slot) DoSlot(slot);
  }

  void DoAtomic() SKEP_REQUIRES(engine_.mutex_) {
    uint64_t incoming = 0;
    for (const Request& r : batch_.requests()) {
      if (Stores(r.op)) incoming += r.key.size() + r.value.size();
    }
    room_ = engine_.MakeRoomFor(incoming);
    ExecuteParts(batch_, out_, *this);
  }

  // Makes the changes that could be undone final.
  void Apply() SKEP_REQUIRES(engine_.mutex_) {
    for (const Undo& undo : undo_) {
      engine_.watches_.Touch(undo.key, write_version());
      const auto at = engine_.map_.find(std::string_view(undo.key));
      if (at != engine_.map_.end()) engine_.EraseIfEmpty(at);
    }
    wrote_ = wrote_ || !undo_.empty();
    undo_.clear();
  }

  // Does one operation on many keys as a whole, or not at all, also in an unordered batch.
  template <typename Body>
  void DoWhole(Body body) SKEP_REQUIRES(engine_.mutex_) {
    if (atomic_) return body();
    undoes_ = true;
    try {
      body();
    } catch (const std::bad_alloc&) {
      TakeBackAll();
      undoes_ = false;
      throw;
    }
    Apply();
    undoes_ = false;
  }

  static bool Stores(Op op) {
    return op >= Op::kPut && op <= Op::kApply && op != Op::kDelete && op != Op::kExpire;
  }

  void DoSlot(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    const Request& r = request(slot);
    if (Status s = CheckRequest(r, batch_, engine_.traits_); !s.ok()) return out_.Refuse(slot, s);
    if (out_.IsPostponing()) return out_.Postpone(slot);
    if (Stores(r.op) && !(atomic_ ? room_ : engine_.MakeRoomFor(r.key.size() + r.value.size()))) {
      return out_.RefuseMemory(slot, *engine_.options_.budget);
    }
    Outcome& out = out_.outcome(slot);
    out.verdict = Verdict::kDone;
    switch (r.op) {
      case Op::kScan:
        return Scan(slot);
      case Op::kCount:
        Count(r, out);
        return out_.CountWork(kVisitBytes * static_cast<size_t>(out.integer));
      case Op::kDeleteRange:
        return DoWhole([&]() SKEP_REQUIRES(engine_.mutex_) { DeleteRange(r, out); });
      case Op::kDeleteAll:
        return DoWhole([&]() SKEP_REQUIRES(engine_.mutex_) { DeleteAll(r, out); });
      case Op::kExpireRange:
        return DoWhole([&]() SKEP_REQUIRES(engine_.mutex_) { ExpireRange(slot); });
      case Op::kRequireEmpty:
        return RequireEmpty(r, out);
      case Op::kRequireUnchanged:
        JudgeUnchanged(r, engine_.watches_, now_ms_, out_, slot);
        return;
      case Op::kSample:
        return Sample(slot);
      case Op::kMove:
        return Move(slot);
      default:
        return Point(slot);
    }
  }

  // The visible value of the entry; null if the key is absent.
  const Value* Visible(Map::const_iterator at) const SKEP_REQUIRES(engine_.mutex_) {
    if (at == engine_.map_.end()) return nullptr;
    const Value* const value = ReadAt(at->second, read_at_);
    return value != nullptr && !HasExpired(value->deadline_ms, now_ms_) ? value : nullptr;
  }

  std::string_view Copy(const Value* value) {
    return value == nullptr ? std::string_view() : out_.scratch().Copy(value->bytes);
  }

  void Point(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    const Request& r = request(slot);
    const auto at = engine_.map_.find(r.key);
    const Value* const now = Visible(at);
    const PointEffect effect = ApplyPoint(r, StateOf(now), now_ms_, engine_.traits_, out_, slot);
    Outcome& out = out_.outcome(slot);
    switch (effect.action) {
      case PointEffect::Action::kKeep:
        if (r.op == Op::kGet && out.verdict == Verdict::kDone) out.version = now->version;
        return;
      case PointEffect::Action::kErase:
        Write(at, std::nullopt);
        break;
      case PointEffect::Action::kStore:
        Write(FindOrMake(at, r.key), PointState{effect.value, effect.deadline_ms, effect.type});
        break;
    }
    out.version = write_version();
  }

  static std::optional<PointState> StateOf(const Value* now) {
    return now != nullptr ? std::optional(now->state()) : std::nullopt;
  }

  void Move(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    const Request& r = request(slot);
    const auto from = engine_.map_.find(r.key);
    const auto to = engine_.map_.find(r.other);
    const std::optional<PointState> state = StateOf(Visible(from));
    if (!JudgeMove(r, state, Visible(to) != nullptr, out_, slot)) return;
    const std::string bytes(state->value);
    Write(from, std::nullopt);
    Write(FindOrMake(to, r.other), PointState{bytes, state->deadline_ms, state->type});
    out_.outcome(slot).version = write_version();
  }

  void RequireEmpty(const Request& r, Outcome& out) SKEP_REQUIRES(engine_.mutex_) {
    const auto [from, to] = Bounds(r);
    for (auto at = from; at != to; ++at) {
      if (Visible(at) == nullptr) continue;
      out.verdict = Verdict::kMismatch;
      out.value = out_.scratch().Copy(at->first);
      return;
    }
  }

  // Calls visit(iterator, value) for the visible entries of [lo, hi) in order. Stops before an
  // entry that visit answers with false, or when it has looked at `visits_max`, visible or not.
  template <typename Visit>
  void ForEach(const Request& r, uint32_t visits_max, Outcome& out, Visit visit)
      SKEP_REQUIRES(engine_.mutex_) {
    const uint64_t most = visits_max == kNoLimit ? UINT64_MAX : visits_max;
    uint64_t visits = 0;
    auto [from, to] = Bounds(r);
    const bool reverse = r.has(Request::kReverse);
    while (from != to) {
      const auto at = reverse ? std::prev(to) : from++;  // the visitor may erase it
      if (reverse) --to;
      const Value* const value = Visible(at);
      if (visits < most && (value == nullptr || visit(at, *value))) {
        ++visits;
        continue;
      }
      out.more = true;
      const bool erases = r.op == Op::kDeleteRange || r.op == Op::kExpireRange;
      out.value = GoOnBefore(at, reverse, visits > 0 && !erases);
      return;
    }
  }

  // The bound to go on from: after the visited keys, before all that may yet be added behind them.
  std::string_view GoOnBefore(Map::iterator at, bool reverse, bool visited) {
    if (reverse) {
      return visited ? out_.scratch().Copy(std::next(at)->first)
                     : KeyAfter(at->first, out_.scratch());
    }
    return visited ? KeyAfter(std::prev(at)->first, out_.scratch())
                   : out_.scratch().Copy(at->first);
  }

  std::pair<Map::iterator, Map::iterator> Bounds(const Request& r) SKEP_REQUIRES(engine_.mutex_) {
    Map& map = engine_.map_;
    auto from = map.lower_bound(r.key);
    if (r.has(Request::kSeekFloor)) from = Floor(r.key, from);
    if (r.has(Request::kNoUpperBound)) return {from, map.end()};
    const auto to = map.lower_bound(r.other);
    // An empty range: also when the floor itself lies at or above the upper bound.
    if (from == map.end() || (to != map.end() && from->first >= to->first)) return {to, to};
    return {from, to};
  }

  // The largest visible key <= key, else `ceiling`, the first entry >= key.
  Map::iterator Floor(std::string_view key, Map::iterator ceiling) SKEP_REQUIRES(engine_.mutex_) {
    auto at = engine_.map_.upper_bound(key);
    while (at != engine_.map_.begin()) {
      --at;
      if (Visible(at) != nullptr) return at;
    }
    return ceiling;
  }

  void Scan(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    if (out_.LeavesOutScan(slot)) return;
    const Request& r = request(slot);
    Outcome& out = out_.outcome(slot);
    out_.BeginItems(slot);
    size_t bytes = 0;
    const auto is_full = [&] {
      return out.item_count == r.limit || bytes > batch_.scan_bytes_max();
    };
    std::string_view last;
    ForEach(r, batch_.scan_visits_max(), out, [&](Map::iterator at, const Value& value) {
      if (is_full()) return false;
      const Item item =
          out_.AddItem(slot, {.key = at->first, .value = ValueOfItem(r, value.bytes, value.type)});
      bytes += item.key.size() + item.value.size();
      last = item.key;
      out_.NoteItem(slot, item.key, value.deadline_ms, value.type);
      return true;
    });
    // Not past the deleted keys behind the last item: they may be present again by then.
    if (out.more && is_full() && out.item_count > 0) {
      out.value = r.has(Request::kReverse) ? last : KeyAfter(last, out_.scratch());
    }
  }

  void Count(const Request& r, Outcome& out) SKEP_REQUIRES(engine_.mutex_) {
    ForEach(r, r.limit, out, [&](Map::iterator, const Value&) {
      ++out.integer;
      return true;
    });
  }

  void DeleteRange(const Request& r, Outcome& out) SKEP_REQUIRES(engine_.mutex_) {
    const bool everything = r.key.empty() && r.has(Request::kNoUpperBound) && r.limit == kNoLimit;
    if (everything) return DeleteAll(r, out);
    DeleteFound(r, out);
  }

  void ExpireRange(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    const Request& r = request(slot);
    Outcome& out = out_.outcome(slot);
    ForEach(r, kNoLimit, out,
            [&](Map::iterator at, const Value& value) SKEP_REQUIRES(engine_.mutex_) {
              if (r.limit != kNoLimit && out.integer == int64_t{r.limit}) return false;
              const PointEffect effect = ApplyExpiry(r, value.state(), now_ms_);
              if (effect.action == PointEffect::Action::kKeep) return true;
              ++out.integer;
              out_.NoteDeadline(slot, at->first, r.deadline_ms);
              if (effect.action == PointEffect::Action::kErase) {
                Write(at, std::nullopt);
              } else {
                Write(at, PointState{std::string(effect.value), effect.deadline_ms, effect.type});
              }
              return true;
            });
    if (out.integer > 0) out.version = write_version();
  }

  void DeleteFound(const Request& r, Outcome& out) SKEP_REQUIRES(engine_.mutex_) {
    const uint64_t most = r.limit == kNoLimit ? UINT64_MAX : r.limit;
    ForEach(r, kNoLimit, out, [&](Map::iterator at, const Value&) SKEP_REQUIRES(engine_.mutex_) {
      if (static_cast<uint64_t>(out.integer) == most) return false;
      Write(at, std::nullopt);
      ++out.integer;
      return true;
    });
    if (out.integer > 0) out.version = write_version();
  }

  void DeleteAll(const Request& r, Outcome& out) SKEP_REQUIRES(engine_.mutex_) {
    if (atomic_ || !engine_.snapshots_.empty()) {
      Request all = r;
      all.key = {};
      all.flags = Request::kNoUpperBound;
      all.limit = kNoLimit;
      return DeleteFound(all, out);
    }
    // A short way when no old value has to be kept.
    for (const auto& [deadline_ms, key] : engine_.deadlines_) {
      if (!HasExpired(deadline_ms, now_ms_)) break;
      --out.integer;
    }
    out.integer += static_cast<int64_t>(engine_.live_.size());
    if (engine_.live_.empty()) return;
    ReserveMore(engine_.graveyard_, 1);  // the only thing that may throw
    engine_.watches_.TouchRange({}, {}, true, write_version());
    engine_.deadlines_.clear();
    engine_.graveyard_.push_back(std::move(engine_.map_));
    engine_.map_.clear();
    engine_.live_.clear();
    engine_.live_.shrink_to_fit();
    engine_.stale_.clear();
    engine_.sweep_left_ = engine_.old_versions_ = 0;
    wrote_ = true;
    if (out.integer > 0) out.version = write_version();
  }

  void Sample(uint32_t slot) SKEP_REQUIRES(engine_.mutex_) {
    out_.BeginItems(slot);
    auto index = static_cast<size_t>(
        (static_cast<unsigned __int128>(request(slot).random) * engine_.live_.size()) >> 64);
    // Skips keys that have expired, and those from `end` on, if there is one (CollectionEngine).
    const std::string_view end = request(slot).key;
    for (size_t tries = engine_.live_.size(); tries > 0; --tries) {
      const auto at = engine_.live_[index];
      index = (index + 1) % engine_.live_.size();
      if (Visible(at) == nullptr || (!end.empty() && at->first >= end)) continue;
      const Value& drawn = at->second.newest;
      const std::string_view value = ValueOfItem(request(slot), drawn.bytes, drawn.type);
      out_.AddItem(slot, {.key = at->first, .value = value});
      return;
    }
    out_.outcome(slot).verdict = Verdict::kAbsent;
  }

  Map::iterator FindOrMake(Map::iterator at, std::string_view key) SKEP_REQUIRES(engine_.mutex_) {
    return at != engine_.map_.end() ? at
                                    : engine_.map_.try_emplace(Bytes(key, &engine_.memory_)).first;
  }

  // Entries that become empty while they can be undone stay until all is applied or taken back.
  void Write(Map::iterator at, std::optional<PointState> state) SKEP_REQUIRES(engine_.mutex_) {
    try {
      undoes_ ? WriteWithUndo(at, state) : engine_.Write(at, state, write_version());
    } catch (const std::bad_alloc&) {
      engine_.EraseIfEmpty(at);
      throw;
    }
    if (undoes_) return;
    wrote_ = true;
    engine_.watches_.Touch(at->first, write_version());
    engine_.EraseIfEmpty(at);
  }

  void WriteWithUndo(Map::iterator at, const std::optional<PointState>& state)
      SKEP_REQUIRES(engine_.mutex_) {
    const Value& newest = at->second.newest;
    undo_.push_back({.key = std::string(at->first),
                     .present = newest.present,
                     .type = newest.type,
                     .version = newest.version,
                     .deadline_ms = newest.deadline_ms,
                     .bytes = Bytes(newest.bytes, &engine_.memory_),
                     .pushed = engine_.KeepsNewest(at->second, write_version())});
    try {
      engine_.Write(at, state, write_version());
    } catch (const std::bad_alloc&) {
      undo_.pop_back();
      throw;
    }
  }

  // Puts back what this part changed, last change first.
  void TakeBackAll() SKEP_REQUIRES(engine_.mutex_) {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
      const auto at = FindOrMake(engine_.map_.find(std::string_view(undo->key)), undo->key);
      Entry& entry = at->second;
      if (undo->pushed) {
        entry.older.pop_back();
        --engine_.old_versions_;
      }
      entry.newest.version = undo->version;
      entry.newest.type = undo->type;
      entry.newest.bytes.swap(undo->bytes);
      engine_.PrepareWrite(at, undo->present, undo->deadline_ms, false);
      engine_.SetPresent(at, undo->present, undo->deadline_ms);
      engine_.EraseIfEmpty(at);
    }
    undo_.clear();
  }

  ModelEngine& engine_;
  Batch& batch_;
  BatchWriter out_;
  const bool atomic_;
  bool room_ = true;  // the memory of an atomic batch fits
  Version read_at_ = kNewest;
  uint64_t now_ms_ = 0;
  bool wrote_ = false;
  bool undoes_ = atomic_;  // writes keep the state before, for undo
  std::vector<Undo> undo_;
};

constinit const EngineInfo ModelEngine::kInfo = {
    .name = "model",
    .summary = "ordered, multi-version, behind one lock; the oracle of every other engine",
    .make = [](const EngineOptions& options) -> std::unique_ptr<Engine> {
      return std::make_unique<ModelEngine>(options);
    }};

ModelEngine::ModelEngine(const EngineOptions& options)
    : traits_{.name = kInfo.name, .types = true},
      options_(options),
      memory_(*options.budget),
      map_(&memory_),
      live_(&memory_),
      deadlines_(&memory_),
      stale_(&memory_) {
  watches_.set_budget(options.budget);
}

Version ModelEngine::Execute(Batch& batch) {
  const MutexLock lock(mutex_);
  RevokeOld(batch.now_ms());
  SweepSome(kSweepEntries);
  BurySome(kSweepEntries);
  return Run(*this, batch).Do();
}

// The newest value not younger than `at`, if it is present.
const ModelEngine::Value* ModelEngine::ReadAt(const Entry& entry, Version at) {
  const Value* value = &entry.newest;
  for (size_t i = entry.older.size(); value->version > at; value = &entry.older[--i]) {
    if (i == 0) return nullptr;
  }
  return value->present ? value : nullptr;
}

// Whether a live snapshot sees a value that was written at `from` and replaced at `until`.
bool ModelEngine::IsNeeded(Version from, Version until) const {
  const auto at = pinned_.lower_bound(from);
  return at != pinned_.end() && *at < until;
}

// Whether the newest value must move to `older` when it is replaced. The absence of a key needs to
// be kept only if an older value would show instead.
bool ModelEngine::KeepsNewest(const Entry& entry, Version replaced_at) const {
  return (entry.newest.present || !entry.older.empty()) &&
         IsNeeded(entry.newest.version, replaced_at);
}

void ModelEngine::Write(Map::iterator at, std::optional<PointState> state, Version version) {
  Entry& entry = at->second;
  const bool keeps = KeepsNewest(entry, version);
  const bool present = state.has_value();
  const uint64_t deadline_ms = state ? state->deadline_ms : 0;
  // A copy, because `state` may be a view of the newest value.
  Bytes bytes(state ? state->value : std::string_view(), &memory_);
  PrepareWrite(at, present, deadline_ms, keeps);
  // From here on nothing is allocated.
  if (keeps) {
    Value& older = entry.older.emplace_back(Value{.version = entry.newest.version,
                                                  .present = entry.newest.present,
                                                  .type = entry.newest.type,
                                                  .deadline_ms = entry.newest.deadline_ms,
                                                  .bytes = Bytes(&memory_)});
    older.bytes.swap(entry.newest.bytes);
    ++old_versions_;
    entry.stale = true;
  }
  entry.newest.version = version;
  entry.newest.type = state ? state->type : kPlainType;
  entry.newest.bytes.swap(bytes);
  SetPresent(at, present, deadline_ms);
  if (entry.stale) Prune(entry);
}

// Allocates whatever Write() and SetPresent() need.
void ModelEngine::PrepareWrite(Map::iterator at, bool present, uint64_t deadline_ms, bool keeps) {
  Entry& entry = at->second;
  if (keeps) ReserveMore(entry.older, 1);
  if (present) ReserveMore(live_, 1);
  const bool marks_stale = keeps && !entry.stale;
  if (marks_stale) stale_.push_back(at);
  try {
    if (present && deadline_ms != 0) deadlines_.emplace(deadline_ms, at->first);
  } catch (const std::bad_alloc&) {
    if (marks_stale) stale_.pop_back();
    throw;
  }
}

void ModelEngine::SetPresent(Map::iterator at, bool present, uint64_t deadline_ms) {
  Entry& entry = at->second;
  Value& newest = entry.newest;
  const uint64_t before_ms = newest.present ? newest.deadline_ms : 0;
  newest.deadline_ms = present ? deadline_ms : 0;
  if (before_ms != 0 && before_ms != newest.deadline_ms) deadlines_.erase({before_ms, at->first});
  if (newest.present == present) return;
  newest.present = present;
  if (present) {
    entry.live_index = live_.size();
    live_.push_back(at);
  } else {
    live_[entry.live_index] = live_.back();
    live_[entry.live_index]->second.live_index = entry.live_index;
    live_.pop_back();
  }
}

void ModelEngine::EraseIfEmpty(Map::iterator at) {
  const Entry& entry = at->second;
  if (!entry.newest.present && entry.older.empty() && !entry.stale) map_.erase(at);
}

// Drops the old values that no live snapshot sees.
void ModelEngine::Prune(Entry& entry) {
  const size_t before = entry.older.size();
  size_t kept = 0;
  for (size_t i = 0; i < before; ++i) {
    const Version until = i + 1 < before ? entry.older[i + 1].version : entry.newest.version;
    if (!IsNeeded(entry.older[i].version, until)) continue;
    if (kept != i) entry.older[kept] = std::move(entry.older[i]);
    ++kept;
  }
  entry.older.resize(kept);
  old_versions_ -= before - kept;
}

// Looks at up to `entries_max` stale entries; returns true if some are left.
bool ModelEngine::SweepSome(size_t entries_max) {
  for (; entries_max > 0 && sweep_left_ > 0; --entries_max, --sweep_left_) {
    const auto at = stale_.front();
    Entry& entry = at->second;
    Prune(entry);
    if (!entry.older.empty()) stale_.push_back(at);
    stale_.pop_front();
    if (!entry.older.empty()) continue;
    entry.older.shrink_to_fit();
    entry.stale = false;
    EraseIfEmpty(at);
  }
  return sweep_left_ > 0;
}

Result<SnapshotRef> ModelEngine::OpenSnapshot(uint64_t now_ms) {
  const MutexLock lock(mutex_);
  RevokeOld(now_ms);
  // A clock that went back must not make the snapshot too old for batches read at its own now.
  const uint64_t latest_ms = now_.Advance(now_ms);
  const uint64_t id = NewSnapshotId();
  const auto pin = pinned_.insert(version_);
  try {
    snapshots_[id] = {.version = version_, .deadline_ms = latest_ms + options_.snapshot_age_ms_max};
  } catch (const std::bad_alloc&) {
    pinned_.erase(pin);
    throw;
  }
  return SnapshotRef{.version = version_, .id = id, .now_ms = latest_ms};
}

Result<std::unique_ptr<PairIterator>> ModelEngine::OpenPairIterator(uint64_t now_ms) {
  return IterateBySnapshot(*this, OpenSnapshot(now_ms).value());
}

void ModelEngine::StartAfter(Version version, uint64_t now_ms) {
  const MutexLock lock(mutex_);
  now_.Advance(now_ms);
  version_ = std::max(version_, version);
  gate_.Release(version_);
}

Result<uint64_t> ModelEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (key.size() > traits_.key_bytes_max) {
    return Fail(Code::kTooLarge, "key exceeds the maximum size", traits_.key_bytes_max);
  }
  const MutexLock lock(mutex_);
  const auto id = watches_.Add(key);
  if (!id) return NoRoomToWatch(*options_.budget);
  const auto at = map_.find(key);
  const Value* const value = at == map_.end() ? nullptr : &at->second.newest;
  const bool present =
      value != nullptr && value->present && !HasExpired(value->deadline_ms, now_.Advance(now_ms));
  watches_.Arm(*id, present, present ? value->deadline_ms : 0);
  return *id;
}

void ModelEngine::CloseSnapshot(SnapshotRef snapshot) {
  const MutexLock lock(mutex_);
  if (const auto at = snapshots_.find(snapshot.id); at != snapshots_.end()) Unpin(at);
}

void ModelEngine::Unpin(std::map<uint64_t, OpenedSnapshot>::iterator snapshot) {
  pinned_.erase(pinned_.find(snapshot->second.version));
  snapshots_.erase(snapshot);
  sweep_left_ = stale_.size();
}

void ModelEngine::RevokeOld(uint64_t now_ms) {
  // Deadlines rise with the ids unless the clock went back; then a younger one waits for its elder.
  while (!snapshots_.empty() && snapshots_.begin()->second.deadline_ms <= now_ms) {
    Unpin(snapshots_.begin());
  }
}

bool ModelEngine::Maintain(uint64_t now_ms) {
  const MutexLock lock(mutex_);
  RevokeOld(now_ms);
  const bool expires = ExpireSome(now_.Advance(now_ms), kMaintainEntries);
  const bool sweeps = SweepSome(kMaintainEntries);
  return BurySome(kMaintainEntries) || sweeps || expires;
}

// Deletes up to `entries_max` keys that are past their deadline, by one write; returns true if some
// are left.
bool ModelEngine::ExpireSome(uint64_t now_ms, size_t entries_max) {
  const auto is_due = [&]() SKEP_REQUIRES(mutex_) {
    return !deadlines_.empty() && HasExpired(deadlines_.begin()->first, now_ms);
  };
  if (!is_due()) return false;
  for (; entries_max > 0 && is_due(); --entries_max) {
    const auto at = map_.find(deadlines_.begin()->second);
    Write(at, std::nullopt, version_ + 1);
    EraseIfEmpty(at);
    ++expired_keys_;
  }
  gate_.Release(++version_);
  return is_due();
}

// Frees up to `entries_max` entries of deleted maps; returns true if some are left.
bool ModelEngine::BurySome(size_t entries_max) {
  for (; entries_max > 0 && !graveyard_.empty(); --entries_max) {
    Map& map = graveyard_.back();
    if (map.empty()) {
      graveyard_.pop_back();
    } else {
      map.erase(map.begin());
    }
  }
  return !graveyard_.empty();
}

// Whether `bytes` more may be stored. If that needs memory, frees deleted entries, then revokes
// snapshots, the oldest first.
bool ModelEngine::MakeRoomFor(uint64_t bytes) {
  while (!options_.budget->HasRoomFor(bytes)) {
    if (BurySome(kMaintainEntries) || SweepSome(kMaintainEntries)) continue;
    if (options_.budget->HasRoomFor(bytes)) return true;
    if (snapshots_.empty() || old_versions_ == 0) return false;
    Unpin(snapshots_.begin());
  }
  return true;
}

EngineStatistics ModelEngine::Statistics() const {
  const MutexLock lock(mutex_);
  return {.items = live_.size(),
          .deadlines = deadlines_.size(),
          .expired_keys = expired_keys_,
          .bytes = memory_.used(),
          .old_versions = old_versions_,
          .snapshots = snapshots_.size(),
          .oldest_snapshot = pinned_.empty() ? 0 : *pinned_.begin(),
          .version = version_};
}

const char* ModelEngine::Verify() const {
  const MutexLock lock(mutex_);
  size_t live = 0;
  size_t old_versions = 0;
  size_t stale = 0;
  size_t with_deadline = 0;
  for (const auto& [key, entry] : map_) {
    Version last = 0;
    for (const Value& value : entry.older) {
      if (value.version < last) return "M1: versions of an entry rise";
      last = value.version;
    }
    if (entry.newest.version < last || entry.newest.version > version_) {
      return "M1: versions of an entry rise up to version_";
    }
    if (entry.newest.present) {
      ++live;
      if (entry.live_index >= live_.size() || &live_[entry.live_index]->second != &entry) {
        return "M2: live_ leads back to each present entry";
      }
      with_deadline += entry.newest.deadline_ms != 0 ? 1 : 0;
      if (entry.newest.deadline_ms != 0 && !deadlines_.contains({entry.newest.deadline_ms, key})) {
        return "M5: deadlines_ has every present entry with a deadline";
      }
    }
    if ((!entry.older.empty() || !entry.newest.present) && !entry.stale) {
      return "M3: an entry with old values or none is stale";
    }
    old_versions += entry.older.size();
    stale += entry.stale ? 1 : 0;
  }
  if (with_deadline != deadlines_.size()) return "M5: deadlines_ has no other entry";
  if (live != live_.size()) return "M2: live_ has exactly the present entries";
  if (stale != stale_.size()) return "M3: stale_ has each stale entry once";
  if (old_versions != old_versions_) return "M4: old_versions_ counts the old values";
  return nullptr;
}

}  // namespace skep

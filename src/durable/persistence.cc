#include "durable/persistence.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/cpu.h"
#include "base/mutex.h"
#include "durable/directory.h"
#include "durable/directory_engines.h"
#include "durable/log_format.h"
#include "durable/log_reader.h"
#include "durable/replay.h"
#include "durable/snapshot_loader.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_writer.h"
#include "keyspace/factory.h"

namespace skep::durable {
namespace {

std::string ParentOf(std::string_view directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  const size_t slash = directory.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(directory.substr(0, std::max<size_t>(slash, 1)));
}

}  // namespace

Persistence::Persistence(FileSystem& files, Clock& clock, const Options& options, bool repairs)
    : files_(files),
      clock_(clock),
      time_(clock),
      directory_(options.directory),
      recovery_threads_(options.recovery_threads != 0
                            ? options.recovery_threads
                            : std::max(1u, std::thread::hardware_concurrency())),
      is_repair_(repairs),
      segment_bytes_(options.log_segment_bytes),
      log_(files, clock, options),
      reserve_(files, options.directory, options.log_segment_bytes) {}

Persistence::~Persistence() { StopThreads(); }

Result<std::unique_ptr<Persistence>> Persistence::Open(FileSystem& files, Clock& clock,
                                                       const Options& options, std::string* problem,
                                                       bool repairs) {
  const std::string& directory = options.directory;
  const auto fail = [&](Status status, std::string_view what) {
    *problem = fmt::format("{}: {}", what, status.ToString());
    return Fail(status);
  };
  if (const Status s = files.CreateDirectory(directory); !s.ok()) return fail(s, directory);
  const std::string parent = ParentOf(directory);
  if (const Status s = files.SyncDirectory(parent); !s.ok()) return fail(s, parent);
  auto persistence = std::unique_ptr<Persistence>(new Persistence(files, clock, options, repairs));
  auto lock = LockDirectory(files, directory, problem);
  if (!lock) return Fail(lock.error());
  persistence->lock_ = std::move(*lock);
  const DirectoryEngines engines = FindEngines(files, directory);
  const std::string list = persistence->PathOf(kKeyspaceFile);
  if (!engines.list_status.ok()) return fail(engines.list_status, list);
  if (const auto index = engines.Contradiction()) {
    *problem = fmt::format(
        "{}: keyspace {} is of the engine {}, {} says {}; skep-check --repair goes by the snapshot",
        list, *index, engines.listed.at(*index), engines.snapshot, engines.in_snapshot.at(*index));
    return Fail(Code::kCorrupt, "the list of keyspaces contradicts the snapshot", *index);
  }
  for (const auto& [index, engine] : engines.all()) {
    const auto own = options.keyspace_engines.find(index);
    const auto spec =
        ParseEngine(own != options.keyspace_engines.end() ? own->second : options.engine,
                    IndexOptionsOf(options));
    if (!spec) return fail(spec.error(), fmt::format("keyspace {}", index));
    const std::string wanted = FormatOf(*spec);
    if (index < options.keyspaces && wanted == engine) continue;
    constexpr Status kOther(Code::kInvalidArgument, "a keyspace is configured otherwise");
    *problem = index < options.keyspaces
                   ? fmt::format("{}: keyspace {} is of the engine {}, the configuration says {}",
                                 directory, index, engine, wanted)
                   : fmt::format("{}: there is a keyspace {}, the configuration has only {}",
                                 directory, index, options.keyspaces);
    return Fail(kOther);
  }
  persistence->recorded_ = engines.all();
  persistence->is_listed_ = engines.listed == persistence->recorded_;
  return persistence;
}

std::unique_ptr<Engine> Persistence::Wrap(uint32_t keyspace, std::unique_ptr<Engine> engine) {
  const std::string name = engine->format();
  auto durable = std::make_unique<DurableEngine>(std::move(engine), keyspace, log_);
  const MutexLock lock(mutex_);
  engines_[keyspace] = durable.get();
  const auto [at, is_new] = recorded_.emplace(keyspace, name);
  if (is_new) {
    is_listed_ = false;
    // What a load makes is listed when the load has succeeded. If the writing fails, the thread
    // that writes snapshots tries again.
    if (is_recovered_) static_cast<void>(ListKeyspaces());
  } else {
    durable->StartAfter(kVersionsUntold, 0);  // the log may have nothing of it
  }
  return durable;
}

// Holds mutex_.
Status Persistence::ListKeyspaces() {
  if (is_listed_) return {};
  const Status s = WriteKeyspaceFile(files_, directory_, recorded_);
  is_listed_ = s.ok();
  return s;
}

DurableEngine* Persistence::EngineOf(uint32_t keyspace) {
  const MutexLock lock(mutex_);
  const auto at = engines_.find(keyspace);
  return at == engines_.end() ? nullptr : at->second;
}

// ---- Recovery ----

Status Persistence::Recover(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem) {
  LogTail tail;
  Status status = Fill(keyspaces, &tail, report, problem);
  if (!status.ok()) return status;
  {
    const MutexLock lock(mutex_);
    is_recovered_ = true;
    status = ListKeyspaces();
  }
  if (!status.ok() && !IsLackOfSpace(status)) {
    *problem = fmt::format("{}: {}", PathOf(kKeyspaceFile), status.ToString());
    return status;
  }
  // On a full disk these are the way to the first snapshot: what the last one held, and what a
  // process before this one has not dropped.
  if (reserve_.IsThere()) reserve_.Hold();
  if (!is_repair_) log_.DropBefore(snapshots_.log_position);
  // The tail is written once more: a process before this one may have failed to sync it, and what a
  // sync has failed to write may be read until the power is lost, but never gets to the disk.
  status = log_.Begin(tail.position, std::move(tail.records));
  if (IsLackOfSpace(status)) status = {};  // the log says so, and begins when there is some
  if (status.ok() && report->repair.has_damage()) status = FinishRepair(&report->repair);
  if (!status.ok()) *problem = fmt::format("{}: {}", directory_, status.ToString());
  return status;
}

Status Persistence::Rehearse(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem) {
  LogTail tail;
  return Fill(keyspaces, &tail, report, problem);
}

// *tail: what the end of the log is.
Status Persistence::Fill(Keyspaces& keyspaces, LogTail* tail, RecoveryReport* report,
                         std::string* problem) {
  has_.assign(keyspaces.count(), 0);
  // What was stored is kept, also under a smaller limit than it was stored under.
  const uint64_t limit = keyspaces.budget().limit();
  keyspaces.budget().set_limit(0);
  const auto start = FindStart(report, problem);
  Status status = start ? Load(keyspaces, *start, report, problem) : start.error();
  if (status.ok()) status = ReplayLog(keyspaces, *start, tail, report, problem);
  keyspaces.budget().set_limit(limit);
  return status;
}

// The newest snapshot, unless a repair has a better one.
Result<RecoveryStart> Persistence::FindStart(RecoveryReport* report, std::string* problem) {
  const auto names = files_.List(directory_);
  if (!names) {
    *problem = fmt::format("{}: {}", directory_, names.error().ToString());
    return Fail(names.error());
  }
  for (const std::string& name : *names) {
    if (IsUnfinishedSnapshot(name)) static_cast<void>(files_.Remove(PathOf(name)));
  }
  if (is_repair_) return ChooseStart(files_, directory_, &report->repair, problem);
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) {
    *problem = fmt::format("{}: {}", directory_, found.error().ToString());
    return Fail(found.error());
  }
  RecoveryStart start;
  if (found->snapshots.empty()) return start;
  start.position = start.newest = found->snapshots.back();
  start.snapshot = PathOf(SnapshotName(start.position));
  return start;
}

// 0: it cannot be told.
uint64_t Persistence::SizeOf(const std::string& path) {
  const auto file = files_.Open(path, FileSystem::Mode::kRead);
  if (!file) return 0;
  return (*file)->Size().value_or(0);
}

Status Persistence::Load(Keyspaces& keyspaces, const RecoveryStart& start, RecoveryReport* report,
                         std::string* problem) {
  if (start.snapshot.empty()) return {};
  const uint64_t begin_ns = clock_.MonotonicNs();
  report->snapshot = start.snapshot;
  const Status s =
      start.is_whole ? LoadWhole(keyspaces, start, report) : LoadRest(keyspaces, report);
  if (!s.ok()) {
    *problem = fmt::format("{}: {}", start.snapshot, s.ToString());
    return s;
  }
  report->snapshot_ns = clock_.MonotonicNs() - begin_ns;
  const MutexLock lock(mutex_);
  snapshots_.log_position = start.position;
  snapshots_.last_items = report->snapshot_items;
  snapshots_.last_bytes = SizeOf(start.snapshot);
  return {};
}

Status Persistence::LoadWhole(Keyspaces& keyspaces, const RecoveryStart& start,
                              RecoveryReport* report) {
  const auto reader = SnapshotReader::Open(files_, report->snapshot);
  if (!reader) return reader.error();
  const uint64_t position = PositionIn((*reader)->keyspaces()).value_or(start.position);
  // A repair has looked at it, and may begin where the log does.
  if (!is_repair_ && position != start.position) {
    return {Code::kCorrupt, kWrongSnapshotName, position};
  }
  if (const Status s = MakeEngines(keyspaces, (*reader)->keyspaces()); !s.ok()) return s;
  const auto engine_of = [&](uint32_t index) -> Result<Engine*> {
    return &EngineOf(index)->inner();
  };
  if (const Status s = LoadSnapshot(**reader, engine_of, recovery_threads_); !s.ok()) return s;
  StartEngines((*reader)->keyspaces());
  report->snapshot_items = (*reader)->items();
  const MutexLock lock(mutex_);
  snapshots_.last_ms = (*reader)->created_ms();
  return {};
}

Status Persistence::LoadRest(Keyspaces& keyspaces, RecoveryReport* report) {
  const auto engine_of = [&](uint32_t index) -> Result<Engine*> {
    if (const Status s = MakeEngines(keyspaces, {{.index = index}}); !s.ok()) return Fail(s);
    return &EngineOf(index)->inner();
  };
  const auto salvage = LoadDamagedSnapshot(files_, report->snapshot, engine_of);
  if (!salvage) return salvage.error();
  if (const Status s = MakeEngines(keyspaces, salvage->keyspaces); !s.ok()) return s;
  StartEngines(salvage->keyspaces);
  report->snapshot_items = salvage->items;
  return {};
}

// Of these keyspaces, and notes of which version the snapshot has them.
Status Persistence::MakeEngines(Keyspaces& keyspaces,
                                const std::vector<SnapshotKeyspace>& snapshot) {
  for (const SnapshotKeyspace& keyspace : snapshot) {
    if (keyspace.index >= keyspaces.count()) {
      return {Code::kInvalidArgument, "the snapshot has a keyspace that there is not",
              keyspace.index};
    }
    keyspaces.at(keyspace.index);
    has_[keyspace.index] = keyspace.version;
  }
  return {};
}

// Time comes after the log: nothing expires in a replay. What a snapshot has may have been changed
// behind it before its deadline, and the deadline may have passed before the snapshot was finished.
void Persistence::StartEngines(const std::vector<SnapshotKeyspace>& snapshot) {
  for (const SnapshotKeyspace& keyspace : snapshot) {
    snapshot_now_ms_ = std::max(snapshot_now_ms_, keyspace.now_ms);
  }
  for (const auto& [index, engine] : engines_) engine->StartAfter(has_[index], 0);
}

// *tail: what the end of the log is.
Status Persistence::ReplayLog(Keyspaces& keyspaces, const RecoveryStart& start, LogTail* tail,
                              RecoveryReport* report, std::string* problem) {
  const uint64_t begin_ns = clock_.MonotonicNs();
  tail->position = start.position;
  const auto reader = LogReader::Open(files_, directory_, start.position);
  if (!reader) {
    *problem = fmt::format("{}: {}", directory_, reader.error().ToString());
    return reader.error();
  }
  std::map<uint32_t, std::unique_ptr<Engine>> patient;
  const auto find = [&](uint32_t index) -> Replay::Target {
    if (index >= keyspaces.count()) return {};
    keyspaces.at(index);
    Engine* engine = &EngineOf(index)->inner();
    if (is_repair_) {
      engine = (patient[index] = MakePatient(*engine, &report->repair.refused)).get();
    }
    return {.engine = engine, .has = has_[index]};
  };
  // A repair counts what is refused, one after the other.
  Replay replay(find, is_repair_ ? 1 : recovery_threads_);
  HoleKeeper holes(replay, keyspaces.count(), &report->repair);
  const auto fail_at = [&](uint64_t position, Status s) {
    // Helpers may have been refused what was read before.
    const bool is_refusal = s.code() == Code::kTooLarge || s.code() == Code::kOutOfMemory;
    *problem =
        fmt::format("{}, record at {}{}: {}", (*reader)->file(), is_refusal ? "or before " : "",
                    position, replay.problem().empty() ? s.ToString() : replay.problem());
    return s;
  };
  while (true) {
    const auto record = (*reader)->Next();
    if (!record) {
      if (is_repair_ && record.error().code() == Code::kCorrupt) {
        if (const Status s = holes.Skip(**reader); !s.ok()) return s;
        *tail = {.position = (*reader)->position(), .records = {}};
        continue;
      }
      *problem = fmt::format("{}: {}; skep-check --repair keeps what is good", (*reader)->file(),
                             record.error().ToString());
      return record.error();
    }
    const uint64_t position = *record ? (*record)->position : (*reader)->position();
    if (!*record || (*record)->type == RecordType::kStart) {
      if (const Status s = holes.Settle(); !s.ok()) return fail_at(position, s);
    }
    if (!*record) break;
    if (const Status s = replay.Add(**record); !s.ok()) {
      if (!is_repair_ || s.code() != Code::kCorrupt) return fail_at(position, s);
      holes.LeaveOut(**reader, **record);
      *tail = {.position = (*reader)->position(), .records = {}};
      continue;
    }
    AppendRecord(tail->records, position, (*record)->payload);
    const auto progress = ReadProgress((*record)->payload);
    if (!progress || progress->synced_position <= tail->position) continue;
    tail->records.erase(0, progress->synced_position - tail->position);
    tail->position = progress->synced_position;
  }
  if (const Status s = replay.Finish(); !s.ok()) {
    *problem = fmt::format("{}: {}", directory_, s.ToString());
    return s;
  }
  if (start.position > 0 && replay.records() == 0) {
    const auto reaches = LogReader::Reaches(files_, directory_, start.position);
    if (!reaches) return fail_at((*reader)->position(), reaches.error());
    report->lacks_log = !*reaches;
  }
  report->log_dropped = replay.dropped();
  report->log_records = replay.records();
  report->log_changes = replay.changes();
  report->log_ns = clock_.MonotonicNs() - begin_ns;
  if ((*reader)->is_torn()) {
    report->torn_file = (*reader)->file();
    report->torn_offset = (*reader)->offset();
  }
  if (is_repair_ && (*reader)->position() < start.newest) {
    AddMissingEnd(directory_, (*reader)->position(), start.newest, &report->repair.lost);
    *tail = {.position = start.newest, .records = {}};
  }
  const uint64_t now_ms = std::max(replay.now_ms(), snapshot_now_ms_);
  for (const auto& [index, engine] : engines_) {
    const Version told = std::max(has_[index], replay.LastVersion(index));
    engine->StartAfter(told + kVersionsUntold, now_ms);
  }
  time_.StartAt(now_ms);
  report->clock_behind_ms = time_.Now().behind_ms;
  return {};
}

// What was recovered becomes a snapshot; only then is anything put aside.
Status Persistence::FinishRepair(RepairReport* report) {
  for (const auto* places : {&report->lost, &report->made_good}) {
    for (const Damage& damage : *places) damaged_.insert(damage.file);
  }
  if (const Status s = Save(); !s.ok()) return s;
  damaged_.erase(PathOf(SnapshotName(snapshots().log_position)));  // it has taken the place
  const auto names = files_.List(directory_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!damaged_.contains(PathOf(name))) continue;
    std::string aside = PathOf(name) + kDamagedSuffix;
    if (const Status s = files_.Rename(PathOf(name), aside); !s.ok()) return s;
    report->put_aside.push_back(std::move(aside));
  }
  if (const Status s = files_.SyncDirectory(directory_); !s.ok()) return s;
  log_.Step();  // drops the segments that the snapshot has made superfluous
  return {};
}

// ---- Snapshots ----

SnapshotStatistics Persistence::snapshots() const {
  const MutexLock lock(mutex_);
  SnapshotStatistics now = snapshots_;
  now.is_saving = now.is_saving || is_wanted_;
  return now;
}

Status Persistence::Save() {
  const uint64_t begin_ms = clock_.MonotonicMs();
  SnapshotStatistics statistics;
  {
    const MutexLock lock(mutex_);
    if (snapshots_.is_saving) return {Code::kUnavailable, "a snapshot is being written"};
    snapshots_.is_saving = true;
    is_wanted_ = false;
    statistics = snapshots_;
    saved_changes_ = log_.statistics().changes;
    last_begin_ms_ = begin_ms;
    bytes_to_write_ = SnapshotBytes();
  }
  MakeSpaceForSnapshot();
  try {
    statistics.last_status = WriteSnapshot(&statistics);
  } catch (const std::bad_alloc&) {
    statistics.last_status = {Code::kOutOfMemory, "no memory for a snapshot"};
  }
  statistics.last_took_ms = clock_.MonotonicMs() - begin_ms;
  statistics.is_saving = false;
  ++statistics.finished;
  const MutexLock lock(mutex_);
  failures_ = statistics.last_status.ok() ? 0 : failures_ + 1;
  statistics.for_space = snapshots_.for_space;
  snapshots_ = statistics;
  return statistics.last_status;
}

// Gives the reserve back if there is little else. The log leaves free what the snapshot needs; if
// there is less, only what the reserve had.
void Persistence::MakeSpaceForSnapshot() {
  const MutexLock space(space_mutex_);
  const uint64_t free = free_bytes();
  if (free + reserve_.held() < bytes_to_write_) {
    bytes_to_write_ = std::min(bytes_to_write_, reserve_.held());
  }
  log_.set_kept_free(bytes_to_write_);
  if (free < bytes_to_write_ + reserve_.bytes()) reserve_.LetGo();
}

bool Persistence::RequestSave() {
  {
    const MutexLock lock(mutex_);
    if (snapshots_.is_saving || std::exchange(is_wanted_, true)) return false;
  }
  wake_.NotifyAll();
  return true;
}

void Persistence::SetSavePoints(std::vector<SavePoint> points) {
  const MutexLock lock(mutex_);
  save_points_ = std::move(points);
}

void Persistence::SetAutoSnapshot(const AutoSnapshot& options) {
  const MutexLock lock(mutex_);
  auto_snapshot_ = options;
}

// Bytes that a snapshot would have, at most. Holds mutex_.
uint64_t Persistence::SnapshotBytes() const {
  uint64_t bytes = 0;
  for (const auto& [index, engine] : engines_) bytes += engine->Statistics().bytes;
  return std::min(bytes, snapshots_.last_bytes + LogBytes());
}

// Holds mutex_. One that has failed is tried again after a while; a longer one each time, if there
// is still not the space for it.
bool Persistence::IsDue(uint64_t free_bytes) {
  constexpr uint64_t kTryAgainMs = 5'000;
  constexpr uint32_t kDoublingsMax = 6;
  const uint64_t since_ms = clock_.MonotonicMs() - last_begin_ms_;
  const uint64_t changes = log_.statistics().changes - saved_changes_;
  if (!snapshots_.last_status.ok()) {
    const bool has_room = free_bytes + reserve_.held() >= SnapshotBytes();
    const uint32_t doublings = has_room ? 0 : std::min(failures_ - 1, kDoublingsMax);
    return since_ms >= kTryAgainMs << doublings;
  }
  if (!log_.Abandoned().empty()) return true;
  const uint64_t log_bytes = LogBytes();
  const uint64_t of_last = snapshots_.last_bytes * auto_snapshot_.percentage / 100;
  if (auto_snapshot_.percentage != 0 &&
      log_bytes > std::max(auto_snapshot_.log_bytes_min, of_last)) {
    return true;
  }
  if (IsDueForSpace(free_bytes)) {
    ++snapshots_.for_space;
    return true;
  }
  return std::ranges::any_of(save_points_, [&](const SavePoint& point) {
    return changes >= point.changes && since_ms >= point.seconds * 1000;
  });
}

// Whether so much log is worth a snapshot of so many bytes. Only whole segments go: without space
// for another one, the one before the current is enough.
bool Persistence::IsWorthIt(uint64_t log_bytes, uint64_t snapshot_bytes) const {
  const uint64_t segments = log_.has_space() ? 2 * segment_bytes_ : segment_bytes_ / 2;
  return log_bytes > std::max(snapshot_bytes / 4, segments);
}

// Holds mutex_. Early enough that the log can go on while the snapshot is being written: by half of
// what it has grown to since the last one.
bool Persistence::IsDueForSpace(uint64_t free_bytes) const {
  constexpr uint64_t kSegmentsMeanwhile = 4;
  const uint64_t bytes = SnapshotBytes();
  const uint64_t meanwhile = std::max(kSegmentsMeanwhile * segment_bytes_, LogBytes() / 2);
  const bool is_short =
      !log_.has_space() || free_bytes + reserve_.held() < bytes + reserve_.bytes() + meanwhile;
  return is_short && IsWorthIt(LogBytes(), bytes);
}

// The reserve, and what the log leaves free beside it.
void Persistence::KeepSpace() {
  const MutexLock space(space_mutex_);
  {
    const MutexLock lock(mutex_);
    if (snapshots_.is_saving) return;  // what is being written sees to it
  }
  if (free_bytes() >= reserve_.bytes() || reserve_.IsThere()) reserve_.Hold();
  const uint64_t free = free_bytes();
  const MutexLock lock(mutex_);
  const uint64_t bytes = SnapshotBytes();
  const uint64_t wanted = std::max(reserve_.bytes(), bytes) - reserve_.held();
  const bool leaves = free >= wanted && IsWorthIt(LogBytes() + (free - wanted), bytes);
  log_.set_kept_free(leaves ? wanted : 0);
}

void Persistence::StartThreads() {
  log_.set_news_hook([this] {
    {
      const MutexLock lock(mutex_);
      has_log_news_ = true;
    }
    wake_.NotifyAll();
  });
  log_.StartThread();
  last_begin_ms_ = clock_.MonotonicMs();
  saver_ = std::thread([this] {
    LowerPriority();
    RunSaver();
  });
}

void Persistence::RunSaver() {
  constexpr std::chrono::seconds kLook(1);
  const MutexLock lock(mutex_);
  while (!is_stopping_) {
    const auto until = std::chrono::steady_clock::now() + kLook;
    while (!is_wanted_ && !has_log_news_ && !is_stopping_ && wake_.WaitUntil(mutex_, until)) {
    }
    has_log_news_ = false;
    if (is_stopping_) return;
    try {
      const MutexUnlock unlock(mutex_);
      StepSaver();
    } catch (const std::bad_alloc&) {  // the next step does it
    }
  }
}

bool Persistence::StepSaver() {
  KeepSpace();
  const uint64_t free_bytes = this->free_bytes();
  {
    const MutexLock lock(mutex_);
    static_cast<void>(ListKeyspaces());  // if that has failed before
    if (!is_wanted_ && !IsDue(free_bytes)) return false;
  }
  static_cast<void>(Save());
  return true;
}

void Persistence::StopThreads() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.NotifyAll();
  if (saver_.joinable()) saver_.join();
  log_.StopThread();
}

Status Persistence::Close() {
  // What has no record in the log is kept by a snapshot.
  if (!log_.Abandoned().empty()) static_cast<void>(Save());
  StopThreads();
  return log_.Close();
}

Status Persistence::WriteSnapshot(SnapshotStatistics* statistics) {
  // The position comes first: a keyspace whose engine is made after it has nothing before it.
  const uint64_t position = log_.End();
  const std::vector<Log::Floor> abandoned = log_.Abandoned();
  const uint64_t begun_ms = clock_.WallMs();
  std::map<uint32_t, DurableEngine*> engines;
  {
    const MutexLock lock(mutex_);
    engines = engines_;
  }
  const std::string path = PathOf(SnapshotName(position));
  auto writer = SnapshotWriter::Create(files_, path, begun_ms);
  if (!writer) return writer.error();
  std::vector<SnapshotKeyspace> keyspaces;
  uint64_t items = 0;
  for (const auto& [index, engine] : engines) {
    // Of a version that the log has, so it is drawn; it is released when those before it are.
    const Version at_least = log_.LastAppended(index);
    while (engine->Latest() < at_least) {
      engine->inner().Release();
      std::this_thread::yield();
    }
    const auto walk = engine->OpenPairIterator(time_.Now().ms);
    if (!walk) return walk.error();
    while (true) {
      const auto pairs = (*walk)->Next();
      if (!pairs) return pairs.error();
      if (is_stopping_.load(std::memory_order_relaxed)) {
        return {Code::kUnavailable, "the store is being closed"};
      }
      if (pairs->empty()) break;
      for (const Pair& pair : *pairs) {
        const Status s = (*writer)->Add(index, pair.key, pair.value, pair.deadline_ms);
        if (!s.ok()) return s;
      }
      items += pairs->size();
      const uint64_t written = (*writer)->bytes_written();
      log_.set_kept_free(bytes_to_write_ - std::min(bytes_to_write_, written));
    }
    keyspaces.push_back({.index = index,
                         .engine = engine->format(),
                         .version = (*walk)->version(),
                         .now_ms = (*walk)->now_ms(),
                         .log_position = position});
  }
  if (const Status s = (*writer)->Finish(std::move(keyspaces)); !s.ok()) return s;
  statistics->last_ms = clock_.WallMs();
  statistics->last_items = items;
  statistics->last_bytes = (*writer)->bytes_written();
  statistics->log_position = position;
  log_.set_kept_free(0);
  log_.LeaveAbandoned(abandoned);
  log_.DropBefore(position);
  RemoveSnapshotsBefore(position);
  return {};
}

// One that cannot be removed is in nobody's way: a later snapshot tries again.
void Persistence::RemoveSnapshotsBefore(uint64_t position) {
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return;
  for (const uint64_t of : found->snapshots) {
    const std::string path = PathOf(SnapshotName(of));
    if (of < position && !damaged_.contains(path)) static_cast<void>(files_.Remove(path));
  }
}

}  // namespace skep::durable

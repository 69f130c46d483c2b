#include "durable/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "durable/directory.h"
#include "durable/log_format.h"
#include "durable/snapshot_loader.h"
#include "durable/snapshot_reader.h"

namespace skep::durable {
namespace {

// The size of a file; 0 if it cannot be told.
uint64_t SizeOf(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return 0;
  return (*file)->Size().value_or(0);
}

}  // namespace

Recovery::Recovery(FileSystem& files, Clock& clock, const Options& options, bool is_repair,
                   Keyspaces& keyspaces, DurableKeyspaces& engines)
    : files_(files),
      clock_(clock),
      directory_(options.directory),
      threads_(options.recovery_threads != 0 ? options.recovery_threads
                                             : std::max(1u, std::thread::hardware_concurrency())),
      is_repair_(is_repair),
      keyspaces_(keyspaces),
      engines_(engines),
      has_(keyspaces.count(), 0) {}

Status Recovery::Run() {
  // All that was stored is kept, also if the memory limit is smaller than when it was stored.
  const uint64_t limit = keyspaces_.budget().limit();
  keyspaces_.budget().set_limit(0);
  const auto start = FindStart();
  Status status = start ? Load(*start) : start.error();
  if (status.ok()) status = ReplayLog(*start);
  keyspaces_.budget().set_limit(limit);
  return status;
}

// Begins with the newest snapshot, unless a repair has a better beginning.
Result<RecoveryStart> Recovery::FindStart() {
  const auto names = files_.List(directory_);
  if (!names) return Fail(FailAt(directory_, names.error()));
  for (const std::string& name : *names) {
    if (IsUnfinishedSnapshot(name)) static_cast<void>(files_.Remove(PathOf(name)));
  }
  if (is_repair_) return ChooseStart(files_, directory_, &report_.repair, &problem_);
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return Fail(FailAt(directory_, found.error()));
  RecoveryStart start;
  if (found->snapshots.empty()) return start;
  start.position = start.newest = found->snapshots.back();
  start.snapshot = PathOf(SnapshotName(start.position));
  return start;
}

Status Recovery::Load(const RecoveryStart& start) {
  if (start.snapshot.empty()) return {};
  const uint64_t begin_ns = clock_.MonotonicNs();
  report_.snapshot = start.snapshot;
  const Status s = start.is_whole ? LoadWhole(start) : LoadRest();
  if (!s.ok()) return FailAt(start.snapshot, s);
  report_.snapshot_ns = clock_.MonotonicNs() - begin_ns;
  snapshot_.log_position = start.position;
  snapshot_.last_items = report_.snapshot_items;
  snapshot_.last_bytes = SizeOf(files_, start.snapshot);
  return {};
}

Status Recovery::LoadWhole(const RecoveryStart& start) {
  const auto reader = SnapshotReader::Open(files_, report_.snapshot);
  if (!reader) return reader.error();
  const uint64_t position = PositionIn((*reader)->keyspaces()).value_or(start.position);
  // A repair knows the snapshot's own position, and may begin where the log begins.
  if (!is_repair_ && position != start.position) {
    return {Code::kCorrupt, kWrongSnapshotName, position};
  }
  if (const Status s = MakeEngines((*reader)->keyspaces()); !s.ok()) return s;
  const auto engine_of = [&](uint32_t index) -> Result<Engine*> {
    return &engines_.Find(index)->inner();
  };
  if (const Status s = LoadSnapshot(**reader, engine_of, threads_); !s.ok()) return s;
  StartEngines((*reader)->keyspaces());
  report_.snapshot_items = (*reader)->items();
  snapshot_.last_ms = (*reader)->created_ms();
  return {};
}

Status Recovery::LoadRest() {
  const auto engine_of = [&](uint32_t index) -> Result<Engine*> {
    if (const Status s = MakeEngines({{.index = index}}); !s.ok()) return Fail(s);
    return &engines_.Find(index)->inner();
  };
  const auto salvage = LoadDamagedSnapshot(files_, report_.snapshot, engine_of);
  if (!salvage) return salvage.error();
  if (const Status s = MakeEngines(salvage->keyspaces); !s.ok()) return s;
  StartEngines(salvage->keyspaces);
  report_.snapshot_items = salvage->items;
  return {};
}

// Makes the engines of these keyspaces, and notes of which version the snapshot has them.
Status Recovery::MakeEngines(const std::vector<SnapshotKeyspace>& snapshot) {
  for (const SnapshotKeyspace& keyspace : snapshot) {
    if (keyspace.index >= keyspaces_.count()) {
      return {Code::kInvalidArgument, "the snapshot has a keyspace that there is not",
              keyspace.index};
    }
    keyspaces_.at(keyspace.index);
    has_[keyspace.index] = keyspace.version;
  }
  return {};
}

// The engines get a time only after the log, so that nothing expires in a replay: a pair of the
// snapshot may have been changed, behind the snapshot, before its deadline, and that deadline may
// have passed before the snapshot was finished.
void Recovery::StartEngines(const std::vector<SnapshotKeyspace>& snapshot) {
  for (const SnapshotKeyspace& keyspace : snapshot) {
    now_ms_ = std::max(now_ms_, keyspace.now_ms);
  }
  for (const auto& [index, engine] : engines_.All()) engine->StartAfter(has_[index], 0);
}

Status Recovery::ReplayLog(const RecoveryStart& start) {
  const uint64_t begin_ns = clock_.MonotonicNs();
  const auto reader = LogReader::Open(files_, directory_, start.position);
  if (!reader) return FailAt(directory_, reader.error());
  std::map<uint32_t, std::unique_ptr<Engine>> patient;
  const auto find = [&](uint32_t index) -> Replay::Target {
    if (index >= keyspaces_.count()) return {};
    keyspaces_.at(index);
    Engine* engine = &engines_.Find(index)->inner();
    if (is_repair_) {
      engine = (patient[index] = MakePatient(*engine, &report_.repair.refused)).get();
    }
    return {.engine = engine, .has = has_[index]};
  };
  // A repair uses one thread, as it counts the refused changes.
  Replay replay(find, is_repair_ ? 1 : threads_);
  tail_ = {.position = start.position, .records = {}};
  if (const Status s = ApplyRecords(**reader, replay); !s.ok()) return s;
  if (const Status s = CheckEnd(start, **reader, replay); !s.ok()) return s;
  report_.log_ns = clock_.MonotonicNs() - begin_ns;
  StartBehind(replay);
  return {};
}

Status Recovery::ApplyRecords(LogReader& reader, Replay& replay) {
  HoleKeeper holes(replay, keyspaces_.count(), &report_.repair);
  while (true) {
    const auto record = reader.Next();
    if (!record) {
      if (!is_repair_ || record.error().code() != Code::kCorrupt) {
        problem_ = fmt::format("{}: {}; skep-check --repair keeps what is good", reader.file(),
                               record.error().ToString());
        return record.error();
      }
      if (const Status s = holes.Skip(reader); !s.ok()) return FailAt(reader.file(), s);
      tail_ = {.position = reader.position(), .records = {}};
      continue;
    }
    const uint64_t position = *record ? (*record)->position : reader.position();
    if (!*record || (*record)->type == RecordType::kStart) {
      if (const Status s = holes.Settle(); !s.ok()) return FailAt(reader, replay, position, s);
    }
    if (!*record) break;
    if (const Status s = replay.Add(**record); !s.ok()) {
      if (!is_repair_ || s.code() != Code::kCorrupt) return FailAt(reader, replay, position, s);
      holes.LeaveOut(reader, **record);
      tail_ = {.position = reader.position(), .records = {}};
      continue;
    }
    AddToTail(**record);
  }
  const Status s = replay.Finish();
  return s.ok() ? s : FailAt(directory_, s);
}

void Recovery::AddToTail(const LogRecord& record) {
  AppendRecord(tail_.records, record.position, record.payload);
  const auto progress = ReadProgress(record.payload);
  if (!progress || progress->synced_position <= tail_.position) return;
  tail_.records.erase(0, progress->synced_position - tail_.position);
  tail_.position = progress->synced_position;
}

Status Recovery::CheckEnd(const RecoveryStart& start, const LogReader& reader,
                          const Replay& replay) {
  if (start.position > 0 && replay.records() == 0) {
    const auto reaches = LogReader::Reaches(files_, directory_, start.position);
    if (!reaches) return FailAt(reader, replay, reader.position(), reaches.error());
    report_.lacks_log = !*reaches;
  }
  report_.log_dropped = replay.dropped();
  report_.log_records = replay.records();
  report_.log_changes = replay.changes();
  if (reader.is_torn()) {
    report_.torn_file = reader.file();
    report_.torn_offset = reader.offset();
  }
  if (is_repair_ && reader.position() < start.newest) {
    AddMissingEnd(directory_, reader.position(), start.newest, &report_.repair.lost);
    tail_ = {.position = start.newest, .records = {}};
  }
  return {};
}

void Recovery::StartBehind(const Replay& replay) {
  now_ms_ = std::max(now_ms_, replay.now_ms());
  for (const auto& [index, engine] : engines_.All()) {
    const Version told = std::max(has_[index], replay.LastVersion(index));
    engine->StartAfter(told + kVersionsUntold, now_ms_);
  }
}

Status Recovery::FailAt(const std::string& path, const Status& status) {
  problem_ = fmt::format("{}: {}", path, status.ToString());
  return status;
}

Status Recovery::FailAt(const LogReader& reader, const Replay& replay, uint64_t position,
                        const Status& status) {
  // The refused change may be of an earlier record, as helpers apply changes while records are
  // read.
  const bool is_refusal = status.code() == Code::kTooLarge || status.code() == Code::kOutOfMemory;
  problem_ = fmt::format("{}, record at {}{}: {}", reader.file(), is_refusal ? "or before " : "",
                         position, replay.problem().empty() ? status.ToString() : replay.problem());
  return status;
}

}  // namespace skep::durable

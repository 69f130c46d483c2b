#include "durable/saver.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <utility>

#include "base/cpu.h"
#include "durable/directory.h"

namespace skep::durable {

Saver::Saver(FileSystem& files, Clock& clock, const Options& options, StoreTime& time, Log& log,
             DurableKeyspaces& keyspaces)
    : files_(files),
      clock_(clock),
      directory_(options.directory),
      segment_bytes_(options.log_segment_bytes),
      time_(time),
      log_(log),
      keyspaces_(keyspaces),
      reserve_(files, options.directory, options.log_segment_bytes) {}

// On a full disk the first snapshot needs the reserve, which an earlier process may have left.
void Saver::StartAfter(const SnapshotStatistics& found) {
  {
    const MutexLock space(space_mutex_);
    if (reserve_.IsThere()) reserve_.Hold();
  }
  const MutexLock lock(mutex_);
  statistics_ = found;
}

SnapshotStatistics Saver::statistics() const {
  const MutexLock lock(mutex_);
  SnapshotStatistics now = statistics_;
  now.changes_since = log_.statistics().changes - saved_changes_;
  if (now.is_saving) now.saving_ms = clock_.MonotonicMs() - last_begin_ms_;
  now.is_saving = now.is_saving || is_wanted_;
  return now;
}

Status Saver::Save() {
  const uint64_t begin_ms = clock_.MonotonicMs();
  SnapshotStatistics statistics;
  {
    const MutexLock lock(mutex_);
    if (statistics_.is_saving) return {Code::kUnavailable, "a snapshot is being written"};
    statistics_.is_saving = true;
    is_wanted_ = false;
    statistics = statistics_;
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
  statistics.for_space = statistics_.for_space;
  statistics_ = statistics;
  return statistics.last_status;
}

// Gives the reserve back if there is little other space. The log leaves free the bytes that the
// snapshot needs; if there are fewer, only as many as the reserve had.
void Saver::MakeSpaceForSnapshot() {
  const MutexLock space(space_mutex_);
  const uint64_t free = free_bytes();
  if (free + reserve_.held() < bytes_to_write_) {
    bytes_to_write_ = std::min(bytes_to_write_, reserve_.held());
  }
  log_.set_kept_free(bytes_to_write_);
  if (free < bytes_to_write_ + reserve_.bytes()) reserve_.LetGo();
}

bool Saver::Request() {
  {
    const MutexLock lock(mutex_);
    if (statistics_.is_saving || std::exchange(is_wanted_, true)) return false;
  }
  wake_.NotifyAll();
  return true;
}

void Saver::SetSavePoints(std::vector<SavePoint> points) {
  const MutexLock lock(mutex_);
  save_points_ = std::move(points);
}

void Saver::SetAutoSnapshot(const AutoSnapshot& options) {
  const MutexLock lock(mutex_);
  auto_snapshot_ = options;
}

// The bytes that a snapshot would have, at most.
uint64_t Saver::SnapshotBytes() const {
  return std::min(keyspaces_.MemoryBytes(), statistics_.last_bytes + LogBytes());
}

// A snapshot that has failed is tried again after a while; if there is still no space for it, the
// while is twice as long each time.
bool Saver::IsDue(uint64_t free_bytes) {
  constexpr uint64_t kTryAgainMs = 5'000;
  constexpr uint32_t kDoublingsMax = 6;
  const uint64_t since_ms = clock_.MonotonicMs() - last_begin_ms_;
  const uint64_t changes = log_.statistics().changes - saved_changes_;
  if (!statistics_.last_status.ok()) {
    const bool has_room = free_bytes + reserve_.held() >= SnapshotBytes();
    const uint32_t doublings = has_room ? 0 : std::min(failures_ - 1, kDoublingsMax);
    return since_ms >= kTryAgainMs << doublings;
  }
  if (!log_.Abandoned().empty()) return true;
  const uint64_t log_bytes = LogBytes();
  const uint64_t of_last = statistics_.last_bytes * auto_snapshot_.percentage / 100;
  if (auto_snapshot_.percentage != 0 &&
      log_bytes > std::max(auto_snapshot_.log_bytes_min, of_last)) {
    return true;
  }
  if (IsDueForSpace(free_bytes)) {
    ++statistics_.for_space;
    return true;
  }
  return std::ranges::any_of(save_points_, [&](const SavePoint& point) {
    return changes >= point.changes && since_ms >= point.seconds * 1000;
  });
}

// Whether so much log is worth a snapshot of so many bytes. Only whole segments are dropped;
// without space for another segment, the one before the current is worth it.
bool Saver::IsWorthIt(uint64_t log_bytes, uint64_t snapshot_bytes) const {
  const uint64_t segments = log_.has_space() ? 2 * segment_bytes_ : segment_bytes_ / 2;
  return log_bytes > std::max(snapshot_bytes / 4, segments);
}

// A snapshot is due early enough that the log can go on while it is written, by half of the length
// that the log has behind the last snapshot.
bool Saver::IsDueForSpace(uint64_t free_bytes) const {
  constexpr uint64_t kSegmentsMeanwhile = 4;
  const uint64_t bytes = SnapshotBytes();
  const uint64_t meanwhile = std::max(kSegmentsMeanwhile * segment_bytes_, LogBytes() / 2);
  const bool is_short =
      !log_.has_space() || free_bytes + reserve_.held() < bytes + reserve_.bytes() + meanwhile;
  return is_short && IsWorthIt(LogBytes(), bytes);
}

// Holds the reserve, and tells the log how many bytes beside it are to be left free.
void Saver::KeepSpace() {
  const MutexLock space(space_mutex_);
  {
    const MutexLock lock(mutex_);
    if (statistics_.is_saving) return;  // the snapshot's writer has set both
  }
  if (free_bytes() >= reserve_.bytes() || reserve_.IsThere()) reserve_.Hold();
  const uint64_t free = free_bytes();
  const MutexLock lock(mutex_);
  const uint64_t bytes = SnapshotBytes();
  const uint64_t wanted = std::max(reserve_.bytes(), bytes) - reserve_.held();
  const bool leaves = free >= wanted && IsWorthIt(LogBytes() + (free - wanted), bytes);
  log_.set_kept_free(leaves ? wanted : 0);
}

void Saver::NoteLogNews() {
  {
    const MutexLock lock(mutex_);
    has_log_news_ = true;
  }
  wake_.NotifyAll();
}

void Saver::StartThread() {
  {
    const MutexLock lock(mutex_);
    last_begin_ms_ = clock_.MonotonicMs();
  }
  thread_ = std::thread([this] {
    LowerPriority();
    RunThread();
  });
}

void Saver::RunThread() {
  constexpr std::chrono::seconds kLook(1);
  const MutexLock lock(mutex_);
  while (!is_stopping_) {
    const auto until = std::chrono::steady_clock::now() + kLook;
    while (!is_wanted_ && !has_log_news_ && !is_stopping_) {
      if (!wake_.WaitUntil(mutex_, until)) break;
    }
    has_log_news_ = false;
    if (is_stopping_) return;
    try {
      const MutexUnlock unlock(mutex_);
      Step();
    } catch (const std::bad_alloc&) {  // the next step tries again
    }
  }
}

bool Saver::Step() {
  KeepSpace();
  const uint64_t free_bytes = this->free_bytes();
  static_cast<void>(keyspaces_.List());  // an earlier writing may have failed
  {
    const MutexLock lock(mutex_);
    if (!is_wanted_ && !IsDue(free_bytes)) return false;
  }
  static_cast<void>(Save());
  return true;
}

void Saver::StopThread() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

Status Saver::WriteSnapshot(SnapshotStatistics* statistics) {
  // The position is noted first: a keyspace whose engine is made later has nothing before it.
  const uint64_t position = log_.End();
  const std::vector<Log::Floor> abandoned = log_.Abandoned();
  const uint64_t begun_ms = clock_.WallMs();
  const std::map<uint32_t, DurableEngine*> engines = keyspaces_.All();
  const std::string path = PathOf(SnapshotName(position));
  auto writer = SnapshotWriter::Create(files_, path, begun_ms);
  if (!writer) return writer.error();
  std::vector<SnapshotKeyspace> keyspaces;
  uint64_t items = 0;
  for (const auto& [index, engine] : engines) {
    auto keyspace = WriteKeyspace(index, *engine, **writer, &items);
    if (!keyspace) return keyspace.error();
    keyspace->log_position = position;
    keyspaces.push_back(std::move(*keyspace));
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

// Writes the pairs of a keyspace as of a version that has all its changes in the log by now.
Result<SnapshotKeyspace> Saver::WriteKeyspace(uint32_t index, DurableEngine& engine,
                                              SnapshotWriter& writer, uint64_t* items) {
  // The log has this version, so it was drawn; it is released when all versions before it are.
  const Version at_least = log_.LastAppended(index);
  while (engine.Latest() < at_least) {
    engine.inner().Release();
    std::this_thread::yield();
  }
  const auto iterator = engine.OpenPairIterator(time_.Now().ms);
  if (!iterator) return Fail(iterator.error());
  while (true) {
    const auto pairs = (*iterator)->Next();
    if (!pairs) return Fail(pairs.error());
    if (is_stopping_.load(std::memory_order_relaxed)) {
      return Fail(Code::kUnavailable, "the store is being closed");
    }
    if (pairs->empty()) break;
    for (const Pair& pair : *pairs) {
      const Status s = writer.Add(index, pair.key, pair.value, pair.deadline_ms, pair.type);
      if (!s.ok()) return Fail(s);
    }
    *items += pairs->size();
    log_.set_kept_free(bytes_to_write_ - std::min(bytes_to_write_, writer.bytes_written()));
  }
  return SnapshotKeyspace{.index = index,
                          .engine = engine.format(),
                          .version = (*iterator)->version(),
                          .now_ms = (*iterator)->now_ms()};
}

// A snapshot that cannot be removed does no harm: the next one tries again.
void Saver::RemoveSnapshotsBefore(uint64_t position) {
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return;
  for (const uint64_t of : found->snapshots) {
    const std::string path = PathOf(SnapshotName(of));
    if (of < position && !kept_files_.contains(path)) static_cast<void>(files_.Remove(path));
  }
}

}  // namespace skep::durable

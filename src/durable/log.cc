#include "durable/log.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mutex.h"
#include "base/varint.h"

namespace skep::durable {
namespace {

// With kEverySecond a write is not older than this when its sync begins, so that the second has
// room for the sync itself.
constexpr uint64_t kSyncAfterMs = 500;
constexpr uint64_t kMendEveryMs = 100;
constexpr int kIdleMs = 1000;
// Syncs that take no longer than this, on the average of the last few, are done by the threads that
// want them: to wake the log's thread and to be woken takes half as long.
constexpr uint64_t kBriefSyncNs = 500'000;
constexpr std::chrono::milliseconds kSyncPatience{1};  // for another thread's sync
constexpr std::chrono::milliseconds kPreparePatience{500};
constexpr uint64_t kSlowSyncMs = 200;
constexpr int kRetrySyncMs = 1;  // if a batch had not left
constexpr int kDropOnMs = 1;     // if there is more to drop
constexpr int kRoundsMax = 16;   // that one thread writes for others
// Bytes in memory that are not synced. Above the first a sync is due; above the second nothing more
// is written until a sync has succeeded, and replies wait.
constexpr size_t kKeptBytesDue = size_t{32} << 20;
constexpr size_t kKeptBytesMax = size_t{128} << 20;

constexpr uint64_t kCheckEveryMs = 1000;
// Bytes of the progress records that a batch gives rise to, two at most.
constexpr uint64_t kProgressBytes = 2 * (kRecordHeaderBytes + 16);
constexpr uint64_t kProgressBytesOfKeyspace = 2 * 16;

constexpr Status kNoMemory(Code::kOutOfMemory, "no memory for what the log has to write");

void Bump(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

bool IsLackOfSpace(const Status& status) {
  return status.code() == Code::kIo && (status.detail() == ENOSPC || status.detail() == EDQUOT);
}

Log::Log(FileSystem& files, Clock& clock, const Options& options)
    : clock_(clock),
      segments_(files, options.directory, options.log_segment_bytes),
      policy_(options.log_sync) {}

Log::~Log() { StopThread(); }

void Log::AddKeyspace(uint32_t keyspace, std::function<Version()> latest, ReleaseGate& written,
                      ReleaseGate& synced) {
  const MutexLock writing(writing_);
  const MutexLock lock(mutex_);
  keyspaces_.push_back(std::make_unique<Keyspace>(Keyspace{
      .index = keyspace, .latest = std::move(latest), .written = &written, .synced = &synced}));
}

Log::Keyspace& Log::KeyspaceOf(uint32_t index) const {
  const auto at = std::ranges::find(keyspaces_, index, &Keyspace::index);
  SKEP_CHECK(at != keyspaces_.end());
  return **at;
}

Status Log::Begin(uint64_t position, std::string records) {
  const MutexLock writing(writing_);
  std::string payload = {static_cast<char>(RecordType::kStart)};
  AppendVarint(payload, kLogVersion);
  std::string start;
  {
    const MutexLock lock(mutex_);
    end_ = position + records.size();
    pending_ = std::move(records);
    AppendRecord(payload, Crc32c(payload));
    start = std::exchange(pending_, {});
  }
  Status s = segments_.Begin(position, start);
  if (s.ok()) {
    SetSynced(segments_.position());
    NoteRoom();
  } else if (IsLackOfSpace(s)) {
    synced_position_.store(position, std::memory_order_relaxed);
    written_position_.store(position + start.size(), std::memory_order_relaxed);
    Keep({.position = position, .bytes = std::move(start)});
    SetFailed(s);
  }
  return s;
}

// Keeps the chunk until it is synced.
void Log::Keep(Chunk chunk) {
  chunk.since_ms = clock_.MonotonicMs();
  if (kept_.empty()) unsynced_since_ms_.store(chunk.since_ms, std::memory_order_relaxed);
  kept_bytes_ += chunk.bytes.size();
  kept_.push_back(std::move(chunk));
}

void Log::SetSynced(uint64_t position) {
  synced_position_.store(position, std::memory_order_relaxed);
  written_position_.store(segments_.position(), std::memory_order_relaxed);
  std::erase_if(kept_, [&](const Chunk& chunk) SKEP_REQUIRES(writing_) {
    if (chunk.position + chunk.bytes.size() > position) return false;
    kept_bytes_ -= chunk.bytes.size();
    return true;
  });
  unsynced_since_ms_.store(kept_.empty() ? 0 : kept_.front().since_ms, std::memory_order_relaxed);
}

// ---- Writers ----

Result<Log::Floor> Log::Enter(uint32_t keyspace, const Need& need) {
  while (true) {
    uint64_t wanted = 0;
    {
      const MutexLock lock(mutex_);
      if (const Status why = Refusal(need); !why.ok()) return Fail(why);
      wanted = RoomFor(need);
      if (wanted <= room_.bytes()) return EnterWith(keyspace, need.bytes);
    }
    if (const Status s = TakeSpace(wanted); !s.ok()) return Fail(s);
  }
}

// Why the batch may not enter, whatever the room.
Status Log::Refusal(const Need& need) const {
  if (!failure_.ok()) return failure_;
  if (IsTooOld()) {
    return {Code::kIo, "the disk has not synced for too long", EBUSY};
  }
  return need.stores || !IsLackOfSpace(space_) ? space_ : Status();
}

// The bytes behind the written ones that the batch needs, and all batches that have entered.
uint64_t Log::RoomFor(const Need& need) const {
  const uint64_t for_deletes = std::min(segments_.segment_bytes() / 4, kForDeletesMax);
  const uint64_t progress = kProgressBytes + kProgressBytesOfKeyspace * keyspaces_.size();
  return end_ - room_.position + entered_bytes_ + need.bytes + progress +
         (need.stores ? for_deletes : 0);
}

Log::Floor Log::EnterWith(uint32_t keyspace, uint64_t bytes) {
  if (free_floors_.empty()) {
    floors_.emplace_back();
    free_floors_.reserve(floors_.capacity());  // so that nobody who leaves needs memory
    free_floors_.push_back(floors_.size() - 1);
  }
  const Floor floor = free_floors_.back();
  free_floors_.pop_back();
  bytes += kProgressBytes + kProgressBytesOfKeyspace * keyspaces_.size();
  entered_bytes_ += bytes;
  floors_[floor] = {.keyspace = keyspace, .floor = KeyspaceOf(keyspace).latest(), .bytes = bytes};
  return floor;
}

// Takes room for so many bytes behind the written ones from the disk.
Status Log::TakeSpace(uint64_t bytes) {
  // A bit more, so that room is not taken anew for every batch that comes meanwhile.
  const uint64_t more = bytes + bytes / 4;
  Status s;
  {
    // A thread that has other clients to serve does not wait for a disk that does not answer.
    constexpr Status kSlow(Code::kIo, "the disk is slower than the writes", EBUSY);
    if (IsSlow()) {
      Wake();
      return kSlow;
    }
    if (!preparing_.try_lock_for(kPreparePatience)) return kSlow;
    const MutexLock preparing(preparing_, std::adopt_lock);
    if (IsSlow()) return kSlow;
    s = segments_.Prepare(more);
    if (!s.ok() && IsLackOfSpace(s)) s = segments_.Prepare(bytes);
    NoteRoom();
  }
  if (news_hook_) news_hook_();
  Wake();  // if there is no space the log's thread says so
  return s;
}

// An old room_ does no harm: the bytes that were written since then were to fit into it.
void Log::NoteRoom() {
  const MutexLock lock(mutex_);
  room_ = segments_.room();
}

uint64_t Log::UnsyncedMs() const {
  const uint64_t since_ms = unsynced_since_ms_.load(std::memory_order_relaxed);
  const uint64_t now_ms = clock_.MonotonicMs();
  return since_ms == 0 ? 0 : now_ms - std::min(now_ms, since_ms);
}

// Bytes that were written under another policy are not too old before a sync of this one was due.
bool Log::IsTooOld() const {
  const uint64_t max_ms = unsynced_ms_max_.load(std::memory_order_relaxed);
  if (max_ms == 0 || policy() != LogSync::kEverySecond || UnsyncedMs() <= max_ms) return false;
  return clock_.MonotonicMs() - policy_since_ms_.load(std::memory_order_relaxed) > max_ms;
}

// Whether a sync takes long, or one that is due does not come to an end.
bool Log::IsSlow() const {
  const uint64_t since_ms = sync_since_ms_.load(std::memory_order_relaxed);
  const uint64_t now_ms = clock_.MonotonicMs();
  if (since_ms != 0 && now_ms > since_ms + kSlowSyncMs) return true;
  return policy() == LogSync::kEverySecond && UnsyncedMs() > 2 * kSyncAfterMs;
}

void Log::Leave(uint32_t keyspace, Floor floor, const Record& record) {
  const uint32_t crc = Crc32c(record.payload);
  const MutexLock lock(mutex_);
  if (!record.payload.empty()) AppendRecord(record.payload, crc);
  TakeAway(floor);
  if (record.payload.empty()) return;
  Keyspace& of = KeyspaceOf(keyspace);
  of.last_appended = std::max(of.last_appended, record.last);
  Bump(records_);
  changes_.fetch_add(record.changes, std::memory_order_relaxed);
}

void Log::TakeAway(Floor floor) {
  entered_bytes_ -= floors_[floor].bytes;
  floors_[floor] = {};
  free_floors_.push_back(floor);
}

void Log::Abandon(Floor floor, Version last) noexcept {
  {
    const MutexLock lock(mutex_);
    Held& held = floors_[floor];
    entered_bytes_ -= std::exchange(held.bytes, 0);
    held.is_abandoned = true;
    Keyspace& of = KeyspaceOf(held.keyspace);
    of.last_appended = std::max(of.last_appended, last);
  }
  if (news_hook_) news_hook_();
}

std::vector<Log::Floor> Log::Abandoned() const {
  const MutexLock lock(mutex_);
  std::vector<Floor> abandoned;
  for (Floor floor = 0; floor < floors_.size(); ++floor) {
    if (floors_[floor].is_abandoned) abandoned.push_back(floor);
  }
  return abandoned;
}

void Log::LeaveAbandoned(const std::vector<Floor>& floors) {
  if (floors.empty()) return;
  {
    const MutexLock lock(mutex_);
    for (const Floor floor : floors) TakeAway(floor);
  }
  Publish();
}

// If there is no memory for the record nothing is appended.
void Log::AppendRecord(std::string_view payload, uint32_t payload_crc) {
  char header[kRecordHeaderBytes];
  WriteHeader({.payload_crc = payload_crc, .payload_bytes = payload.size(), .position = end_},
              header);
  pending_.reserve(pending_.size() + sizeof(header) + payload.size());
  pending_.append(header, sizeof(header));
  pending_.append(payload);
  end_ += sizeof(header) + payload.size();
}

uint64_t Log::End() const {
  const MutexLock lock(mutex_);
  return end_;
}

Version Log::LastAppended(uint32_t keyspace) const {
  const MutexLock lock(mutex_);
  return KeyspaceOf(keyspace).last_appended;
}

// ---- Writing ----

void Log::Publish() {
  if (policy() == LogSync::kAlways) return AskSync();
  wanted_.store(true, std::memory_order_seq_cst);
  for (int round = 0; wanted_.load(std::memory_order_seq_cst); ++round) {
    if (round == kRoundsMax) return Wake();
    if (!writing_.try_lock()) return;
    const MutexLock writing(writing_, std::adopt_lock);
    wanted_.store(false, std::memory_order_seq_cst);
    if (WriteTaken().ok()) ReleaseWritten();
  }
}

void Log::WantSync(uint32_t keyspace, Version ticket, bool here) {
  const ReleaseGate* synced = nullptr;
  {
    const MutexLock lock(mutex_);
    Keyspace& of = KeyspaceOf(keyspace);
    of.wanted = std::max(of.wanted, ticket);
    synced = of.synced;
  }
  const bool is_brief = sync_is_brief_.load(std::memory_order_relaxed);
  if (!here || !is_brief || !SyncHere(*synced, ticket)) AskSync();
}

// Syncs by this thread. Returns whether the gate is released up to the ticket then.
bool Log::SyncHere(const ReleaseGate& synced, Version ticket) {
  if (!syncing_.try_lock_for(kSyncPatience)) return false;
  const MutexLock syncing(syncing_, std::adopt_lock);
  if (synced.IsReleased(ticket)) return true;  // by the thread that had syncing_
  {
    const MutexLock writing(writing_);
    if (!WriteTaken().ok()) return false;
  }
  return Sync().ok() && synced.IsReleased(ticket);
}

// Asks the log's thread for a sync.
void Log::AskSync() {
  if (!wants_sync_.exchange(true, std::memory_order_seq_cst)) Wake();
}

// Takes the records that were appended, and behind them the progress that they make.
Log::Chunk Log::Take() {
  if (kept_.size() == kept_.capacity()) kept_.reserve(2 * kept_.size() + 8);  // for Keep()
  const MutexLock lock(mutex_);
  const uint64_t begin = end_ - pending_.size();
  bool has_progress = false;
  for (const auto& keyspace : keyspaces_) {
    Version complete = keyspace->latest();
    for (const Held& held : floors_) {
      if (held.keyspace == keyspace->index) complete = std::min(complete, held.floor);
    }
    keyspace->taken = std::max(keyspace->taken, complete);
    has_progress |=
        (keyspace->last_appended > keyspace->progress && keyspace->taken > keyspace->progress) ||
        keyspace->taken >= keyspace->progress + kVersionsUntold;
  }
  if (has_progress || !pending_.empty()) AppendProgress();
  return {.position = begin, .bytes = std::exchange(pending_, {})};
}

void Log::AppendProgress() {
  std::string payload = {static_cast<char>(RecordType::kProgress)};
  AppendVarint(payload, synced_position_.load(std::memory_order_relaxed));
  const auto is_news = [](const auto& keyspace) { return keyspace->taken > keyspace->progress; };
  AppendVarint(payload, static_cast<uint64_t>(std::ranges::count_if(keyspaces_, is_news)));
  for (const auto& keyspace : keyspaces_) {
    if (!is_news(keyspace)) continue;
    AppendVarint(payload, keyspace->index);
    AppendVarint(payload, keyspace->taken);
  }
  AppendRecord(payload, Crc32c(payload));
  for (const auto& keyspace : keyspaces_) keyspace->progress = keyspace->taken;
}

// Writes the records that were appended. If it is not kOk nothing may be acknowledged.
Status Log::WriteTaken() {
  if (has_failed_) return failure_;
  // Once no batch may enter any more, the records of those that have are few, and reads may wait
  // for them: so these are written.
  if (kept_bytes_ > kKeptBytesMax && !IsTooOld()) {
    AskSync();  // a sync publishes
    return {Code::kUnavailable, "the disk is slower than the writes"};
  }
  Chunk chunk;
  try {
    chunk = Take();
  } catch (const std::bad_alloc&) {
    wanted_.store(true, std::memory_order_seq_cst);  // the log's thread tries again
    return kNoMemory;
  }
  if (chunk.bytes.empty()) return {};
  const Status s = WriteChunk(std::move(chunk));
  if (!s.ok()) SetFailed(s);
  return s;
}

Status Log::WriteChunk(Chunk chunk) {
  Keep(std::move(chunk));
  Status s;
  try {
    s = segments_.Write(kept_.back().bytes);
  } catch (const std::bad_alloc&) {
    s = kNoMemory;
  }
  written_position_.store(segments_.position(), std::memory_order_relaxed);
  Bump(writes_);
  NoteRoom();
  if (kept_bytes_ > kKeptBytesDue) AskSync();
  if (segments_.wants_filling() || !segments_.is_prepared()) Wake();
  return s;
}

void Log::SetFailed(Status status) {
  has_failed_ = true;
  const MutexLock lock(mutex_);
  failure_ = status;
  Wake();  // to mend
}

// With kAlways a written version is not released before it is synced.
void Log::ReleaseWritten() {
  if (policy() == LogSync::kAlways) return;
  for (const auto& keyspace : keyspaces_) keyspace->written->Release(keyspace->taken);
}

// ---- The log's own work ----

int Log::Step() {
  const uint64_t now_ms = clock_.MonotonicMs();
  if (wanted_.load(std::memory_order_seq_cst)) Publish();
  if (HasFailed()) {
    if (now_ms < next_mend_ms_) return static_cast<int>(next_mend_ms_ - now_ms);
    next_mend_ms_ = now_ms + kMendEveryMs;
    const MutexLock syncing(syncing_);
    const MutexLock writing(writing_);
    const MutexLock preparing(preparing_);
    Status mended = Mend();
    if (IsLackOfSpace(mended) && GiveBackSpace()) mended = Mend();
    if (!mended.ok()) return kMendEveryMs;
  }
  // The sync comes first: replies must not wait for work that takes as long as the disk likes.
  const bool is_asked = SyncIfDue();
  const Status space = SeeToSpace();
  if (is_asked && LacksWanted()) {  // as a batch had not left
    wants_sync_.store(true, std::memory_order_seq_cst);
    return kRetrySyncMs;
  }
  // A thread that found writing_ taken by this one has left its records to this one.
  if (wanted_.load(std::memory_order_seq_cst)) Publish();
  if (!space.ok()) return kMendEveryMs;
  if (drops_on_) return kDropOnMs;
  return policy() == LogSync::kEverySecond ? static_cast<int>(kSyncAfterMs) / 4 : kIdleMs;
}

// Syncs if it was asked for or is due. Returns whether it was asked for.
bool Log::SyncIfDue() {
  const bool is_asked = wants_sync_.exchange(false, std::memory_order_seq_cst);
  if (is_asked) {
    const MutexLock writing(writing_);
    static_cast<void>(WriteTaken());
  }
  const bool is_due = policy() != LogSync::kNo && UnsyncedMs() >= kSyncAfterMs;
  if (is_asked || is_due) {
    const MutexLock syncing(syncing_);
    static_cast<void>(Sync());
  }
  return is_asked;
}

// Drops segments that are not needed, makes the next segment, and writes zeroes ahead.
Status Log::SeeToSpace() {
  uint64_t drop_before = 0;
  {
    const MutexLock lock(mutex_);
    drop_before = std::exchange(drop_before_, 0);
  }
  Status space;
  bool is_dropped = true;
  bool is_news = false;
  constexpr size_t kDroppedMax = 4;  // segments: a sync that is due does not wait for more
  {
    const MutexLock preparing(preparing_);
    if (const uint64_t now_ms = clock_.MonotonicMs(); now_ms >= next_check_ms_ || !checked_.ok()) {
      next_check_ms_ = now_ms + kCheckEveryMs;
      checked_ = segments_.Check();
    }
    if (drop_before != 0 || segments_.has_superseded()) {
      const auto is_all = segments_.DropBefore(drop_before, kDroppedMax);
      is_dropped = is_all.value_or(false);
      drops_on_ = is_all && !*is_all;
    }
    is_news = !segments_.is_prepared();
    space = segments_.Prepare();
    NoteRoom();
  }
  if (space.ok()) space = checked_;
  {
    const MutexLock lock(mutex_);
    space_ = space;
    if (!is_dropped) drop_before_ = std::max(drop_before_, drop_before);  // by the next step
  }
  if (is_news && news_hook_) news_hook_();
  segments_.FillAhead();
  return space;
}

// Drops the segments before the last snapshot: they are not needed, also while the log has failed.
// Returns whether there is more space now.
bool Log::GiveBackSpace() {
  uint64_t drop_before = 0;
  {
    const MutexLock lock(mutex_);
    drop_before = drop_before_;
  }
  return drop_before != 0 && segments_.DropChainBefore(drop_before);
}

bool Log::LacksWanted() {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(keyspaces_, [](const auto& keyspace) {
    return !keyspace->synced->IsReleased(keyspace->wanted);
  });
}

Status Log::Sync() {
  uint64_t position = 0;
  {
    const MutexLock writing(writing_);
    if (has_failed_) return failure_;
    position = segments_.position();
    for (const auto& keyspace : keyspaces_) keyspace->synced_to = keyspace->taken;
    if (position == synced_position_.load(std::memory_order_relaxed)) {
      ReleaseSynced();
      return {};
    }
  }
  const uint64_t begin_ns = clock_.MonotonicNs();
  sync_since_ms_.store(clock_.MonotonicMs(), std::memory_order_relaxed);
  Result<uint64_t> synced = Fail(kNoMemory);
  try {
    synced = segments_.Sync();
  } catch (const std::bad_alloc&) {  // `synced` is kNoMemory
  }
  sync_since_ms_.store(0, std::memory_order_relaxed);
  const uint64_t took_ns = clock_.MonotonicNs() - begin_ns;
  Bump(syncs_);
  recent_sync_ns_ = (recent_sync_ns_ * 7 + std::min(took_ns, 16 * kBriefSyncNs)) / 8;
  sync_is_brief_.store(recent_sync_ns_ <= kBriefSyncNs, std::memory_order_relaxed);
  if (took_ns > sync_ns_max_.load(std::memory_order_relaxed)) {
    sync_ns_max_.store(took_ns, std::memory_order_relaxed);
  }
  {
    const MutexLock writing(writing_);
    if (!synced) {
      SetFailed(synced.error());
      return synced.error();
    }
    SetSynced(position);
    ReleaseSynced();
  }
  // Records that waited for room in memory, or were appended meanwhile.
  if (policy() != LogSync::kAlways) Publish();
  return {};
}

// The gate of synced versions is released first: with kAlways a version that the other gate has
// released is synced.
void Log::ReleaseSynced() {
  for (const auto& keyspace : keyspaces_) {
    keyspace->synced->Release(keyspace->synced_to);
    keyspace->written->Release(keyspace->synced_to);
  }
}

bool Log::HasFailed() {
  const MutexLock writing(writing_);
  return has_failed_;
}

bool Log::writes() const {
  const MutexLock lock(mutex_);
  return failure_.ok();
}

Status Log::Mend() {
  const uint64_t from = kept_.empty() ? segments_.position() : kept_.front().position;
  std::string bytes;
  for (const Chunk& chunk : kept_) bytes += chunk.bytes;
  if (const Status s = segments_.Begin(from, bytes); !s.ok()) return s;
  SetSynced(segments_.position());
  NoteRoom();
  has_failed_ = false;
  for (const auto& keyspace : keyspaces_) keyspace->synced_to = keyspace->taken;
  ReleaseSynced();
  wants_sync_.store(true, std::memory_order_seq_cst);  // for what was appended meanwhile
  const MutexLock lock(mutex_);
  failure_ = {};
  return {};
}

Status Log::status() const {
  const MutexLock lock(mutex_);
  return Refusal({.stores = true});
}

bool Log::has_space() const {
  const MutexLock lock(mutex_);
  return !IsLackOfSpace(failure_) && !IsLackOfSpace(space_);
}

void Log::set_policy(LogSync policy) {
  policy_since_ms_.store(clock_.MonotonicMs(), std::memory_order_relaxed);
  policy_.store(policy, std::memory_order_relaxed);
  AskSync();
}

LogStatistics Log::statistics() const {
  return {.position = written_position_.load(std::memory_order_relaxed),
          .synced_position = synced_position_.load(std::memory_order_relaxed),
          .records = records_.load(std::memory_order_relaxed),
          .changes = changes_.load(std::memory_order_relaxed),
          .writes = writes_.load(std::memory_order_relaxed),
          .syncs = syncs_.load(std::memory_order_relaxed),
          .sync_ns_max = sync_ns_max_.load(std::memory_order_relaxed),
          .unsynced_ms = UnsyncedMs()};
}

void Log::DropBefore(uint64_t position) {
  {
    const MutexLock lock(mutex_);
    drop_before_ = std::max(drop_before_, position);
  }
  Wake();
}

// ---- The thread ----

void Log::StartThread() {
  thread_ = std::thread([this] { RunThread(); });
}

void Log::RunThread() {
  const MutexLock lock(thread_mutex_);
  while (!is_stopping_) {
    is_woken_ = false;
    int wait_ms = kMendEveryMs;
    try {
      const MutexUnlock unlock(thread_mutex_);
      wait_ms = Step();
    } catch (const std::bad_alloc&) {  // a later step does the work
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    while (!is_woken_ && !is_stopping_) {
      if (!wake_.WaitUntil(thread_mutex_, until)) break;
    }
  }
}

void Log::Wake() {
  {
    const MutexLock lock(thread_mutex_);
    is_woken_ = true;
  }
  wake_.NotifyOne();
}

void Log::StopThread() {
  {
    const MutexLock lock(thread_mutex_);
    is_stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

Status Log::Close() {
  StopThread();
  const MutexLock syncing(syncing_);
  const MutexLock writing(writing_);
  const MutexLock preparing(preparing_);
  if (std::exchange(has_ended_, true)) return {};
  Status s = has_failed_ ? Mend() : Status();
  if (s.ok()) s = WriteEnd();
  if (s.ok()) return s;
  // A fault that does not stay costs nothing.
  s = Mend();
  return s.ok() ? WriteEnd() : s;
}

// An end record says that all records before it were synced, so those are synced first.
Status Log::WriteEnd() {
  const char end = static_cast<char>(RecordType::kEnd);
  for (const bool is_end : {false, true}) {
    if (is_end) {
      const MutexLock lock(mutex_);
      AppendRecord({&end, 1}, Crc32c({&end, 1}));
    }
    Chunk chunk = Take();
    if (!chunk.bytes.empty()) {
      if (const Status s = WriteChunk(std::move(chunk)); !s.ok()) return s;
    }
    const auto synced = segments_.Sync();
    if (!synced) return synced.error();
    SetSynced(*synced);
  }
  return {};
}

}  // namespace skep::durable

#include "pool/disk/disk_index_log.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "pool/state_pieces.h"

namespace skep::pool {

DiskIndexLog::DiskIndexLog(FileSystem& files, Clock& clock, DiskIndexLogOptions options)
    : files_(files),
      options_(std::move(options)),
      log_(files, clock,
           {.directory = options_.directory,
            .log_sync = options_.sync,
            .log_segment_bytes = options_.segment_bytes}) {
  const auto latest = [this] { return last_.load(std::memory_order_relaxed); };
  log_.AddKeyspace(kKeyspace, latest, written_, synced_);
}

DiskIndexLog::~DiskIndexLog() {
  StopCompactor();
  log_.StopThread();
}

Result<std::unique_ptr<DiskIndexLog>> DiskIndexLog::Open(FileSystem& files, Clock& clock,
                                                         DiskIndexLogOptions options,
                                                         std::string* problem) {
  auto log = std::unique_ptr<DiskIndexLog>(new DiskIndexLog(files, clock, std::move(options)));
  const std::string& directory = log->options_.directory;
  auto lock = durable::MakeDirectory(files, directory, problem);
  if (!lock) return Fail(lock.error());
  log->lock_ = std::move(*lock);
  auto recovered = RecoverIndexLog(files, directory, UINT64_MAX, log->options_.make_tree, problem);
  if (!recovered) return Fail(recovered.error());
  log->found_ = std::move(recovered->found);
  if (const Status s = log->log_.Begin(recovered->end, {}); !s.ok()) {
    *problem = fmt::format("{}: {}", directory, s.ToString());
    return Fail(s);
  }
  if (log->options_.wake) {
    log->log_.StartThread();
    log->compactor_ = std::thread([at = log.get()] { at->RunCompactor(); });
  }
  return log;
}

IndexLog::Ticket DiskIndexLog::Append(Kind kind, std::string_view bytes) {
  const MutexLock lock(mutex_);
  if (kind == Kind::kStateBegin || kind == Kind::kOwner) ++generation_;
  if (kind != Kind::kState && kind != Kind::kEntries) {
    is_owners_state_begun_ = kind == Kind::kStateBegin;
  }
  return AppendRecord(kind, bytes);
}

IndexLog::Ticket DiskIndexLog::AppendRecord(Kind kind, std::string_view bytes) {
  record_.assign(1, static_cast<char>(durable::RecordType::kPool));
  record_.push_back(static_cast<char>(kind));
  record_.append(bytes);
  const auto floor = log_.Enter(kKeyspace, {.bytes = record_.size(), .stores = true});
  if (!floor) return 0;
  const uint64_t position = log_.End();
  const Ticket ticket = last_.load(std::memory_order_relaxed) + 1;
  last_.store(ticket, std::memory_order_relaxed);
  log_.Leave(kKeyspace, *floor, {.payload = record_, .changes = 1, .last = ticket});
  NoteState(kind, position);
  return ticket;
}

void DiskIndexLog::NoteState(Kind kind, uint64_t position) {
  if (kind == Kind::kStateBegin || kind == Kind::kStateSince) {
    begun_from_ = begun_at_ = position;
    StateSince since;
    std::string_view bytes = std::string_view(record_).substr(2);
    if (kind == Kind::kStateSince && since.DecodeFrom(bytes)) begun_from_ = since.position;
  } else if (kind == Kind::kStateEnd && begun_from_) {
    state_from_ = *std::exchange(begun_from_, std::nullopt);
    state_ends_at_ = log_.End();
    state_bytes_ = state_ends_at_ - begun_at_;
    state_ticket_ = last_.load(std::memory_order_relaxed);
    is_dropped_ = false;
  }
}

void DiskIndexLog::DropOld() {
  if (is_dropped_ || synced() < state_ticket_) return;
  is_dropped_ = true;
  log_.DropBefore(state_from_);
}

void DiskIndexLog::Flush(bool syncs) {
  const Ticket ticket = last_.load(std::memory_order_relaxed);
  const bool must_sync = syncs || options_.sync == LogSync::kAlways;
  if (must_sync) {
    log_.WantSync(kKeyspace, ticket, false);
  } else {
    log_.Publish();
  }
  ReleaseGate& gate = must_sync ? synced_ : written_;
  if (options_.wake && !gate.IsReleased(ticket)) gate.CallWhenReleased(ticket, options_.wake);
  const MutexLock lock(mutex_);
  DropOld();
}

IndexLog::Ticket DiskIndexLog::logged() const {
  return (options_.sync == LogSync::kAlways ? synced_ : written_).released();
}

Status DiskIndexLog::Close() {
  StopCompactor();
  return log_.Close();
}

// ---- Compaction ----

bool DiskIndexLog::IsLong() const {
  const MutexLock lock(mutex_);
  const uint64_t bytes = log_.End() - state_ends_at_;
  return bytes > options_.compact_bytes_min && bytes > 2 * state_bytes_;
}

Result<bool> DiskIndexLog::Compact() {
  uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    if (is_owners_state_begun_) return false;
    generation = generation_;
  }
  StateSince since = {.position = log_.statistics().position, .owners = {}};
  std::string problem;
  auto recovered =
      RecoverIndexLog(files_, options_.directory, since.position, options_.make_tree, &problem);
  if (!recovered) return Fail(recovered.error());
  if (recovered->found.state == nullptr) return false;
  since.owners = std::move(recovered->found.owners);
  const auto last = AppendState(*recovered->found.state, since, generation);
  if (!last) return Fail(last.error());
  return *last != 0 && AwaitSync(*last);
}

// Returns the ticket of the last piece; 0: the compaction is given up.
Result<IndexLog::Ticket> DiskIndexLog::AppendState(IndexState& state, const StateSince& since,
                                                   uint64_t generation) {
  StatePieces pieces(state, {.epoch = 1, .attempt = 1, .hash_server = 1});
  std::string piece;
  since.EncodeTo(piece);
  pieces.Next(piece);
  Ticket last = AppendPiece(generation, Kind::kStateSince, piece);
  uint64_t unsynced = 0;
  while (last != 0 && !pieces.IsDone()) {
    piece.clear();
    pieces.Next(piece);
    last = AppendPiece(generation, pieces.IsDone() ? Kind::kStateEnd : Kind::kState, piece);
    unsynced += piece.size();
    if (unsynced < kUnsyncedMax) continue;
    unsynced = 0;
    if (!AwaitSync(last)) return Ticket{0};
  }
  if (last == 0 && !log_.status().ok()) return Fail(log_.status());
  return last;
}

IndexLog::Ticket DiskIndexLog::AppendPiece(uint64_t generation, Kind kind, std::string_view bytes) {
  const MutexLock lock(mutex_);
  return generation == generation_ ? AppendRecord(kind, bytes) : 0;
}

// False: the log ends, or a compaction without a thread finds it in failure.
bool DiskIndexLog::AwaitSync(Ticket ticket) {
  constexpr std::chrono::milliseconds kPause(1);
  log_.WantSync(kKeyspace, ticket, false);
  while (synced() < ticket) {
    if (stops_.load(std::memory_order_acquire)) return false;
    if (!options_.wake) log_.Step();
    if (!options_.wake && synced() < ticket) return false;
    if (options_.wake) std::this_thread::sleep_for(kPause);
  }
  const MutexLock lock(mutex_);
  DropOld();
  return true;
}

void DiskIndexLog::RunCompactor() {
  constexpr std::chrono::milliseconds kPause(100);
  constexpr int kPausesAfterFailure = 100;
  int pauses = 0;
  while (!stops_.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(kPause);
    if (pauses > 0) --pauses;
    if (pauses > 0 || !IsLong()) continue;
    if (!Compact().value_or(false)) pauses = kPausesAfterFailure;
  }
}

void DiskIndexLog::StopCompactor() {
  stops_.store(true, std::memory_order_release);
  if (compactor_.joinable()) compactor_.join();
}

}  // namespace skep::pool

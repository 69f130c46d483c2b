#include "pool/disk/disk_index_log.h"

#include <fmt/format.h>

#include <utility>

#include "pool/disk/index_recovery.h"

namespace skep::pool {

DiskIndexLog::DiskIndexLog(FileSystem& files, Clock& clock, DiskIndexLogOptions options)
    : options_(std::move(options)),
      log_(files, clock,
           {.directory = options_.directory,
            .log_sync = options_.sync,
            .log_segment_bytes = options_.segment_bytes}) {
  const auto latest = [this] { return last_.load(std::memory_order_relaxed); };
  log_.AddKeyspace(kKeyspace, latest, written_, synced_);
}

DiskIndexLog::~DiskIndexLog() { log_.StopThread(); }

Result<std::unique_ptr<DiskIndexLog>> DiskIndexLog::Open(FileSystem& files, Clock& clock,
                                                         DiskIndexLogOptions options,
                                                         std::string* problem) {
  auto log = std::unique_ptr<DiskIndexLog>(new DiskIndexLog(files, clock, std::move(options)));
  const std::string& directory = log->options_.directory;
  auto lock = durable::MakeDirectory(files, directory, problem);
  if (!lock) return Fail(lock.error());
  log->lock_ = std::move(*lock);
  auto recovered = RecoverIndexLog(files, directory, log->options_.make_tree, problem);
  if (!recovered) return Fail(recovered.error());
  log->found_ = std::move(recovered->found);
  if (const Status s = log->log_.Begin(recovered->end, {}); !s.ok()) {
    *problem = fmt::format("{}: {}", directory, s.ToString());
    return Fail(s);
  }
  if (log->options_.wake) log->log_.StartThread();
  return log;
}

IndexLog::Ticket DiskIndexLog::Append(Kind kind, std::string_view bytes) {
  record_.assign(1, static_cast<char>(durable::RecordType::kPool));
  record_.push_back(static_cast<char>(kind));
  record_.append(bytes);
  const auto floor = log_.Enter(kKeyspace, {.bytes = record_.size(), .stores = true});
  if (!floor) return 0;
  const uint64_t position = log_.End();
  const Ticket ticket = last_.load(std::memory_order_relaxed) + 1;
  last_.store(ticket, std::memory_order_relaxed);
  log_.Leave(kKeyspace, *floor, {.payload = record_, .changes = 1, .last = ticket});
  NotePlace(kind, position);
  return ticket;
}

void DiskIndexLog::NotePlace(Kind kind, uint64_t position) {
  if (kind == Kind::kStateBegin) begun_position_ = position;
  if (kind != Kind::kStateEnd || !begun_position_) return;
  state_position_ = *std::exchange(begun_position_, std::nullopt);
  state_end_ = last_;
  is_dropped_ = false;
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
  if (is_dropped_ || synced() < state_end_) return;
  is_dropped_ = true;
  log_.DropBefore(state_position_);
}

IndexLog::Ticket DiskIndexLog::logged() const {
  return (options_.sync == LogSync::kAlways ? synced_ : written_).released();
}

}  // namespace skep::pool

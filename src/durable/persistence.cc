#include "durable/persistence.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "durable/keyspace_file.h"
#include "durable/repair.h"

namespace skep::durable {

Persistence::Persistence(FileSystem& files, Clock& clock, const Options& options,
                         DirectoryLock lock, const DirectoryEngines& engines, bool repairs)
    : files_(files),
      clock_(clock),
      options_(options),
      lock_(std::move(lock)),
      repairs_(repairs),
      time_(clock),
      log_(files, clock, options),
      keyspaces_(files, options.directory, log_, engines),
      saver_(files, clock, options, time_, log_, keyspaces_) {}

Persistence::~Persistence() { StopThreads(); }

Result<std::unique_ptr<Persistence>> Persistence::Open(FileSystem& files, Clock& clock,
                                                       const Options& options, std::string* problem,
                                                       bool repairs) {
  auto lock = MakeDirectory(files, options.directory, problem);
  if (!lock) return Fail(lock.error());
  const DirectoryEngines engines = FindEngines(files, options.directory);
  if (const Status s = CheckConfigured(engines, options, problem); !s.ok()) return Fail(s);
  return std::unique_ptr<Persistence>(
      new Persistence(files, clock, options, std::move(*lock), engines, repairs));
}

Status Persistence::Recover(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem) {
  Recovery recovery(files_, clock_, options_, repairs_, keyspaces, keyspaces_);
  const Status status = Fill(recovery, report, problem);
  return status.ok() ? Start(recovery, report, problem) : status;
}

Status Persistence::Rehearse(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem) {
  Recovery recovery(files_, clock_, options_, repairs_, keyspaces, keyspaces_);
  return Fill(recovery, report, problem);
}

Status Persistence::Fill(Recovery& recovery, RecoveryReport* report, std::string* problem) {
  const Status status = recovery.Run();
  if (!status.ok()) {
    *problem = recovery.problem();
    return status;
  }
  *report = std::move(recovery.report());
  time_.StartAt(recovery.now_ms());
  report->clock_behind_ms = time_.Now().behind_ms;
  return {};
}

// Makes the list, the saver and the log begin where the recovery has ended.
Status Persistence::Start(Recovery& recovery, RecoveryReport* report, std::string* problem) {
  Status status = keyspaces_.StartList();
  if (!status.ok() && !IsLackOfSpace(status)) {
    *problem = fmt::format("{}/{}: {}", options_.directory, kKeyspaceFile, status.ToString());
    return status;
  }
  saver_.StartAfter(recovery.snapshot());
  // An earlier process may not have dropped the log before the snapshot. On a full disk that space
  // is needed for the first snapshot.
  if (!repairs_) log_.DropBefore(recovery.snapshot().log_position);
  // The tail is written once more: an earlier process may have failed to sync it, and bytes that a
  // sync has failed to write can be read until the power is lost, but never get to the disk.
  LogTail& tail = recovery.tail();
  status = log_.Begin(tail.position, std::move(tail.records));
  if (IsLackOfSpace(status)) status = {};  // the log says so, and begins when there is some
  if (status.ok() && report->repair.has_damage()) status = FinishRepair(&report->repair);
  if (!status.ok()) *problem = fmt::format("{}: {}", options_.directory, status.ToString());
  return status;
}

// The recovered keyspaces become a snapshot; only then are damaged files put aside.
Status Persistence::FinishRepair(RepairReport* report) {
  std::set<std::string> damaged = DamagedFiles(*report);
  saver_.KeepFiles(damaged);
  if (const Status s = saver_.Save(); !s.ok()) return s;
  // The snapshot may have replaced a damaged one of the same name.
  damaged.erase(options_.directory + "/" + SnapshotName(saver_.statistics().log_position));
  saver_.KeepFiles(damaged);
  if (const Status s = PutAside(files_, options_.directory, damaged, report); !s.ok()) return s;
  log_.Step();  // drops the segments that the snapshot has made superfluous
  return {};
}

void Persistence::StartThreads() {
  log_.set_news_hook([this] { saver_.NoteLogNews(); });
  log_.StartThread();
  saver_.StartThread();
}

void Persistence::StopThreads() {
  saver_.StopThread();
  log_.StopThread();
}

Status Persistence::Close() {
  // Changes that have no record in the log are kept by a snapshot.
  if (!log_.Abandoned().empty()) static_cast<void>(saver_.Save());
  StopThreads();
  return log_.Close();
}

}  // namespace skep::durable

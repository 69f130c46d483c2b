// repair.h: how a recovery goes on behind damage.
//
// Where a recovery begins. The items that a damaged snapshot has lost may be in an older snapshot,
// or in the log alone, which may go back further than it has to. So each snapshot, and the log
// alone, is tried as a beginning. The one with which the fewest bytes of snapshot and log are lost
// is taken; of equal ones the newest.
//
// The meaning of a hole in the log. Changes are applied in the order of their versions, those
// behind the hole, too: each does again what it did, but on the values that are there now.
//   - A key that was stored in the hole keeps the value it had before; a key that was deleted
//     there, or is in a range that was, is there again; until a change behind the hole stores or
//     deletes it.
//   - Functions and moves behind the hole start from that older value. One that cannot is left out
//     (RepairReport::refused).
//   - Changes before the hole may have been complete only by a record in the hole. They are taken
//     for complete (RepairReport::unconfirmed), since nearly all are: else replies that were sent
//     would be undone.
// A snapshot that has lost its footer does not say of which versions it is; then all that the log
// has from its position on is applied. A function or a move of the moment in which the snapshot was
// begun may then be done twice.
//
// So the repaired state need not be one that there was. Every hole is reported.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "durable/damage.h"
#include "durable/log_reader.h"
#include "durable/replay.h"
#include "engine/engine.h"

namespace skep::durable {

// The result of a repair. If it has no damage nothing was wrong.
struct RepairReport {
  std::vector<Damage> lost;
  // Damage that has cost nothing: the data were in another snapshot, or in the log.
  std::vector<Damage> made_good;
  uint64_t unconfirmed = 0;            // changes applied that were perhaps never complete
  uint64_t refused = 0;                // changes that could not be applied to what is there now
  std::vector<std::string> put_aside;  // the damaged files, by their new names

  bool has_damage() const { return !lost.empty() || !made_good.empty(); }
};

// Where a recovery begins.
struct RecoveryStart {
  std::string snapshot;  // a path; empty: none
  bool is_whole = true;  // the snapshot is undamaged
  uint64_t position = 0;
  uint64_t newest = 0;  // the position of the newest snapshot, of whatever state
};
// Chooses where a repair begins, and adds the damage of the snapshots, and of the log before the
// position, to *report. On an error *problem names the file.
//   kIo
//   kNotSupported  a newer Skep wrote a snapshot
// Cost: reads the newest snapshot, and if that is damaged the others and the log once each.
Result<RecoveryStart> ChooseStart(FileSystem& files, const std::string& directory,
                                  RepairReport* report, std::string* problem);

// Adds the damage that the log ends at `end`, if that is before the newest snapshot.
void AddMissingEnd(const std::string& directory, uint64_t end, uint64_t newest,
                   std::vector<Damage>* damages);

// The files that have damage.
std::set<std::string> DamagedFiles(const RepairReport& report);
// Puts the damaged files aside that are still there: appends kDamagedSuffix to their names. Adds
// the new names to report->put_aside.
//   kIo
Status PutAside(FileSystem& files, const std::string& directory,
                const std::set<std::string>& damaged, RepairReport* report);

// Keeps account of the holes of a log during a replay. Thread safety: one owner.
class HoleKeeper {
 public:
  // `keyspaces` is how many there are. `replay` and `report` must outlive it.
  HoleKeeper(Replay& replay, uint32_t keyspaces, RepairReport* report)
      : replay_(replay), keyspaces_(keyspaces), report_(report) {}

  // Makes a reader that has found damage go on behind it.
  //   kIo
  Status Skip(LogReader& reader);
  // Notes that the rest of a record is left out, as it cannot be understood although its checksum
  // is right.
  void LeaveOut(const LogReader& reader, const LogRecord& record);
  // Applies the changes that only a record in a hole may have said to be complete. To be called
  // before a start record, and at the end of the log.
  //   kOutOfMemory  the engine has no room
  Status Settle();

 private:
  void NoteHole();

  Replay& replay_;
  const uint32_t keyspaces_;
  RepairReport* const report_;
  // By keyspace: the changes up to this version are to be taken for complete.
  std::map<uint32_t, Version> open_;
};

// Wraps an engine for a repair: a change that the engine refuses, as what it needs was lost, is
// passed over and counted in *refused; but not one that is refused for want of memory. `engine` and
// `refused` must outlive it.
std::unique_ptr<Engine> MakePatient(Engine& engine, uint64_t* refused);

}  // namespace skep::durable

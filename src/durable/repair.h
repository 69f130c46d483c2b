// repair.h: what a recovery does to go on behind damage.
//
// Where it begins. What a damaged snapshot had may be in an older one, or in no snapshot at all but
// the log, which goes back further than it has to. So each snapshot, and the log alone, is looked
// at as a beginning; the one with which the fewest bytes of snapshot and log are lost is taken, of
// equal ones the newest.
//
// What a hole in the log means. Changes are applied in the order of their versions, those behind
// the hole, too, whatever they are about: each does what it did, but on what is there now.
//   - What was stored in the hole keeps the value it had before, what was deleted there, ranges
//     included, is there again, until something behind the hole stores or deletes it.
//   - Functions and moves behind it start from that older value. One that cannot is left out
//     (RepairReport::refused).
//   - What the log had before the hole may have been complete only by what the hole said. It is
//     taken for complete (RepairReport::unconfirmed), since nearly all is: else replies that were
//     sent would be undone.
// A snapshot that has lost its footer does not say of which versions it is; then all that the log
// has from its position on is applied. A function or a move of the moment in which the snapshot was
// begun may then be done twice.
//
// So the state need not be one that there was. Every hole is reported.
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

// What a repair has done. Nothing was wrong if it has no damage.
struct RepairReport {
  std::vector<Damage> lost;
  // What these had was in another snapshot, or in the log.
  std::vector<Damage> made_good;
  uint64_t unconfirmed = 0;            // changes applied that were perhaps never complete
  uint64_t refused = 0;                // changes that could not be applied to what is there now
  std::vector<std::string> put_aside;  // the damaged files, by the names they have got

  bool has_damage() const { return !lost.empty() || !made_good.empty(); }
};

// Where a recovery begins.
struct RecoveryStart {
  std::string snapshot;  // a path; empty: none
  bool is_whole = true;  // the snapshot
  uint64_t position = 0;
  uint64_t newest = 0;  // the position of the newest snapshot, of whatever state
};
// Adds to *report the damage of the snapshots, and of the log before the position. On an error
// *problem names the file.
//   kIo
//   kNotSupported  a newer Skep wrote a snapshot
// Cost: reads the newest snapshot, and if that is damaged the others and the log once each.
Result<RecoveryStart> ChooseStart(FileSystem& files, const std::string& directory,
                                  RepairReport* report, std::string* problem);

// That the log ends at `end`, if that is before the newest snapshot.
void AddMissingEnd(const std::string& directory, uint64_t end, uint64_t newest,
                   std::vector<Damage>* damages);

// The files that have damage.
std::set<std::string> DamagedFiles(const RepairReport& report);
// Puts those of the damaged files aside that there still are: called what they were with
// kDamagedSuffix behind it. Adds the names that they have got to report->put_aside.
//   kIo
Status PutAside(FileSystem& files, const std::string& directory,
                const std::set<std::string>& damaged, RepairReport* report);

// Leads a replay over the holes of a log. Thread safety: one owner.
class HoleKeeper {
 public:
  // The keyspaces are those below the number. All must outlive it.
  HoleKeeper(Replay& replay, uint32_t keyspaces, RepairReport* report)
      : replay_(replay), keyspaces_(keyspaces), report_(report) {}

  // The reader has found damage: goes on behind it.
  //   kIo
  Status Skip(LogReader& reader);
  // A record that is good, but says what no record says: what it says from there on is left out.
  void LeaveOut(const LogReader& reader, const LogRecord& record);
  // Before a start record, and at the end of the log: the changes that holes have left open.
  //   kOutOfMemory  the engine has no room
  Status Settle();

 private:
  void NoteHole();

  Replay& replay_;
  const uint32_t keyspaces_;
  RepairReport* const report_;
  std::map<uint32_t, Version> open_;  // up to which version, by keyspace
};

// The engine as a replay sees it, which passes over what is refused for want of what was lost; all
// but for want of memory. `engine` and `refused`, which is raised, must outlive it.
std::unique_ptr<Engine> MakePatient(Engine& engine, uint64_t* refused);

}  // namespace skep::durable

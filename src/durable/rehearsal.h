// rehearsal.h: tries what a start would make of a directory, without changing it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "durable/persistence.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

struct Rehearsal {
  RecoveryReport report;
  std::map<uint32_t, uint64_t> items;  // by keyspace: the keys that a start would have
};

// Does the work of a start up to the point where it would write: loads the newest snapshot and
// replays the log, in memory. The engines are those that the directory names and, where it names
// none, those of `options`. On an error, with which a start would end, too, *problem is a line for
// a person.
//   kUnavailable      a process has the directory open
//   kInvalidArgument  nothing of a store is there; or the log needs a function that is not
//                     registered, or a keyspace that neither the directory nor `options` has
//   kNotSupported     a newer Skep wrote a file
//   kIo, kCorrupt, kOutOfMemory
// Memory: as much as the store takes.
Result<Rehearsal> RehearseStart(FileSystem& files, Clock& clock, Options options,
                                std::string* problem);

}  // namespace skep::durable

// repair_directory.h: mends a damaged directory, so that a server can start with it.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "durable/persistence.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

// Recovers the data that can be recovered (OpenMode::kRepair), and ends the log. The engines are
// those that the directory names and, where it names none any more, those of `options`. The damage
// is in RecoveryReport::repair; if there was none, this was a start and an end of the store.
// On an error *problem is a line for a person; the files can then be repaired once more.
//   kUnavailable      a process has the directory open
//   kInvalidArgument  the log needs a function that is not registered, or a keyspace that neither
//                     the directory nor `options` has
//   kNotSupported     a newer Skep wrote a file
//   kIo, kOutOfMemory
Result<RecoveryReport> RepairDirectory(FileSystem& files, Clock& clock, Options options,
                                       std::string* problem);

}  // namespace skep::durable

// log.h: where the server says what it does.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "server/options.h"
#include "skep/status.h"

namespace spdlog {
class logger;
}

namespace skep {

// A logger that writes to options.logfile, with the times of `clock`, or to standard output if that
// is empty. Thread-safe. Files and clock must outlive it.
//   kIo  the file cannot be opened
Result<std::shared_ptr<spdlog::logger>> MakeLog(const ServerOptions& options, FileSystem& files,
                                                Clock& clock);

// Applies options.loglevel.
void SetLogLevel(spdlog::logger& log, const ServerOptions& options);

}  // namespace skep

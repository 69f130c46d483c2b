// log.h: the logger of the server.
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

// A logger that writes to options.logfile, with the times of `clock`, or to standard output if
// logfile is empty. Thread-safe. Files and clock must outlive it.
//   kIo  the file cannot be opened
Result<std::shared_ptr<spdlog::logger>> MakeLog(const ServerOptions& options, FileSystem& files,
                                                Clock& clock);

// Opens the file of such a logger anew by its name: it may have been moved away. Does nothing to a
// logger that writes to standard output.
//   kIo  the file cannot be opened; the old one is still written
Status ReopenLog(spdlog::logger& log);

// Applies options.loglevel.
void SetLogLevel(spdlog::logger& log, const ServerOptions& options);

}  // namespace skep

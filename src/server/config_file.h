// config_file.h: options from a TOML file.
//
//   port = 7000
//   bind = ["127.0.0.1", "::1"]     # or "127.0.0.1 ::1"
//   maxmemory = "4gb"               # or a number of bytes
//   protected-mode = true           # or "yes"
//
// The keys are the names of AllOptions(), at the top level.
#pragma once

#include <string>

#include "base/file.h"
#include "server/options.h"

namespace skep {

// Sets what the file sets; other options keep their values. If it fails, `options` is unchanged and
// *error is a line for a person: file, line, what is wrong.
//   kIo, kUnavailable  the file cannot be read
//   kInvalidArgument   it is no TOML, or an option in it is wrong
Status LoadConfig(FileSystem& files, const std::string& path, ServerOptions& options,
                  std::string* error);

}  // namespace skep

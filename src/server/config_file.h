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
#include <string_view>

#include "base/file.h"
#include "server/options.h"

namespace skep {

// Sets the options that the file sets; other options keep their values. If it fails, `options` is
// unchanged and *error is a line for a person: file, line, what is wrong, and, if that can be
// guessed, what was meant: quotes are missing, or the file is one of Redis.
//   kIo, kUnavailable  the file cannot be read
//   kInvalidArgument   the file is not TOML, or an option in it is wrong
Status LoadConfig(FileSystem& files, const std::string& path, ServerOptions& options,
                  std::string* error);

// Returns the file `text` with the values that `options` has for the options that CONFIG SET can
// change. Values that the file sets are replaced in their places; others are added at the end,
// unless they are the default. Comments, order and all other options stay, and so does an option
// that the file sets to the same value in other words ("1gb", 1073741824). LoadConfig of the result
// gives these values.
//   kInvalidArgument  the text is not TOML, or a value cannot be written in TOML (it is not UTF-8)
Result<std::string> RewriteConfig(std::string_view text, const ServerOptions& options);

}  // namespace skep

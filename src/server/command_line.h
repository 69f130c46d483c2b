// command_line.h: skep-server's arguments. Every option of options.h is a --flag; --config names a
// file (config_file.h) whose settings the flags override, wherever they stand. --print-config and
// --convert-config print a file (config_text.h) instead of starting a server.
#pragma once

#include <span>
#include <string>

#include "base/file.h"
#include "server/options.h"

namespace skep {

struct CommandLine {
  static constexpr int kUsageError = 2;

  bool run = false;       // start the server with `options`; otherwise print `text` and exit
  int exit_code = 0;      // 0: `text` is for standard output; else one line for standard error
  std::string text;       // ends with a newline
  ServerOptions options;  // checked: CheckOptions() accepts them
};

// `arguments` are those of main, without the program's name.
CommandLine ParseCommandLine(std::span<const char* const> arguments, FileSystem& files);

}  // namespace skep

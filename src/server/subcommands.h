// subcommands.h: commands whose second word says what they do, as data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/command.h"

namespace skep {

struct Subcommand {
  std::string_view name;  // lower case
  int arity;              // counts both names; negative: at least so many
  std::string_view arguments, summary;
  void (*run)(const ServerCall& call);
};

// What is wrong with the second word, or the number of words, of a command that has subcommands, as
// Redis says it; empty if nothing is.
std::string SubcommandError(const Command& command, std::span<const std::string_view> args);

// Runs the one that call.arg(1) names, or answers HELP. There is such a one: SubcommandError() was
// asked before the command was run or queued.
void RunSubcommand(const ServerCall& call);

}  // namespace skep

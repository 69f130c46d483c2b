// subcommands.h: commands whose second word selects a subcommand, as data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/command.h"

namespace skep {

struct Subcommand {
  std::string_view name;  // lower case
  int arity;              // counts both names; negative: the least number
  std::string_view arguments, summary;
  void (*run)(const ServerCall& call);  // null: the command's own plan and finish do it
  int key = 0;                          // the place of its one key, which it reads; 0: none
};

// What every command that has subcommands answers to, beside those of its list.
inline constexpr Subcommand kHelpSubcommand = {"help", 2, "", "Print this help.", nullptr};

// "config|get".
std::string FullName(const Command& command, std::string_view subcommand);

// The subcommand of that name, in upper or lower case; null if there is none, or if the command has
// no subcommands. HELP is none.
const Subcommand* FindSubcommand(const Command& command, std::string_view name);

// The error about the second word, or the number of words, of a command that has subcommands, as
// Redis says it; empty if there is none.
std::string SubcommandError(const Command& command, std::span<const std::string_view> args);

// Replies with the error for a number of words that the arity of a subcommand does not tell, as
// Redis says it.
void ReplyWrongCount(const ServerCall& call);

// Runs the subcommand that call.arg(1) names, or answers HELP. Requires that SubcommandError()
// found no error.
void RunSubcommand(const ServerCall& call);

}  // namespace skep

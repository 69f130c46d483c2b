// subcommands.h: commands whose second word says what they do, as data.
#pragma once

#include <span>
#include <string_view>

#include "server/command.h"

namespace skep {

struct Subcommand {
  std::string_view name;  // lower case
  int arity;              // counts both names; negative: at least so many
  std::string_view arguments, summary;
  void (*run)(const Call& call);
};

// Runs the one that call.arg(1) names, answers HELP, or says what is wrong as Redis does.
void RunSubcommand(const Call& call, std::span<const Subcommand> subcommands);

}  // namespace skep

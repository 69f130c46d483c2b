// command_categories.h: the categories of Redis's access lists that commands are in, without
// their @: "read", "string", "fast". A command that Redis does not have is in that of its group.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"

namespace skep {

// As in Redis, a command that does nothing without a subcommand is "slow", and no more.
std::vector<std::string_view> CategoriesOf(const Command& command);
std::vector<std::string_view> CategoriesOf(const Command& command, const Subcommand& subcommand);

// All commands, each followed by its subcommands, HELP among them.
struct CommandName {
  std::string name;  // of a subcommand "config|get"
  std::vector<std::string_view> categories;

  // Upper and lower case are the same.
  bool IsOf(std::string_view category) const;
};
std::vector<CommandName> AllCommandNames();

}  // namespace skep

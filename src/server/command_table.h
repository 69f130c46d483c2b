// command_table.h: the rows of the command table. Each group of commands has a file of its own, as
// command_table_string.cc; command_table.cc joins and sorts them, so the order within a file has no
// meaning.
//
// The columns of a row: name, arity, flags, first and last key, step, group, since, arguments,
// summary, plan, finish, alone, no_multi, subcommands, portions (command.h).
#pragma once

#include <span>
#include <string_view>

#include "server/command.h"

namespace skep::command_table {

inline constexpr uint32_t kPointRead = Command::kReadOnly | Command::kFast;
inline constexpr uint32_t kPointWrite = Command::kWrite | Command::kFast;
inline constexpr uint32_t kPointStore = Command::kWrite | Command::kStores | Command::kFast;
inline constexpr uint32_t kLocal = Command::kFast;

// Why a command that is about all databases is not allowed in a transaction.
inline constexpr std::string_view kOneDatabase = "a transaction is about one database";
// The version that added Skep's own commands.
inline constexpr std::string_view kSkep = "0.1.0";

std::span<const Command> BitCommands();
std::span<const Command> KeyCommands();
std::span<const Command> OrderedCommands();
std::span<const Command> ServerCommands();
std::span<const Command> StringCommands();

}  // namespace skep::command_table

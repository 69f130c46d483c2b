// command_tables.h: the tables of the commands about collections and of some others, of which
// command_table.cc makes the one table of all commands. Each is at the end of the file that has its
// commands' functions.
#pragma once

#include <span>

#include "server/command.h"

namespace skep {

std::span<const Command> AloneCommands();           // commands_alone.cc
std::span<const Command> BlockingCommands();        // commands_blocking.cc
std::span<const Command> DebugCommands();           // commands_debug.cc
std::span<const Command> DumpCommands();            // commands_dump.cc
std::span<const Command> GeoCommands();             // commands_geo.cc
std::span<const Command> GeoSearchCommands();       // commands_geo_search.cc
std::span<const Command> HashCommands();            // commands_hash.cc
std::span<const Command> HashExpiryCommands();      // commands_hash_expiry.cc
std::span<const Command> HyperLogLogCommands();     // commands_hyperloglog.cc
std::span<const Command> ListCommands();            // commands_list.cc
std::span<const Command> MessageCommands();         // commands_message.cc
std::span<const Command> ScriptCommands();          // commands_scripts.cc
std::span<const Command> SetCommands();             // commands_set.cc
std::span<const Command> SortCommands();            // commands_sort.cc
std::span<const Command> SortedSetCommands();       // commands_zset.cc
std::span<const Command> SortedSetJoinCommands();   // commands_zset_join.cc
std::span<const Command> SortedSetRangeCommands();  // commands_zset_range.cc

}  // namespace skep

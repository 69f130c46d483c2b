// range_commands.h: what skep-netindex ctl does: sets, shows and changes maps of ranges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ranges/range_map.h"
#include "skep/options.h"

namespace skep {

struct RangeCommandOptions {
  // Of these the servers of ZooKeeper, the map's name and the time-out.
  PoolOptions map;
  bool as_json = false;
};

// LOWER=WHERE, LOWER maybe in hexadecimal (0x...); nothing: it is no such text.
std::optional<ranges::RangeMap::Entry> ReadRange(const std::string& text);

// Each of the others returns an exit status; why it is not 0 is written to standard error.

// Makes the map. The first of `ranges` is where the range from the beginning is, each other one is
// LOWER=WHERE; a LOWER that begins with 0x is in hexadecimal. 1: there is one and it is not to be
// replaced, or ZooKeeper does not answer. 2: these are no ranges.
int SetRanges(const RangeCommandOptions& options, const std::vector<std::string>& ranges,
              bool replaces);
// Moves the keys from `lower` (as above) to the next border to the server at `target`, and waits
// until it serves them, if it does not yet. 1: it, or the server that has them, does not know the
// map, or they are not moved after `wait_ms`; then the move goes on.
int MoveRange(const RangeCommandOptions& options, const std::string& lower,
              const std::string& target, uint32_t wait_ms);
// Ends a move that is still copying. 1: there is none from there on.
int CancelMove(const RangeCommandOptions& options, const std::string& lower);
// Prints the map. 1: there is none, or ZooKeeper does not answer.
int ShowRanges(const RangeCommandOptions& options);

}  // namespace skep

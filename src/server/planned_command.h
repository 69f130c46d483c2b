// planned_command.h: which command has added which requests to a batch.
#pragma once

#include <cstdint>

namespace skep {

struct Command;

// The slots of a batch from this one on, up to those of the next planned command, are a command's.
struct PlannedCommand {
  uint32_t first_slot;
  const Command* command;  // null: a message of the packed protocol
};

}  // namespace skep

// switch_command.h: skep-netindex switch, which has the program of a switch at interfaces.
#pragma once

#include "netindex/switch/switch_host.h"

namespace skep {

// Serves until SIGTERM or SIGINT. Returns the exit status; says on stderr why it is not 0.
int RunSwitch(const netindex::SwitchOptions& options);

}  // namespace skep

// xdp_command.h: skep-netindex xdp, which gives servers a program in a driver's hook.
#pragma once

#include "netindex/xdp/xdp_helper.h"

namespace skep {

// Serves until SIGTERM or SIGINT. Returns the exit status; says on stderr why it is not 0.
int RunXdpHelper(const xdp::HelperOptions& options);

}  // namespace skep

// switch_frame.h: a whole hop of a packet on the host, as the program in the kernel does it
// (switch_packet.h).
#pragma once

#include <string>

#include "netindex/switch/switch_packet.h"

namespace skep::netindex {

// What the switch has done with the frame.
SwitchKind SwitchFrame(const SwitchConfig& config, const SwitchBank& bank, SwitchCounters* counters,
                       std::string* frame);

}  // namespace skep::netindex

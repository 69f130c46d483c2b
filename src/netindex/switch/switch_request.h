// switch_request.h: the messages between a controller and the process that has a switch's program.
//
//   switch      listens on a unix socket (SOCK_SEQPACKET)
//   controller  connects and sends a request, and with it, if it has tables for the switch, the
//               descriptor of a file that holds a SwitchBank
//   switch      copies and installs the tables, sends a reply, and closes the connection
//
// The switch asks of the tables nothing but their size: the kernel has verified that the program
// stays within its memory whatever they hold. Whoever may connect decides where queries go.
#pragma once

#include <cstdint>
#include <type_traits>

#include "netindex/switch/switch_packet.h"

namespace skep::netindex {

inline constexpr uint64_t kSwitchMagic = 0x6863746977733e6b;

struct SwitchRequest {
  uint64_t magic = kSwitchMagic;
  uint32_t layout = SWITCH_LAYOUT;
  uint32_t version = 0;  // of the tables that come along
};

struct SwitchReply {
  uint64_t magic = kSwitchMagic;
  uint32_t error = 0;    // the errno; 0: done
  uint32_t version = 0;  // of the tables that are in use; 0: none
  SwitchCounters counters = {};
};
static_assert(std::is_trivially_copyable_v<SwitchReply>);

}  // namespace skep::netindex

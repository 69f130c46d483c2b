// xdp_offer.h: the one message between the helper, which has the privilege, and a server: what the
// helper has attached, with two descriptors, or why it has not.
//
//   helper  listens on a unix socket (SOCK_SEQPACKET)
//   server  connects, and keeps the connection for as long as it wants the program
//   helper  loads a program with a map of zeros, attaches it, and sends this message with the
//           descriptors of the map and of the program's link; closes its own; waits for the
//           connection's end
//
// Who attaches, who detaches. The link is the server's alone: the kernel detaches the program when
// that descriptor is closed, so at the latest when the server's process ends, however it does, and
// before its parent has waited for it. A process that is waited for therefore leaves no answers.
// The server also closes it once the connection has ended: the helper is gone, which is how an
// operator turns the hook off.
#pragma once

#include <cstdint>
#include <type_traits>

#include "netindex/xdp/xdp_config.h"
#include "netindex/xdp/xdp_map.h"

namespace skep::xdp {

struct XdpOffer {
  char magic[8] = {'s', 'k', 'e', 'p', '-', 'x', 'd', 'p'};
  uint32_t layout = XDP_LAYOUT;
  uint16_t is_native = 0;  // in the driver; else in the system's receive path
  uint16_t zero = 0;
  XdpConfig config = {};
  char interface[16] = {};
  char problem[192] = {};  // why nothing is attached; empty: two descriptors come along
};
static_assert(std::is_trivially_copyable_v<XdpOffer>);

}  // namespace skep::xdp

// xdp_config.h: what the helper tells the program in the driver's hook before it is loaded, and no
// server can change. C, also compiled for BPF.
#pragma once

#include <stdint.h>

#define XDP_ADDRESSES_MAX 8u

struct XdpConfig {
  uint32_t addresses[XDP_ADDRESSES_MAX];  // of the interface, as in a packet; 0: none
  uint16_t port;                          // of the server
  uint16_t unused[3];
};

// icrc.h: the ICRC of a READ request (switch_packet.h), computed whole, and the tables by which a
// switch changes it.
#pragma once

#include <cstdint>
#include <string_view>

#include "netindex/switch/switch_packet.h"

namespace skep::netindex {

// The ICRC of a frame with one READ request, of SWITCH_READ_BYTES at least: bit by bit, as
// InfiniBand's annex on RoCEv2 defines it.
uint32_t IcrcOfRead(std::string_view frame);

// Fills in config->icrc.
void FillIcrcTables(SwitchConfig* config);

}  // namespace skep::netindex

#include "netindex/switch/icrc.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace skep::netindex {
namespace {

// What the ICRC covers: 8 bytes of ones for the header that InfiniBand has in front, and the packet
// from IP's header up to the ICRC.
constexpr size_t kLocalBytes = 8;
constexpr size_t kCovered = kLocalBytes + SWITCH_ICRC - SWITCH_IP;

constexpr size_t CoveredAt(size_t frame_offset) { return frame_offset - SWITCH_IP + kLocalBytes; }

// Offsets in the frame of bytes that count as ones, as they change on the way: the class of
// service, the time to live, both checksums, and the reserved byte of the BTH.
constexpr std::array<size_t, 7> kMasked = {
    SWITCH_IP + 1,    SWITCH_IP + 8,        SWITCH_IP_CHECK,   SWITCH_IP_CHECK + 1,
    SWITCH_UDP_CHECK, SWITCH_UDP_CHECK + 1, SWITCH_PAYLOAD + 4};

// Where the byte of a place lies among the covered ones.
constexpr size_t CoveredOfPlace(size_t place) {
  return place < 4 ? CoveredAt(SWITCH_IP_TO) + place : CoveredAt(SWITCH_VA) + place - 4;
}

}  // namespace

uint32_t IcrcOfRead(std::string_view frame) {
  std::array<uint8_t, kCovered> bytes;
  bytes.fill(0xff);
  std::ranges::copy(frame.substr(SWITCH_IP, SWITCH_ICRC - SWITCH_IP), bytes.begin() + kLocalBytes);
  for (const size_t at : kMasked) bytes[CoveredAt(at)] = 0xff;
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) crc = SwitchCrcByte(crc, byte);
  return ~crc;
}

void FillIcrcTables(SwitchConfig* config) {
  for (size_t place = 0; place < SWITCH_ICRC_PLACES; ++place) {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t crc = SwitchCrcByte(0, static_cast<uint8_t>(value));
      for (size_t at = CoveredOfPlace(place) + 1; at < kCovered; ++at) crc = SwitchCrcByte(crc, 0);
      config->icrc[place][value] = crc;
    }
  }
}

}  // namespace skep::netindex

// switch_packet.h: what a switch does with a packet: finds queries, looks their keys up, writes the
// address of a node into them. C, compiled for BPF and for tests (Fat-B+Tree, III-D and IV-A).
//
// All packets are Ethernet without a VLAN, IPv4 without options and not in fragments, UDP. What is
// not understood passes as it is.
//
// A GET of a server (docs/packed-protocol.md): one message, a batch of one GET with nothing but a
// hint. Numbers of the protocol are little-endian, the bytes of a key are not a number.
//
//   offset size
//       42   24  head: d5 53 4b 50, version 1, why 0, 2 + 8 bytes, instance (8)
//       66   16  header: payload bytes, id, kind 1, flags but 16 and 32, keyspace 0 (2), count 1
//       82    1  0x80: GET with fields
//       83    1  0x10: the field is a hint
//       84    8  hint; 0 from the client
//       92    1  bytes of the key, 1 to 127
//       93       key. Its first 8 bytes are the number that is looked up, the first byte highest,
//                with zeros behind a shorter key
//   UDP's destination port is `port`. Its checksum is mended by difference, unless it is 0: none.
//
// A READ of memory (RoCEv2): UDP port 4791, BTH, RETH, ICRC. Numbers are big-endian.
//
//   offset size
//       42   12  BTH: opcode 0x0c (RC RDMA READ request), flags (1), partition key (2), reserved
//                (1), queue pair (3), flags (1), PSN (3)
//       54    8  va: of a query the key
//       62    4  rkey: of a query 0
//       66    4  length
//       70    4  ICRC, the lowest byte first
//       74   20  the temporary header, between the first and the last hop only; IP's and UDP's
//                length count it, and the ICRC is that of the packet without it:
//                   74  8  key
//                   82  8  address of the node
//                   90  2  server
//                   92  2  0
//   UDP's checksum is set to 0 (none) by the first hop.
//
// Hops. A switch has some of these duties (SwitchConfig::duties), by its place:
//
//   SWITCH_FIRST  A query goes to `service`, the address of all servers together, or to that of a
//                 server. The range of the key tells the server: its address becomes the
//                 destination, or must be it already; else the packet passes as it is. The query's
//                 address is that of the range. A hint of the client is replaced.
//   each          From there the nodes of this switch lead on (SwitchDescend).
//   SWITCH_LAST   Nothing but an address that the end understands leaves the switch: a hint that
//                 still names a node of the switches alone becomes 0. Of a READ, va becomes the
//                 address, rkey that of the server, and the temporary header is taken off.
//
// A switch that is both first and last puts no temporary header in. Answers of servers (from
// `port`) pass as they are; those that say that a hint was stale are counted (SwitchNoteAnswer).
//
// Three steps, as a packet may have to grow or shrink, which is the caller's work:
//   1. SwitchLook   finds out what is to be done, and changes nothing
//   2. the caller makes the packet `grow` bytes longer at its end
//   3. SwitchApply  writes; then the caller makes the packet `shrink` bytes shorter
//
// ICRC. It is a CRC-32 of the packet, in which the fields that change on the way are ones, with
// inverted beginning and end. A CRC is linear: if bytes of the packet change by exclusive or with
// d, the CRC changes by that of d, with neither end inverted and zeros everywhere else. Of d only
// 16 bytes are ever not 0: destination address, va, rkey. So there is a table for each of these 16
// places, of all 256 values (SwitchIcrcTables).
//
// Right by construction: no answer depends on what is written here. A server believes no hint, and
// refuses keys that are not its own if it was started with --ranges; a READ fetches a node, whose
// reader sees by its pivots whether it is the right one.
#pragma once

#include <stdint.h>

#include "netindex/switch/switch_tables.h"

#define SWITCH_FIRST 1u
#define SWITCH_LAST 2u
#define SWITCH_AS_P4 4u  // by stages and halves, as a switch looks

#define SWITCH_GET_BYTES 93u   // of the frame, in front of the key
#define SWITCH_READ_BYTES 74u  // of the frame
#define SWITCH_TEMPORARY_BYTES 20u
#define SWITCH_ROCE_PORT 4791
#define SWITCH_ICRC_PLACES 16u

struct SwitchConfig {
  uint32_t service;  // IPv4, as in a packet; 0: there is none
  uint16_t port;     // of the servers
  uint16_t duties;
  // By place: destination address 0 to 3, va 4 to 11, rkey 12 to 15.
  uint32_t icrc[SWITCH_ICRC_PLACES][256];
};

struct SwitchCounters {
  uint64_t gets;     // understood
  uint64_t hinted;   // GETs that left with another hint than they came with
  uint64_t cleared;  // GETs whose hint was one of the switches alone, at the last hop
  uint64_t answers;  // to GETs
  uint64_t stale;    // answers that say that the hint was stale
  uint64_t reads;    // queries by READ
  uint64_t foreign;  // queries to another server than the range's
  uint64_t unused;
};

enum SwitchKind {
  SWITCH_PASS,    // nothing is to be done
  SWITCH_GET,     // a hint
  SWITCH_INSERT,  // the temporary header
  SWITCH_UPDATE,  // its address
  SWITCH_REMOVE,  // va and rkey, and no temporary header
  SWITCH_DIRECT   // va and rkey; there never was a temporary header
};

struct SwitchPlan {
  uint32_t kind;
  uint32_t server;       // SWITCH_SERVERS_MAX: not known here
  uint32_t destination;  // IPv4, as in a packet
  uint32_t grow, shrink;
  uint32_t unused;
  uint64_t key;
  uint64_t old_address;  // of a GET: the hint that it came with
  uint64_t address;
};

// Reads and writes of packets: a BPF program may read what is not aligned, C may not.
#ifdef __bpf__
#define SWITCH_ACCESS(bits)                                                 \
  SWITCH_INLINE uint##bits##_t SwitchLoad##bits(const uint8_t* from) {      \
    return *(const uint##bits##_t*)from;                                    \
  }                                                                         \
  SWITCH_INLINE void SwitchStore##bits(uint8_t* to, uint##bits##_t value) { \
    *(uint##bits##_t*)to = value;                                           \
  }
#else
#define SWITCH_ACCESS(bits)                                                 \
  SWITCH_INLINE uint##bits##_t SwitchLoad##bits(const uint8_t* from) {      \
    uint##bits##_t value;                                                   \
    __builtin_memcpy(&value, from, sizeof(value));                          \
    return value;                                                           \
  }                                                                         \
  SWITCH_INLINE void SwitchStore##bits(uint8_t* to, uint##bits##_t value) { \
    __builtin_memcpy(to, &value, sizeof(value));                            \
  }
#endif
SWITCH_ACCESS(16)
SWITCH_ACCESS(32)
SWITCH_ACCESS(64)
#undef SWITCH_ACCESS
#define SWITCH_BE16(value) __builtin_bswap16(value)
#define SWITCH_BE64(value) __builtin_bswap64(value)

// Offsets in a frame.
#define SWITCH_ETHERTYPE 12
#define SWITCH_IP 14
#define SWITCH_IP_BYTES (SWITCH_IP + 2)
#define SWITCH_IP_FRAGMENT (SWITCH_IP + 6)
#define SWITCH_IP_TTL (SWITCH_IP + 8)
#define SWITCH_IP_PROTOCOL (SWITCH_IP + 9)
#define SWITCH_IP_CHECK (SWITCH_IP + 10)
#define SWITCH_IP_FROM (SWITCH_IP + 12)
#define SWITCH_IP_TO (SWITCH_IP + 16)
#define SWITCH_UDP_FROM 34
#define SWITCH_UDP_TO 36
#define SWITCH_UDP_BYTES 38
#define SWITCH_UDP_CHECK 40
#define SWITCH_PAYLOAD 42
#define SWITCH_HINT 84
#define SWITCH_VA 54
#define SWITCH_RKEY 62
#define SWITCH_ICRC 70
#define SWITCH_TEMPORARY 74

// Whether the frame is IPv4 and UDP as the head of this file says, with so many bytes at least.
SWITCH_INLINE int SwitchIsUdp(const uint8_t* frame, const uint8_t* end) {
  if (frame + SWITCH_READ_BYTES > end) return 0;
  return SwitchLoad16(frame + SWITCH_ETHERTYPE) == SWITCH_BE16(0x0800) &&
         frame[SWITCH_IP] == 0x45 && frame[SWITCH_IP_PROTOCOL] == 17 &&
         (SwitchLoad16(frame + SWITCH_IP_FRAGMENT) & SWITCH_BE16(0x3fff)) == 0 &&
         SWITCH_BE16(SwitchLoad16(frame + SWITCH_IP_BYTES)) ==
             20 + SWITCH_BE16(SwitchLoad16(frame + SWITCH_UDP_BYTES));
}

// Whether it is a GET; `frame` has SWITCH_GET_BYTES.
SWITCH_INLINE int SwitchIsGet(const uint8_t* frame) {
  const uint32_t key_bytes = frame[92];
  return SwitchLoad32(frame + 42) == 0x504b53d5u && SwitchLoad16(frame + 46) == 1 &&
         SwitchLoad32(frame + 66) == 11 + key_bytes && frame[74] == 1 && (frame[75] & 0x30) == 0 &&
         SwitchLoad16(frame + 76) == 0 && SwitchLoad32(frame + 78) == 1 &&
         SwitchLoad16(frame + 82) == 0x1080 && key_bytes >= 1 && key_bytes <= 127 &&
         SWITCH_BE16(SwitchLoad16(frame + SWITCH_UDP_BYTES)) == 59 + key_bytes;
}

// The number of the key of a GET.
SWITCH_INLINE uint64_t SwitchKeyOfGet(const uint8_t* frame, const uint8_t* end) {
  const uint32_t bytes = frame[92];
  if (bytes >= 8 && frame + SWITCH_GET_BYTES + 8 <= end) {
    return SWITCH_BE64(SwitchLoad64(frame + SWITCH_GET_BYTES));
  }
  uint64_t key = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint8_t* const at = frame + SWITCH_GET_BYTES + i;
    key <<= 8;
    if (i < bytes && at + 1 <= end) key |= *at;
  }
  return key;
}

// The first hop: finds server and address of the key. 0: the packet is for another server.
SWITCH_INLINE int SwitchLookUp(uint32_t duties, uint32_t service, const struct SwitchBank* bank,
                               struct SwitchPlan* plan) {
  const uint32_t range = (duties & SWITCH_AS_P4) ? SwitchRangeByStages(&bank->root, plan->key)
                                                 : SwitchRangeOf(&bank->root, plan->key);
  plan->server = bank->root.server[range];
  const uint32_t at = bank->servers[plan->server & (SWITCH_SERVERS_MAX - 1)].address;
  if (at == 0 || (plan->destination != at && plan->destination != service)) return 0;
  plan->destination = at;
  plan->address = bank->root.address[range];
  return 1;
}

SWITCH_INLINE void SwitchLookAtGet(const uint8_t* frame, const uint8_t* end, uint32_t duties,
                                   uint32_t service, const struct SwitchBank* bank,
                                   struct SwitchCounters* counters, struct SwitchPlan* plan) {
  counters->gets += 1;
  plan->key = SwitchKeyOfGet(frame, end);
  plan->old_address = plan->address = SwitchLoad64(frame + SWITCH_HINT);
  plan->server = SWITCH_SERVERS_MAX;
  if (duties & SWITCH_FIRST && !SwitchLookUp(duties, service, bank, plan)) {
    counters->foreign += 1;
    return;
  }
  plan->kind = SWITCH_GET;
  // A hint of the server's own, or none, leads nowhere in the switches.
  if (plan->address >> 48 == 0 && plan->address != 0) {
    plan->address = SwitchDescend(bank, duties & SWITCH_AS_P4, plan->key, plan->address);
    if (duties & SWITCH_LAST && plan->address >> 48 == 0) {
      counters->cleared += 1;
      plan->address = 0;
    }
  }
  counters->hinted += plan->address != plan->old_address;
}

SWITCH_INLINE void SwitchLookAtRead(const uint8_t* frame, const uint8_t* end, uint32_t duties,
                                    uint32_t service, const struct SwitchBank* bank,
                                    struct SwitchCounters* counters, struct SwitchPlan* plan) {
  const uint32_t udp_bytes = SWITCH_BE16(SwitchLoad16(frame + SWITCH_UDP_BYTES));
  const uint32_t is_bare = udp_bytes == SWITCH_READ_BYTES - SWITCH_UDP_FROM;
  if (frame[SWITCH_PAYLOAD] != 0x0c || SwitchLoad32(frame + SWITCH_RKEY) != 0) return;
  if (is_bare) {
    if ((duties & SWITCH_FIRST) == 0) return;
    counters->reads += 1;
    plan->key = SWITCH_BE64(SwitchLoad64(frame + SWITCH_VA));
    if (!SwitchLookUp(duties, service, bank, plan)) {
      counters->foreign += 1;
      return;
    }
  } else {
    if (udp_bytes != SWITCH_READ_BYTES - SWITCH_UDP_FROM + SWITCH_TEMPORARY_BYTES ||
        frame + SWITCH_READ_BYTES + SWITCH_TEMPORARY_BYTES > end) {
      return;
    }
    counters->reads += 1;
    plan->key = SWITCH_BE64(SwitchLoad64(frame + SWITCH_TEMPORARY));
    plan->address = SWITCH_BE64(SwitchLoad64(frame + SWITCH_TEMPORARY + 8));
    plan->server = SWITCH_BE16(SwitchLoad16(frame + SWITCH_TEMPORARY + 16));
  }
  plan->address = SwitchDescend(bank, duties & SWITCH_AS_P4, plan->key, plan->address);
  if (duties & SWITCH_LAST) {
    plan->kind = is_bare ? SWITCH_DIRECT : SWITCH_REMOVE;
    plan->shrink = is_bare ? 0 : SWITCH_TEMPORARY_BYTES;
  } else {
    plan->kind = is_bare ? SWITCH_INSERT : SWITCH_UPDATE;
    plan->grow = is_bare ? SWITCH_TEMPORARY_BYTES : 0;
  }
}

// Counts an answer to a GET.
SWITCH_INLINE void SwitchNoteAnswer(const uint8_t* frame, struct SwitchCounters* counters) {
  const uint32_t is_answer = SwitchLoad32(frame + 42) == 0x504b53d5u &&
                             SwitchLoad16(frame + 46) == 1 && frame[74] == 1 &&
                             (frame[75] & 2) == 0 && SwitchLoad32(frame + 78) == 1;
  if (!is_answer) return;
  counters->answers += 1;
  counters->stale += (frame[82] & 0x80) != 0 && (frame[83] & 0x20) != 0;
}

// Step 1. `plan` is zeros before.
SWITCH_INLINE void SwitchLook(const uint8_t* frame, const uint8_t* end,
                              const struct SwitchConfig* config, const struct SwitchBank* bank,
                              struct SwitchCounters* counters, struct SwitchPlan* plan) {
  if (!SwitchIsUdp(frame, end)) return;
  const uint32_t duties = config->duties;
  plan->destination = SwitchLoad32(frame + SWITCH_IP_TO);
  if (SwitchLoad16(frame + SWITCH_UDP_TO) == SWITCH_BE16(SWITCH_ROCE_PORT)) {
    SwitchLookAtRead(frame, end, duties, config->service, bank, counters, plan);
    return;
  }
  const uint16_t port = SWITCH_BE16(config->port);
  if (frame + SWITCH_GET_BYTES > end) return;
  if (SwitchLoad16(frame + SWITCH_UDP_TO) == port && SwitchIsGet(frame)) {
    SwitchLookAtGet(frame, end, duties, config->service, bank, counters, plan);
  } else if (SwitchLoad16(frame + SWITCH_UDP_FROM) == port) {
    SwitchNoteAnswer(frame, counters);
  }
}

// A checksum of ones' complement after words of the packet with the sum `from` have become words
// with the sum `to` (RFC 1624).
SWITCH_INLINE uint16_t SwitchMended(uint16_t check, uint64_t from, uint64_t to) {
  // ~from, word by word, is 0xffff times the number of words less `from`; 16 words are enough.
  uint64_t sum = (uint64_t)(uint16_t)~check + (16 * 0xffff - from) + to;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)~sum;
}
SWITCH_INLINE uint64_t SwitchSum64(uint64_t words) {
  return (words & 0xffff) + (words >> 16 & 0xffff) + (words >> 32 & 0xffff) + (words >> 48);
}

// The difference of the ICRC if these bytes, from that place on, change by exclusive or.
SWITCH_INLINE uint32_t SwitchIcrcDifference(const struct SwitchConfig* config, uint32_t place,
                                            uint64_t differ, uint32_t bytes) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    found ^= config->icrc[place + i][differ & 0xff];
    differ >>= 8;
  }
  return found;
}

SWITCH_INLINE void SwitchSetDestination(uint8_t* frame, const struct SwitchConfig* config,
                                        uint32_t to, int has_icrc) {
  const uint32_t from = SwitchLoad32(frame + SWITCH_IP_TO);
  if (from == to) return;
  SwitchStore32(frame + SWITCH_IP_TO, to);
  const uint16_t ip_check = SwitchLoad16(frame + SWITCH_IP_CHECK);
  SwitchStore16(frame + SWITCH_IP_CHECK,
                SwitchMended(ip_check, SwitchSum64(from), SwitchSum64(to)));
  if (has_icrc) {
    const uint32_t icrc = SwitchLoad32(frame + SWITCH_ICRC);
    SwitchStore32(frame + SWITCH_ICRC, icrc ^ SwitchIcrcDifference(config, 0, from ^ to, 4));
  }
}

SWITCH_INLINE void SwitchSetLengths(uint8_t* frame, uint32_t udp_bytes) {
  const uint16_t from = SwitchLoad16(frame + SWITCH_IP_BYTES);
  const uint16_t to = SWITCH_BE16((uint16_t)(20 + udp_bytes));
  SwitchStore16(frame + SWITCH_IP_BYTES, to);
  SwitchStore16(frame + SWITCH_UDP_BYTES, SWITCH_BE16((uint16_t)udp_bytes));
  const uint16_t check = SwitchLoad16(frame + SWITCH_IP_CHECK);
  SwitchStore16(frame + SWITCH_IP_CHECK, SwitchMended(check, from, to));
}

SWITCH_INLINE void SwitchApplyGet(uint8_t* frame, const struct SwitchConfig* config,
                                  const struct SwitchPlan* plan) {
  const uint32_t from = SwitchLoad32(frame + SWITCH_IP_TO);
  const uint16_t check = SwitchLoad16(frame + SWITCH_UDP_CHECK);
  SwitchSetDestination(frame, config, plan->destination, 0);
  SwitchStore64(frame + SWITCH_HINT, plan->address);
  if (check == 0) return;
  const uint16_t mended = SwitchMended(check, SwitchSum64(from) + SwitchSum64(plan->old_address),
                                       SwitchSum64(plan->destination) + SwitchSum64(plan->address));
  // 0 would mean that there is none; both are the same number in ones' complement.
  SwitchStore16(frame + SWITCH_UDP_CHECK, mended == 0 ? 0xffff : mended);
}

SWITCH_INLINE void SwitchSetMemory(uint8_t* frame, const struct SwitchConfig* config,
                                   const struct SwitchBank* bank, const struct SwitchPlan* plan) {
  const uint64_t va = SWITCH_BE64(plan->address);
  const uint32_t rkey = bank->servers[plan->server & (SWITCH_SERVERS_MAX - 1)].rkey;
  const uint64_t va_differ = va ^ SwitchLoad64(frame + SWITCH_VA);
  const uint32_t icrc = SwitchLoad32(frame + SWITCH_ICRC);
  SwitchStore64(frame + SWITCH_VA, va);
  SwitchStore32(frame + SWITCH_RKEY, rkey);
  SwitchStore32(frame + SWITCH_ICRC, icrc ^ SwitchIcrcDifference(config, 4, va_differ, 8) ^
                                         SwitchIcrcDifference(config, 12, rkey, 4));
}

SWITCH_INLINE void SwitchApplyRead(uint8_t* frame, const uint8_t* end,
                                   const struct SwitchConfig* config, const struct SwitchBank* bank,
                                   const struct SwitchPlan* plan) {
  const uint32_t bare = SWITCH_READ_BYTES - SWITCH_UDP_FROM;
  SwitchStore16(frame + SWITCH_UDP_CHECK, 0);
  SwitchSetDestination(frame, config, plan->destination, 1);
  if (plan->kind == SWITCH_DIRECT || plan->kind == SWITCH_REMOVE) {
    SwitchSetMemory(frame, config, bank, plan);
    if (plan->kind == SWITCH_REMOVE) SwitchSetLengths(frame, bare);
    return;
  }
  if (frame + SWITCH_TEMPORARY + SWITCH_TEMPORARY_BYTES > end) return;
  SwitchStore64(frame + SWITCH_TEMPORARY, SWITCH_BE64(plan->key));
  SwitchStore64(frame + SWITCH_TEMPORARY + 8, SWITCH_BE64(plan->address));
  SwitchStore16(frame + SWITCH_TEMPORARY + 16, SWITCH_BE16((uint16_t)plan->server));
  SwitchStore16(frame + SWITCH_TEMPORARY + 18, 0);
  if (plan->kind == SWITCH_INSERT) SwitchSetLengths(frame, bare + SWITCH_TEMPORARY_BYTES);
}

// Step 3, of the same frame, which is as long as step 2 has made it.
SWITCH_INLINE void SwitchApply(uint8_t* frame, const uint8_t* end,
                               const struct SwitchConfig* config, const struct SwitchBank* bank,
                               const struct SwitchPlan* plan) {
  if (plan->kind == SWITCH_PASS) return;
  if (plan->kind == SWITCH_GET) {
    if (frame + SWITCH_GET_BYTES <= end) SwitchApplyGet(frame, config, plan);
  } else if (frame + SWITCH_READ_BYTES <= end) {
    SwitchApplyRead(frame, end, config, bank, plan);
  }
}

// CRC-32, bit by bit, of one more byte.
SWITCH_INLINE uint32_t SwitchCrcByte(uint32_t crc, uint8_t byte) {
  crc ^= byte;
  for (uint32_t i = 0; i < 8; ++i) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
  return crc;
}

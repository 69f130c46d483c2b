// switch_world.h: random trees, banks of them, and packets, for tests of switches.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "netindex/switch/bank_writer.h"
#include "netindex/switch/icrc.h"
#include "netindex/switch/index_tree.h"
#include "netindex/switch/switch_packet.h"

namespace skep::netindex {

inline constexpr uint16_t kPort = 6379;
inline const uint32_t kService = htonl(0x0a4d6401), kClient = htonl(0x0a4d0002);
inline SwitchServer ServerAt(uint32_t number) {
  return {.address = htonl(0x0a4d0a01 + number), .rkey = htonl(0x1000 + number)};
}

// A number that is often near a border of bytes or halves, 0, or the greatest.
inline uint64_t RandomKey(std::mt19937_64& rng) {
  const uint64_t any = rng() >> rng() % 64;
  switch (rng() % 4) {
    case 0:
      return any;
    case 1:
      return any << rng() % 64;
    case 2:
      return (any << 32) - rng() % 3;
    default:
      return ~(any & 3);
  }
}

// Leaves of some servers. The address of a leaf is a hint: its upper 16 bits are not 0.
inline std::vector<ServerLeaves> RandomLeaves(std::mt19937_64& rng, size_t servers, size_t leaves) {
  std::vector<ServerLeaves> all(servers);
  for (size_t s = 0; s < servers; ++s) {
    all[s].first = (~uint64_t{0} / servers) * s;
    std::vector<uint64_t> firsts = {all[s].first};
    for (size_t i = 1; i < leaves; ++i) firsts.push_back(RandomKey(rng) / servers + all[s].first);
    std::ranges::sort(firsts);
    for (const uint64_t first : firsts) {
      const uint64_t address = (1 + rng() % 9) << 48 | (s << 32) | (all[s].leaves.size() + 1);
      all[s].leaves.push_back({.first = first, .address = address, .hits = rng() % 100});
    }
  }
  return all;
}

// Keys at all pivots of the tree and beside them, and others.
inline std::vector<uint64_t> KeysFor(const IndexTree& tree, std::mt19937_64& rng) {
  std::vector<uint64_t> keys = {0, 1, ~uint64_t{0}};
  for (const IndexNode& node : tree.nodes) {
    keys.insert(keys.end(), {node.pivot - 1, node.pivot, node.pivot + 1});
  }
  for (int i = 0; i < 200; ++i) keys.push_back(RandomKey(rng));
  return keys;
}

// A switch with a fat root and the layers below it, or a part of both.
struct TestSwitch {
  std::unique_ptr<SwitchConfig> config = std::make_unique<SwitchConfig>();
  std::unique_ptr<SwitchBank> bank = std::make_unique<SwitchBank>();
  SwitchCounters counters = {};

  explicit TestSwitch(uint16_t duties) {
    config->service = kService;
    config->port = kPort;
    config->duties = duties;
    FillIcrcTables(config.get());
  }
};

inline void SetServers(size_t servers, SwitchBank* bank) {
  for (uint32_t s = 0; s < servers; ++s) bank->servers[s] = ServerAt(s);
}

inline uint16_t FoldedSum(std::string_view bytes, uint64_t sum = 0) {
  for (size_t at = 0; at < bytes.size(); at += 2) {
    uint16_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(2, bytes.size() - at));
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}
template <class T>
void Put(std::string& to, size_t at, T value) {
  std::memcpy(to.data() + at, &value, sizeof(value));
}
template <class T>
T Get(std::string_view from, size_t at) {
  T value;
  std::memcpy(&value, from.data() + at, sizeof(value));
  return value;
}

// 0xffff if the checksum is right; UDP's only where the frame has one.
inline uint16_t IpSum(std::string_view frame) { return FoldedSum(frame.substr(SWITCH_IP, 20)); }
inline uint16_t UdpSum(std::string_view frame) {
  const uint64_t pseudo = FoldedSum(frame.substr(SWITCH_IP + 12, 8)) + htons(17) +
                          Get<uint16_t>(frame, SWITCH_UDP_BYTES);
  return FoldedSum(frame.substr(SWITCH_UDP_FROM, ntohs(Get<uint16_t>(frame, SWITCH_UDP_BYTES))),
                   pseudo);
}

// A frame of UDP from one address to another, with both checksums.
inline std::string UdpFrame(uint32_t from, uint32_t to, uint16_t from_port, uint16_t to_port,
                            std::string_view payload) {
  std::string frame(SWITCH_PAYLOAD, '\0');
  frame.replace(0, 12, "\x02server\x02clie", 12);
  Put(frame, SWITCH_ETHERTYPE, htons(0x0800));
  Put<uint8_t>(frame, SWITCH_IP, 0x45);
  Put(frame, SWITCH_IP_BYTES, htons(static_cast<uint16_t>(28 + payload.size())));
  Put<uint8_t>(frame, SWITCH_IP + 8, 64);
  Put<uint8_t>(frame, SWITCH_IP_PROTOCOL, 17);
  Put(frame, SWITCH_IP + 12, from);
  Put(frame, SWITCH_IP_TO, to);
  Put(frame, SWITCH_UDP_FROM, htons(from_port));
  Put(frame, SWITCH_UDP_TO, htons(to_port));
  Put(frame, SWITCH_UDP_BYTES, htons(static_cast<uint16_t>(8 + payload.size())));
  frame.append(payload);
  Put(frame, SWITCH_IP_CHECK, static_cast<uint16_t>(~IpSum(frame)));
  const auto check = static_cast<uint16_t>(~UdpSum(frame));
  Put<uint16_t>(frame, SWITCH_UDP_CHECK, check == 0 ? 0xffff : check);
  return frame;
}

inline std::string KeyBytes(uint64_t key, size_t bytes = 8) {
  std::string text(8, '\0');
  Put(text, 0, __builtin_bswap64(key));
  text.resize(bytes, 'x');
  return text;
}

// A GET with room for a hint, as docs/packed-protocol.md has it.
inline std::string GetPayload(std::string_view key, uint64_t hint = 0) {
  std::string payload("\xd5SKP\x01\0\0\0clientid\0\0\0\0\0\0\0\0", 24);
  payload.resize(40);
  Put<uint32_t>(payload, 24, static_cast<uint32_t>(11 + key.size()));
  Put<uint32_t>(payload, 28, 7);
  Put<uint8_t>(payload, 32, 1);
  Put<uint32_t>(payload, 36, 1);
  payload.append("\x80\x10").append(8, '\0').push_back(static_cast<char>(key.size()));
  Put(payload, 42, hint);
  return payload.append(key);
}
inline std::string GetFrame(std::string_view key, uint64_t hint = 0, uint32_t to = kService) {
  return UdpFrame(kClient, to, 5555, kPort, GetPayload(key, hint));
}
inline uint64_t HintOf(std::string_view frame) { return Get<uint64_t>(frame, SWITCH_HINT); }

// A READ request, without a checksum of UDP, with its ICRC.
inline std::string ReadFrame(uint64_t va, uint32_t rkey = 0, uint32_t to = kService) {
  std::string payload("\x0c\x40\xff\xff\0\0\0\x11\x80\0\x12\x34", 12);
  payload.resize(32);
  Put(payload, 12, __builtin_bswap64(va));
  Put(payload, 20, rkey);
  Put(payload, 24, htonl(256));
  std::string frame = UdpFrame(kClient, to, 49152, SWITCH_ROCE_PORT, payload);
  Put<uint16_t>(frame, SWITCH_UDP_CHECK, 0);
  Put(frame, SWITCH_ICRC, IcrcOfRead(frame));
  return frame;
}

}  // namespace skep::netindex

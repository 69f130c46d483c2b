// loaded_hook.h: the program itself, loaded into the kernel and run on frames from memory
// (BPF_PROG_TEST_RUN), without an interface. Needs root.
#pragma once

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "netindex/xdp/hot_map.h"
#include "netindex/xdp/xdp_answer.h"
#include "netindex/xdp/xdp_hook.h"

namespace skep::xdp {

inline constexpr uint64_t kInstance = 0x1122334455667788;
inline constexpr uint16_t kPort = 6379;
inline const uint32_t kServer = htonl(0x0a000001), kClient = htonl(0x0a000002);

struct FrameHead {
  ethhdr ethernet;
  iphdr ip;
  udphdr udp;
} __attribute__((packed));

inline std::string_view BytesOf(const auto& fixed) {
  return {reinterpret_cast<const char*>(&fixed), sizeof(fixed)};
}

// The ones' complement sum of bytes, whose number may be odd.
inline uint16_t SumOf(std::string_view bytes, uint64_t sum = 0) {
  for (size_t at = 0; at < bytes.size(); at += 2) {
    uint16_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(2, bytes.size() - at));
    sum += word;
  }
  return XdpFold(sum);
}
inline uint64_t PseudoSumOf(const FrameHead& head) {
  return uint64_t{head.ip.saddr} + head.ip.daddr + htons(IPPROTO_UDP) + head.udp.len;
}
inline FrameHead HeadOf(std::string_view frame) {
  FrameHead head;
  std::memcpy(&head, frame.data(), sizeof(head));
  return head;
}
// 0xffff if IP's checksum is right; the same of UDP's.
inline uint16_t IpSumOf(std::string_view frame) {
  return SumOf(frame.substr(sizeof(ethhdr), sizeof(iphdr)));
}
inline uint16_t UdpSumOf(std::string_view frame) {
  return SumOf(frame.substr(sizeof(ethhdr) + sizeof(iphdr)), PseudoSumOf(HeadOf(frame)));
}

// A GET of one key, as docs/packed-protocol.md has it.
inline std::string Question(std::string_view key) {
  XdpFixed fixed{.magic = XDP_MAGIC, .version = 1, .client = 99, .id = 7, .kind = 1, .count = 1};
  fixed.payload_bytes = static_cast<uint32_t>(2 + key.size());
  fixed.bytes = static_cast<uint8_t>(key.size());
  return std::string(BytesOf(fixed).substr(0, XDP_FIXED_BYTES)).append(key);
}

// A frame with the datagram, from the client to the server.
inline std::string FrameOf(std::string_view datagram) {
  FrameHead head{};
  std::memcpy(head.ethernet.h_dest, "\x02server", ETH_ALEN);
  std::memcpy(head.ethernet.h_source, "\x02client", ETH_ALEN);
  head.ethernet.h_proto = htons(ETH_P_IP);
  head.ip.version = 4;
  head.ip.ihl = 5;
  head.ip.ttl = 17;
  head.ip.protocol = IPPROTO_UDP;
  head.ip.saddr = kClient;
  head.ip.daddr = kServer;
  head.udp.source = htons(5555);
  head.udp.dest = htons(kPort);
  head.udp.len = htons(static_cast<uint16_t>(sizeof(udphdr) + datagram.size()));
  head.ip.tot_len = htons(static_cast<uint16_t>(sizeof(iphdr) + sizeof(udphdr) + datagram.size()));
  std::string frame = std::string(BytesOf(head)).append(datagram);
  head.ip.check = static_cast<uint16_t>(~IpSumOf(frame));
  head.udp.check = static_cast<uint16_t>(~UdpSumOf(frame));
  return frame.replace(0, sizeof(head), BytesOf(head));
}

class LoadedHook {
 public:
  struct Result {
    uint32_t verdict;
    std::string frame;
    uint32_t ns;  // for one run
  };

  // Why it could not be loaded; empty: it is.
  std::string Load() {
    XdpConfig config{};
    config.addresses[0] = htonl(0x0a0000ff);
    config.addresses[1] = kServer;
    config.port = kPort;
    std::string problem;
    auto loaded = XdpHook::Load(config, &problem);
    if (!loaded) return problem;
    hook_.emplace(std::move(*loaded));
    void* const memory =
        mmap(nullptr, sizeof(XdpMap), PROT_READ | PROT_WRITE, MAP_SHARED, hook_->map_fd(), 0);
    if (memory == MAP_FAILED) return "mmap";
    memory_ = static_cast<XdpMap*>(memory);
    map_.emplace(*memory_, kInstance, 42);
    return "";
  }
  ~LoadedHook() {
    if (memory_ != nullptr) munmap(memory_, sizeof(XdpMap));
  }

  HotMap& map() { return *map_; }
  const XdpHook& hook() const { return *hook_; }
  // False: there is no room in the key's set.
  bool Fill(std::string_view key, std::string_view value) {
    const auto claim = map_->BeginFill(*KeyOf(0, key));
    return claim && map_->FinishFill(*claim, value);
  }
  Result Run(const std::string& frame, int repeat = 1) {
    std::string out(4096, '\0');
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.data(), .data_out = out.data(),
                .data_size_in = static_cast<uint32_t>(frame.size()),
                .data_size_out = static_cast<uint32_t>(out.size()), .repeat = repeat);
    if (bpf_prog_test_run_opts(hook_->program_fd(), &options) != 0) return {XDP_ABORTED, "", 0};
    out.resize(options.data_size_out);
    return {options.retval, out, options.duration};
  }

 private:
  std::optional<XdpHook> hook_;
  XdpMap* memory_ = nullptr;
  std::optional<HotMap> map_;
};

}  // namespace skep::xdp

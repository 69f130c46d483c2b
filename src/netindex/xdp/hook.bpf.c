// hook.bpf.c: the program in the driver's hook: answers datagram GETs of hot keys (xdp_map.h says
// why it may), passes everything else on to the system.
//
// Answered is what xdp_answer.h understands, in an Ethernet frame without a VLAN, IPv4 without
// options and not in fragments, to an address and the port that `config` has, whose UDP checksum is
// right, absent, or left to the device by a sender on this machine.
// clang-format off: the helpers need the types of the first one.
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "netindex/xdp/xdp_answer.h"
#include "netindex/xdp/xdp_config.h"

#define XDP_FRAME_HEAD 42u   // Ethernet, IP and UDP
#define XDP_FRAGMENT 0x3fff  // more fragments, or an offset

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, XDP_ELEMENTS);
  __type(key, uint32_t);
  __type(value, struct XdpSet);
} xdp_map SEC(".maps");

volatile const struct XdpConfig config;

struct Frame {
  struct ethhdr ethernet;
  struct iphdr ip;
  struct udphdr udp;
} __attribute__((packed));

static void* Element(uint32_t index) { return bpf_map_lookup_elem(&xdp_map, &index); }

static int IsForUs(const struct Frame* frame, const struct XdpHeader* header) {
  const int is_multicast = frame->ethernet.h_dest[0] & 1;
  if (is_multicast || frame->ethernet.h_proto != bpf_htons(ETH_P_IP) || frame->ip.version != 4 ||
      frame->ip.ihl != 5 || frame->ip.protocol != IPPROTO_UDP ||
      (frame->ip.frag_off & bpf_htons(XDP_FRAGMENT)) != 0 ||
      frame->udp.dest != bpf_htons(config.port)) {
    return 0;
  }
  for (uint32_t i = 0; i < XDP_ADDRESSES_MAX; ++i) {
    if (frame->ip.daddr == config.addresses[i] && frame->ip.daddr != 0) {
      return (header->served >> i & 1) != 0;
    }
  }
  return 0;
}

// The sum of the pseudo header that UDP's checksum covers. `bytes` is in the network's order.
static uint64_t PseudoSum(const struct Frame* frame, uint16_t bytes) {
  return (uint64_t)frame->ip.saddr + frame->ip.daddr + bpf_htons(IPPROTO_UDP) + bytes;
}

static int ChecksumIsRight(const struct Frame* frame, const struct XdpFixed* fixed,
                           const struct XdpKey* key) {
  const uint64_t pseudo = PseudoSum(frame, frame->udp.len);
  // A sender on this machine leaves the rest to the device.
  if (frame->udp.check == 0 || frame->udp.check == XdpFold(pseudo)) return 1;
  const uint64_t sum = pseudo + frame->udp.source + frame->udp.dest + frame->udp.len +
                       frame->udp.check + XdpSum((const uint64_t*)fixed, 6) +
                       XdpSum(key->words, XDP_KEY_WORDS);
  return XdpFold(sum) == 0xffff;
}

// Turns the frame of the question around. Its addresses are those of the answer afterwards.
static void Reply(struct Frame* frame, const struct XdpFixed* answer, const uint64_t* value) {
  unsigned char mac[ETH_ALEN];
  __builtin_memcpy(mac, frame->ethernet.h_dest, ETH_ALEN);
  __builtin_memcpy(frame->ethernet.h_dest, frame->ethernet.h_source, ETH_ALEN);
  __builtin_memcpy(frame->ethernet.h_source, mac, ETH_ALEN);
  const uint32_t address = frame->ip.daddr;
  frame->ip.daddr = frame->ip.saddr;
  frame->ip.saddr = address;
  const uint16_t port = frame->udp.dest;
  frame->udp.dest = frame->udp.source;
  frame->udp.source = port;

  const uint16_t udp_bytes = sizeof(struct udphdr) + XDP_FIXED_BYTES + answer->bytes;
  frame->udp.len = bpf_htons(udp_bytes);
  frame->udp.check = 0;
  frame->ip.tos = 0;
  frame->ip.tot_len = bpf_htons(sizeof(struct iphdr) + udp_bytes);
  frame->ip.id = 0;
  frame->ip.frag_off = bpf_htons(0x4000);  // not to be cut into fragments
  frame->ip.ttl = 64;
  frame->ip.check = 0;
  uint64_t sum = (uint64_t)frame->ip.saddr + frame->ip.daddr;
  sum += bpf_htons(0x4500) + frame->ip.tot_len + frame->ip.frag_off;
  sum += bpf_htons(64 << 8 | IPPROTO_UDP);
  frame->ip.check = ~XdpFold(sum);

  sum = PseudoSum(frame, frame->udp.len) + frame->udp.source + frame->udp.dest + frame->udp.len;
  sum += XdpSum((const uint64_t*)answer, 6) + XdpSum(value, XDP_VALUE_WORDS);
  const uint16_t check = ~XdpFold(sum);
  frame->udp.check = check == 0 ? 0xffff : check;
}

static struct Frame* FrameOf(const struct xdp_md* ctx) {
  void* const data = (void*)(long)ctx->data;
  void* const end = (void*)(long)ctx->data_end;
  return data + sizeof(struct Frame) + XDP_FIXED_BYTES > end ? 0 : data;
}

// Reads the question; whether it is one that is answered here.
static int TakeQuestion(struct xdp_md* ctx, const struct XdpHeader* header, struct XdpFixed* fixed,
                        struct XdpKey* key) {
  const struct Frame* const frame = FrameOf(ctx);
  if (!frame || !IsForUs(frame, header)) return 0;
  const uint32_t udp_bytes = bpf_ntohs(frame->udp.len);
  if (bpf_ntohs(frame->ip.tot_len) != sizeof(struct iphdr) + udp_bytes) return 0;
  if (bpf_xdp_load_bytes(ctx, XDP_FRAME_HEAD, fixed, XDP_FIXED_BYTES) != 0) return 0;
  if (!XdpUnderstands(fixed, udp_bytes - sizeof(struct udphdr), header->instance)) return 0;
  // From 1 to XDP_KEY_BYTES_MAX, in a form that the verifier sees and the compiler leaves.
  uint32_t bytes = fixed->bytes - 1;
  barrier_var(bytes);
  bytes = (bytes & (XDP_KEY_BYTES_MAX - 1)) + 1;
  if (bpf_xdp_load_bytes(ctx, XDP_FRAME_HEAD + XDP_FIXED_BYTES, key->words, bytes) != 0) return 0;
  key->bytes = bytes;
  key->keyspace = fixed->keyspace;
  return ChecksumIsRight(frame, fixed, key);
}

static int SendAnswer(struct xdp_md* ctx, const struct XdpFixed* answer, uint64_t* value) {
  const uint32_t bytes = XDP_FRAME_HEAD + XDP_FIXED_BYTES + answer->bytes;
  const int more = (int)bytes - (int)bpf_xdp_get_buff_len(ctx);
  if (bpf_xdp_adjust_tail(ctx, more) != 0) return XDP_PASS;
  struct Frame* const frame = FrameOf(ctx);
  if (!frame) return XDP_ABORTED;
  Reply(frame, answer, value);
  if (bpf_xdp_store_bytes(ctx, XDP_FRAME_HEAD, (void*)answer, XDP_FIXED_BYTES) != 0) {
    return XDP_ABORTED;
  }
  if (answer->bytes == 0) return XDP_TX;
  uint32_t last = answer->bytes - 1;
  barrier_var(last);
  last &= XDP_VALUE_BYTES_MAX;
  return bpf_xdp_store_bytes(ctx, XDP_FRAME_HEAD + XDP_FIXED_BYTES, value, last + 1) == 0
             ? XDP_TX
             : XDP_ABORTED;
}

SEC("xdp")
int skep_hook(struct xdp_md* ctx) {
  const struct XdpHeader* const header = Element(0);
  if (!header || XDP_LOAD(header->on) != 1) return XDP_PASS;
  struct XdpFixed fixed = {};
  struct XdpKey key = {};
  if (!TakeQuestion(ctx, header, &fixed, &key)) return XDP_PASS;
  struct XdpCounters* const counters = Element(1 + bpf_get_smp_processor_id() % XDP_COUNTERS);
  const uint64_t hash = XdpHash(header->seed, &key);
  struct XdpSet* const set = Element(1 + XDP_COUNTERS + XdpSetOf(hash));
  if (!counters || !set) return XDP_PASS;
  uint64_t value[XDP_VALUE_WORDS] = {};
  const int value_bytes = XdpFind(header, set, hash, &key, value);
  if (value_bytes < 0) {
    __sync_fetch_and_add(&counters->misses, 1);
    return XDP_PASS;
  }
  __sync_fetch_and_add(&counters->hits, 1);
  XdpAnswer(&fixed, header->instance, value_bytes);
  return SendAnswer(ctx, &fixed, value);
}

const char kLicense[] SEC("license") = "Apache-2.0";

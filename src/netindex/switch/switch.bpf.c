// switch.bpf.c: the switch of switch_packet.h as a program in the driver's hook (XDP), and as one
// in the system's receive path (TC), which are the same but for how a packet grows.
//
// Packets go on to the system, which routes them.
//
// Banks. The program reads the bank that `current` names, once a packet. Whoever replaces the entry
// by the other bank waits, in the same system call, until no program reads the old one any more
// (RCU), so that it may be written again: a packet sees an update whole or not at all.
// clang-format off: the helpers need the types of the first.
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on
#include <linux/pkt_cls.h>

#include "netindex/switch/switch_packet.h"

struct Bank {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct SwitchBank);
} bank_0 SEC(".maps"), bank_1 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __array(values, struct Bank);
} current SEC(".maps") = {.values = {&bank_0}};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct SwitchCounters);
} counters SEC(".maps");

volatile const struct SwitchConfig config;

struct Tables {
  const struct SwitchConfig* config;
  const struct SwitchBank* bank;
  struct SwitchCounters* counters;
};

static int TakeTables(struct Tables* tables) {
  uint32_t zero = 0;
  // The compiler must not take the zeros of this file for what was loaded.
  const struct SwitchConfig* loaded = (const struct SwitchConfig*)&config;
  barrier_var(loaded);
  tables->config = loaded;
  tables->counters = bpf_map_lookup_elem(&counters, &zero);
  void* const bank = bpf_map_lookup_elem(&current, &zero);
  if (!bank || !tables->counters) return 0;
  tables->bank = bpf_map_lookup_elem(bank, &zero);
  return tables->bank != 0;
}

static uint8_t* Begin(const struct xdp_md* ctx) { return (uint8_t*)(long)ctx->data; }
static uint8_t* End(const struct xdp_md* ctx) { return (uint8_t*)(long)ctx->data_end; }

SEC("xdp")
int skep_switch(struct xdp_md* ctx) {
  struct Tables tables;
  struct SwitchPlan plan = {};
  if (!TakeTables(&tables)) return XDP_PASS;
  SwitchLook(Begin(ctx), End(ctx), tables.config, tables.bank, tables.counters, &plan);
  if (plan.kind == SWITCH_PASS) return XDP_PASS;
  if (plan.grow != 0 && bpf_xdp_adjust_tail(ctx, SWITCH_TEMPORARY_BYTES) != 0) return XDP_DROP;
  SwitchApply(Begin(ctx), End(ctx), tables.config, tables.bank, &plan);
  if (plan.shrink != 0 && bpf_xdp_adjust_tail(ctx, -(int)SWITCH_TEMPORARY_BYTES) != 0) {
    return XDP_DROP;
  }
  return XDP_PASS;
}

static uint8_t* BeginOf(const struct __sk_buff* ctx) { return (uint8_t*)(long)ctx->data; }
static uint8_t* EndOf(const struct __sk_buff* ctx) { return (uint8_t*)(long)ctx->data_end; }

SEC("tc")
int skep_switch_tc(struct __sk_buff* ctx) {
  struct Tables tables;
  struct SwitchPlan plan = {};
  if (!TakeTables(&tables)) return TC_ACT_UNSPEC;
  const uint32_t wanted = SWITCH_GET_BYTES + sizeof(uint64_t);
  if (bpf_skb_pull_data(ctx, ctx->len < wanted ? ctx->len : wanted) != 0) return TC_ACT_UNSPEC;
  SwitchLook(BeginOf(ctx), EndOf(ctx), tables.config, tables.bank, tables.counters, &plan);
  if (plan.kind == SWITCH_PASS) return TC_ACT_UNSPEC;
  const uint32_t bytes = ctx->len;
  if (plan.grow != 0 && bpf_skb_change_tail(ctx, bytes + SWITCH_TEMPORARY_BYTES, 0) != 0) {
    return TC_ACT_SHOT;
  }
  if (bpf_skb_pull_data(ctx, ctx->len < wanted ? ctx->len : wanted) != 0) return TC_ACT_SHOT;
  SwitchApply(BeginOf(ctx), EndOf(ctx), tables.config, tables.bank, &plan);
  if (plan.shrink != 0 && bpf_skb_change_tail(ctx, bytes - SWITCH_TEMPORARY_BYTES, 0) != 0) {
    return TC_ACT_SHOT;
  }
  return TC_ACT_UNSPEC;
}

const char kLicense[] SEC("license") = "Apache-2.0";

// questions.bpf.c: programs that make frames with GETs in the kernel, for the hook's benchmark:
//
//   make   makes a frame, and drops it
//   ask    makes a frame, and goes on in the hook
//   send   makes a frame, and sends it to an interface
//   sink   drops what comes
// clang-format off: the helpers need the types of the first.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#include "netindex/xdp/testing/questions.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, XDP_QUESTIONS);
  __type(key, uint32_t);
  __type(value, struct XdpQuestion);
} questions SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint32_t);
} hook SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint64_t);
} made SEC(".maps");

volatile const struct XdpQuestionsConfig config;

static int Make(struct xdp_md* ctx) {
  const uint32_t first = 0;
  uint64_t* const number = bpf_map_lookup_elem(&made, &first);
  if (!number) return 0;
  // Neighbours are of different sets, as clients' questions are.
  const uint32_t at = (uint32_t)(*number)++ * 7 % XDP_QUESTIONS;
  const struct XdpQuestion* const question = bpf_map_lookup_elem(&questions, &at);
  const int more = (int)sizeof(struct XdpQuestion) - (int)bpf_xdp_get_buff_len(ctx);
  if (!question || (more != 0 && bpf_xdp_adjust_tail(ctx, more) != 0)) return 0;
  struct XdpQuestion* const frame = (void*)(long)ctx->data;
  if ((void*)(frame + 1) > (void*)(long)ctx->data_end) return 0;
  for (uint32_t i = 0; i < XDP_QUESTION_WORDS; ++i) frame->words[i] = question->words[i];
  return 1;
}

SEC("xdp")
int make(struct xdp_md* ctx) { return Make(ctx) ? XDP_DROP : XDP_ABORTED; }

SEC("xdp")
int ask(struct xdp_md* ctx) {
  if (Make(ctx)) bpf_tail_call(ctx, &hook, 0);
  return XDP_ABORTED;
}

SEC("xdp")
int send(struct xdp_md* ctx) {
  return Make(ctx) ? (int)bpf_redirect(config.interface, 0) : XDP_ABORTED;
}

SEC("xdp")
int sink(struct xdp_md* ctx) {
  (void)ctx;
  return XDP_DROP;
}

const char kLicense[] SEC("license") = "Apache-2.0";

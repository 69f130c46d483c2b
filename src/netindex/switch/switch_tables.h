// switch_tables.h: what a switch knows of the trees, and how it finds a key in it. C, compiled for
// BPF, for the controller and for tests; the P4 program has the same tables (Fat-B+Tree, III).
//
// Numbers. A key is 64 bits. Ranges are (pivot, next pivot]: a key that equals a pivot belongs to
// the left, and the first range has the key 0 too. An address names a node: of a tree in memory its
// 64-bit address, of a server's tree the 64 bits of a Hint (skep/batch.h), whose upper 16 are never
// 0. Addresses of inner nodes that only the switches know are numbers below 2^48. 0 is none.
//
// A bank has all tables of one switch. Those that a switch does not use are empty.
//
//   root      the fat root. Range i, counted from 0, has the keys above pivot[i - 1], up to
//             pivot[i]; behind the last range's pivots stand the greatest numbers. Range i leads to
//             the node address[i] of the tree of server[i].
//   stage     the same ranges again, for tables that match 16 bits (Algorithm 1). Stage s looks at
//             bits 63 - 16 s to 48 - 16 s of the key, as `chunk`, in the table that the stage
//             before has named; stage 0 has table 0 alone. Entries lie in the order of
//             {table, chunk}, each begins at start = table << 16 | chunk and reaches up to the
//             next one's start, or to chunk 65535 of its table. Its result is
//               SWITCH_IS_TABLE | table   of the next stage, or
//               a range
//             Tables are numbered from 0 in each stage. Of n ranges stages 0 and 3 have at most
//             2 n entries, stages 1 and 2 at most 3 n. (The paper says 2 n for all, which 17 evenly
//             spaced ranges refute.) Unused entries start at 2^32 - 1.
//   nodes     sets of regular nodes, one a layer, found by their address. A node has 16 branches:
//             pivot 1 is the sentinel 0 and not stored, in its place stands the address; pivots 2
//             to 16 and children 1 to 16 are those of the node, of which short ones repeat the last
//             pivot and the last child. 16 results "key above pivot" are a run of ones; as many
//             ones, so manyth the child; none, the first one.
//   servers   where a server is, the rkey of its memory, and how packets come there.
//
// A key is looked for in the root, if the switch has one, and then, layer by layer, in the node
// that the layer before has named. A node that the layer does not have ends nothing: the address
// stays, and another switch, or the server, goes on from there.
//
// Two ways of looking give the same, always: by numbers of 64 bits (SwitchRangeOf, SwitchChildOf),
// and as a switch does it, by 16-bit tables and 32-bit halves (SwitchRangeByStages,
// SwitchChildByResult).
#pragma once

#include <stdint.h>

#define SWITCH_LAYOUT 1  // of all that this file and switch_packet.h describe
#define SWITCH_RANGES_MAX 1024u
#define SWITCH_STAGES 4u
#define SWITCH_ENTRIES_MAX 4096u  // of a stage
#define SWITCH_LAYERS 3u          // of one switch
#define SWITCH_BRANCHES 16u
#define SWITCH_NODES_MAX 4096u  // of a layer
#define SWITCH_SLOTS 8192u
#define SWITCH_PROBES 8u
#define SWITCH_SERVERS_MAX 64u
#define SWITCH_IS_TABLE 0x80000000u

struct SwitchStage {
  uint32_t start[SWITCH_ENTRIES_MAX];
  uint32_t result[SWITCH_ENTRIES_MAX];
};

struct SwitchRoot {
  uint64_t pivot[SWITCH_RANGES_MAX];
  uint64_t address[SWITCH_RANGES_MAX];
  uint32_t server[SWITCH_RANGES_MAX];
  struct SwitchStage stage[SWITCH_STAGES];
};

struct SwitchNode {
  uint64_t address;  // 0: no node
  uint64_t pivot[SWITCH_BRANCHES - 1];
  uint64_t child[SWITCH_BRANCHES];
};

struct SwitchServer {
  uint32_t address;  // IPv4, as in a packet; 0: there is no such server
  uint32_t rkey;     // as in a packet
};

struct SwitchBank {
  uint64_t ranges;                // 0: no root
  uint64_t nodes[SWITCH_LAYERS];  // how many there are
  uint64_t seed[SWITCH_LAYERS];   // of the slots
  uint64_t unused;
  struct SwitchServer servers[SWITCH_SERVERS_MAX];
  struct SwitchRoot root;
  // A node lies in the first free slot from that of its address on. No node lies further than
  // SWITCH_PROBES slots, and no free slot is in between.
  struct SwitchNode slots[SWITCH_LAYERS][SWITCH_SLOTS + SWITCH_PROBES];
};

// A function of BPF takes five arguments, and a pointer into a packet loses its bounds in a call.
#define SWITCH_INLINE static inline __attribute__((always_inline))

#ifdef __cplusplus
#define SWITCH_STATIC_ASSERT static_assert
#else
#define SWITCH_STATIC_ASSERT _Static_assert
#endif
SWITCH_STATIC_ASSERT(sizeof(struct SwitchNode) == 256, "four lines");
SWITCH_STATIC_ASSERT(SWITCH_ENTRIES_MAX >= 3 * SWITCH_RANGES_MAX, "room for the middle stages");
SWITCH_STATIC_ASSERT(__builtin_offsetof(struct SwitchBank, slots) % 64 == 0, "nodes lie in lines");

// The compiler may not know what the variable is, or it would make a branch of arithmetic, and the
// kernel's verifier follows each side of each branch.
#ifdef __bpf__
#define SWITCH_HIDE(variable) asm volatile("" : "+r"(variable))
#else
#define SWITCH_HIDE(variable)
#endif

// 1 if the key is above the pivot, else 0: the borrow of pivot - key, without a branch.
SWITCH_INLINE uint64_t SwitchAbove(uint64_t key, uint64_t pivot) {
  uint64_t sub = pivot - key;
  const uint64_t differ = pivot ^ key;
  SWITCH_HIDE(sub);
  return ((differ & key) | (~differ & sub)) >> 63;
}

// The same as a switch does it (III-A): per half a difference and an exclusive or; then a table,
// matched by sub[63:32], xor[63] and xor[31], chooses which of four bits is the result.
SWITCH_INLINE uint32_t SwitchAboveByHalves(uint64_t key, uint64_t pivot) {
  const uint32_t key_high = (uint32_t)(key >> 32), key_low = (uint32_t)key;
  const uint32_t sub_high = (uint32_t)(pivot >> 32) - key_high;
  const uint32_t sub_low = (uint32_t)pivot - key_low;
  const uint32_t xor_high = (uint32_t)(pivot >> 32) ^ key_high;
  const uint32_t xor_low = (uint32_t)pivot ^ key_low;
  const uint32_t high = ((xor_high & key_high) | (~xor_high & sub_high)) >> 31;
  const uint32_t low = ((xor_low & key_low) | (~xor_low & sub_low)) >> 31;
  uint32_t differs_high = sub_high | -sub_high;
  SWITCH_HIDE(differs_high);
  differs_high >>= 31;  // 1: sub[63:32] is not 0
  return (differs_high & high) | (~differs_high & low);
}

// The range of a key: as many as there are pivots below it.
SWITCH_INLINE uint32_t SwitchRangeOf(const struct SwitchRoot* root, uint64_t key) {
  uint64_t at = 0;
  for (uint32_t bit = 10; bit-- > 0;) {
    at += SwitchAbove(key, root->pivot[at + (1u << bit) - 1]) << bit;
  }
  return (uint32_t)at;
}
SWITCH_STATIC_ASSERT(SWITCH_RANGES_MAX == 1u << 10, "ten steps");

// The result of the last entry whose start is not above `want`.
SWITCH_INLINE uint32_t SwitchStageResult(const struct SwitchStage* stage, uint32_t want) {
  uint64_t at = 0;
  for (uint32_t bit = 12; bit-- > 0;) {
    const uint64_t is_above = SwitchAbove(stage->start[at + (1u << bit) - 1], want);
    at += (1 - is_above) << bit;
  }
  return stage->result[(at - 1) & (SWITCH_ENTRIES_MAX - 1)];
}
SWITCH_STATIC_ASSERT(SWITCH_ENTRIES_MAX == 1u << 12, "twelve steps");

SWITCH_INLINE uint32_t SwitchRangeByStages(const struct SwitchRoot* root, uint64_t key) {
  uint32_t result = SWITCH_IS_TABLE;
  for (uint32_t s = 0; s < SWITCH_STAGES; ++s) {
    const uint32_t chunk = (uint32_t)(key >> (48 - 16 * s)) & 0xffff;
    result = SwitchStageResult(&root->stage[s], result << 16 | chunk);
    if ((result & SWITCH_IS_TABLE) == 0) break;
  }
  return result & (SWITCH_RANGES_MAX - 1);
}

// The index of the child of a key, from 0 on.
SWITCH_INLINE uint32_t SwitchChildOf(const struct SwitchNode* node, uint64_t key) {
  uint64_t at = 0;
  for (uint32_t bit = 4; bit-- > 0;) {
    at += SwitchAbove(key, node->pivot[at + (1u << bit) - 1]) << bit;
  }
  return (uint32_t)at;
}

// result[15:0] of the paper: that of pivot 1 is the highest bit.
SWITCH_INLINE uint32_t SwitchResultOf(const struct SwitchNode* node, uint64_t key) {
  uint32_t result = SwitchAboveByHalves(key, 0);
  for (uint32_t i = 0; i < SWITCH_BRANCHES - 1; ++i) {
    result = result << 1 | SwitchAboveByHalves(key, node->pivot[i]);
  }
  return result;
}

SWITCH_INLINE uint32_t SwitchChildByResult(const struct SwitchNode* node, uint64_t key) {
  const uint32_t result = SwitchResultOf(node, key);
  uint32_t ones = 0;
  for (uint32_t i = 0; i < SWITCH_BRANCHES; ++i) ones += result >> i & 1;
  return (ones - (ones != 0)) & (SWITCH_BRANCHES - 1);
}

SWITCH_INLINE uint32_t SwitchSlotOf(uint64_t seed, uint64_t address) {
  return (uint32_t)(((address ^ seed) * 0x9e3779b97f4a7c15u) >> 51);
}
SWITCH_STATIC_ASSERT(SWITCH_SLOTS == 1u << (64 - 51), "the upper bits of the product");

// The node of the layer; null: the layer does not have it.
SWITCH_INLINE const struct SwitchNode* SwitchFind(const struct SwitchBank* bank, uint32_t layer,
                                                  uint64_t address) {
  const uint32_t slot = SwitchSlotOf(bank->seed[layer], address);
  for (uint32_t i = 0; i < SWITCH_PROBES; ++i) {
    const struct SwitchNode* const node = &bank->slots[layer][slot + i];
    if (node->address == address) return node;
    if (node->address == 0) break;
  }
  return 0;
}

// Goes down from the node at the address through the layers of this switch; where that ends.
SWITCH_INLINE uint64_t SwitchDescend(const struct SwitchBank* bank, uint32_t as_switch,
                                     uint64_t key, uint64_t address) {
  for (uint32_t layer = 0; layer < SWITCH_LAYERS; ++layer) {
    if (bank->nodes[layer] == 0) continue;
    const struct SwitchNode* const node = SwitchFind(bank, layer, address);
    if (!node) continue;
    address = node->child[as_switch ? SwitchChildByResult(node, key) : SwitchChildOf(node, key)];
  }
  return address;
}

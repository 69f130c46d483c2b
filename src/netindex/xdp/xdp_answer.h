// xdp_answer.h: what the hook does with a datagram: understand a GET, find its value, answer. Pure
// functions in C, compiled for BPF and for tests. docs/packed-protocol.md has the bytes.
//
// Understood is a datagram of one message, a batch of one GET that asks for nothing but the value,
// or also for a deadline, to this server or any. Everything else is the server's.
//
//   question                              answer
//   offset size                           offset size
//        0   24  head                          0   24  head: of this server
//       24   16  header: batch, 1 operation   24   16  header: the same id
//       40    1  0: GET                       40    1  0x28: done, a value, present
//       41    1  bytes of the key             41    1  bytes of the value
//       42       key                          42       value
//
// Amplification: an answer has less than 4 times the bytes of its question.
#pragma once

#include <stdint.h>

#include "netindex/xdp/xdp_map.h"

#ifdef __bpf__
#define XDP_LOAD(field) (*(const volatile uint64_t*)&(field))
#define XDP_STORE(field, to) (*(volatile uint64_t*)&(field) = (to))
#else
#define XDP_LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define XDP_STORE(field, to) __atomic_store_n(&(field), (to), __ATOMIC_RELAXED)
#endif

#define XDP_FIXED_BYTES 42u  // of a question and of an answer, without key and value
#define XDP_MAGIC 0x504b53d5u
#define XDP_KIND_BATCH 1
#define XDP_WANT_DEADLINES 2  // the only flag that is understood: no key of the map has a deadline
#define XDP_OUTCOME_VALUE 0x28

// The first bytes of a question or an answer; the last six are behind them, and 0.
struct XdpFixed {
  uint32_t magic;
  uint8_t version;
  uint8_t why;
  uint16_t reply_bytes_max;
  uint64_t client;
  uint64_t instance;
  uint32_t payload_bytes;
  uint32_t id;
  uint8_t kind;
  uint8_t flags;
  uint16_t keyspace;
  uint32_t count;
  uint8_t first;  // the operation; the outcome
  uint8_t bytes;  // of the key; of the value
  uint8_t zero[6];
};
XDP_STATIC_ASSERT(sizeof(struct XdpFixed) == 48, "the padding is named");
XDP_STATIC_ASSERT(__builtin_offsetof(struct XdpFixed, zero) == XDP_FIXED_BYTES, "fixed bytes");
XDP_STATIC_ASSERT(XDP_FIXED_BYTES + XDP_VALUE_BYTES_MAX < 4 * (XDP_FIXED_BYTES + 1),
                  "amplification");
XDP_STATIC_ASSERT(XDP_FIXED_BYTES + XDP_VALUE_BYTES_MAX <= 256,
                  "every client takes an answer so long");

// Whether the datagram of so many bytes is understood. It has `fixed->bytes` bytes of key then,
// from 1 to XDP_KEY_BYTES_MAX.
static inline int XdpUnderstands(const struct XdpFixed* fixed, uint32_t datagram_bytes,
                                 uint64_t instance) {
  return fixed->magic == XDP_MAGIC && fixed->version == 1 && fixed->why == 0 &&
         (fixed->instance == 0 || fixed->instance == instance) && fixed->kind == XDP_KIND_BATCH &&
         (fixed->flags & ~XDP_WANT_DEADLINES) == 0 && fixed->count == 1 && fixed->first == 0 &&
         fixed->bytes >= 1 && fixed->bytes <= XDP_KEY_BYTES_MAX &&
         fixed->payload_bytes == 2u + fixed->bytes &&
         datagram_bytes == XDP_FIXED_BYTES + fixed->bytes;
}

// Whether the body is of the key, in this epoch; copies the value, its last word padded with zeros.
static inline int XdpReadBody(const struct XdpBody* body, uint64_t epoch, const struct XdpKey* key,
                              uint64_t* sizes, uint64_t value[XDP_VALUE_WORDS]) {
  *sizes = XDP_LOAD(body->sizes);
  if (XDP_LOAD(body->epoch) != epoch) return 0;
  if ((*sizes ^ XdpSizes(key->keyspace, key->bytes, 0)) << 24 != 0) return 0;
  for (uint32_t i = 0; i < XDP_KEY_WORDS; ++i) {
    if (i * 8 >= key->bytes) break;
    if (XDP_LOAD(body->key[i]) != key->words[i]) return 0;
  }
  const uint32_t bytes = XdpValueBytes(*sizes);
  for (uint32_t i = 0; i < XDP_VALUE_WORDS; ++i) {
    if (i * 8 >= bytes) break;
    value[i] = XDP_LOAD(body->value[i]);
  }
  return 1;
}

// Returns the bytes of the key's value and copies it, or -1: there is no valid entry. `hash` is
// XdpHash of the key, `set` that of the hash; `value` must be zeros.
static inline int XdpFind(const struct XdpHeader* header, struct XdpSet* set, uint64_t hash,
                          const struct XdpKey* key, uint64_t value[XDP_VALUE_WORDS]) {
  const uint32_t way = XDP_LOAD(set->hash[0]) == hash ? 0 : 1;
  if (XDP_LOAD(set->hash[way]) != hash) return -1;
  const uint64_t word = XDP_LOAD(set->word[way]);
  if (!XdpIsValid(word)) return -1;
  // Read between the two reads of the word: (1) of xdp_map.h.
  const uint64_t epoch = XDP_LOAD(header->epoch);
  uint64_t sizes;
  if (!XdpReadBody(&set->body[way], epoch, key, &sizes, value)) return -1;
  if (XDP_LOAD(set->word[way]) != word) return -1;
  if (XDP_LOAD(set->used[way]) == 0) XDP_STORE(set->used[way], 1);
  return (int)XdpValueBytes(sizes);
}

// Turns a question into the fixed bytes of its answer.
static inline void XdpAnswer(struct XdpFixed* fixed, uint64_t instance, uint32_t value_bytes) {
  fixed->reply_bytes_max = 0;
  fixed->flags = 0;
  fixed->instance = instance;
  fixed->payload_bytes = 2 + value_bytes;
  fixed->first = XDP_OUTCOME_VALUE;
  fixed->bytes = (uint8_t)value_bytes;
}

// The sum of 16-bit words, in ones' complement, of an even number of bytes (RFC 1071), not folded.
static inline uint64_t XdpSum(const uint64_t* words, uint32_t count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += (words[i] & 0xffffffff) + (words[i] >> 32);
  return sum;
}
static inline uint16_t XdpFold(uint64_t sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)sum;
}

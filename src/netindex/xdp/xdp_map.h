// xdp_map.h: the memory that the server and the program in the driver's hook share: values of hot
// keys. C, compiled for the server, for tests and for BPF.
//
//   element 0         XdpHeader      what holds for all entries
//   elements 1 to 64  XdpCounters    of one processor each, modulo 64
//   the other 16,384  XdpSet         two entries ("ways"), found by the hash of keyspace and key
//
//   XdpSet   line 0   word 0, word 1 | hash 0, hash 1 | used 0, used 1
//            body 0   epoch | sizes | key | value
//            body 1   the same
//
//   word of an entry     63          32 31           0
//                       +--------------+--------------+
//                       |  generation  |  installed   |    valid if both are equal
//                       +--------------+--------------+
//
// Roles
//   writer  an operation of an engine that changes a key. While it holds the lock that its change
//           needs, and before the change can be seen, it adds 1 to the generation of the entry
//           whose hash is the key's; or, for a change of a range, to the header's epoch.
//   filler  a worker of the server (hot_map.h): claims an entry by BeginFill, which reads the
//           epoch, adds 1 to the entry's generation, which is g from here on, and then stores the
//           new hash; passes through the lock that writers of the key hold (Engine::Watch); reads
//           the newest value; waits until the gate has released what it read; then, by FinishFill,
//           writes the body and changes the word from {g, not g} to {g, g}. BeginFill and
//           FinishFill exclude each other.
//   hook    reads word, body, epoch, word: XdpFind in xdp_answer.h. It stores only `used`.
//
// Why a datagram GET answered by the hook is linearizable beside all operations of the server
//   (1) The hook's answer is not torn, and is that of one valid entry. It has read the same valid
//       word before and after the body. Only FinishFill writes a body, and only while the word is
//       not valid: BeginFill has made it so by a new generation, and nothing but FinishFill makes
//       it valid again. So a body that changes between the two reads has a new generation at the
//       second. The epoch was read in between and is the body's: the entry was valid at that
//       instant, which is where the GET takes effect.
//   (2) While an entry is valid, the newest value of its key is the entry's. Let a write of the key
//       come after the filler's read. It holds the key's lock later than the filler's Watch did: so
//       it sees the hash that was stored before, or one that a later BeginFill has stored, whose
//       new generation was stored before that hash. In both cases the generation is above g before
//       the write can be seen: FinishFill fails, or the entry is not valid any more. A write that
//       held the lock earlier is seen by the filler's read, which comes after the Watch. The same
//       holds for changes of ranges, and the epoch.
//   (3) The value was told to be read: the gate has released it, so no reader at a released version
//       is older, and with appendfsync always no crash undoes it.
//   (4) So a GET of the hook never returns a value after another one was to be seen, nor one that
//       a reply of the server has not been allowed to tell.
// This asks of an engine what Engine::Watch asks (watches.h): every change touches its key or range
// under the lock, before it can be seen. What has a deadline is never filled, as it goes without a
// write. A generation would have to go round, 2^32 writes of a key, within one run of the hook for
// (1) to fail.
//
// Progress. Writers and the hook never wait: an addition, a few loads. Fillers exclude each other
// for as long as 200 bytes take to write. A filler that stalls holds back nothing but its entry,
// which another BeginFill takes from it.
//
// When the server's process ends the kernel closes its descriptor of the program's link, which
// detaches the program: xdp_lease.h. A server that starts later gets a map of zeros.
//
// Memory orders. The server's are those of the numbers above: additions and stores of a claim are
// sequentially consistent. The program is compiled for x86-64 alone, which does not reorder its
// loads.
#pragma once

#include <stdint.h>

#define XDP_LAYOUT 1  // of all that this file and xdp_lease.h describe
#define XDP_COUNTERS 64u
#define XDP_SETS 16384u
#define XDP_WAYS 2u
#define XDP_ELEMENT_BYTES 512u
#define XDP_ELEMENTS (1 + XDP_COUNTERS + XDP_SETS)
#define XDP_KEY_BYTES_MAX 64u
// So that its length is a varint of one byte.
#define XDP_VALUE_BYTES_MAX 127u
#define XDP_KEY_WORDS 8u
#define XDP_VALUE_WORDS 16u

struct XdpHeader {
  uint64_t on;        // 1: answers may be given
  uint64_t epoch;     // bodies of another one are not valid
  uint64_t instance;  // of the server
  uint64_t seed;      // of the hash
  uint64_t served;    // bit i: the server listens on the i-th address of the program
  uint64_t unused[59];
};

struct XdpCounters {
  uint64_t hits;    // answered
  uint64_t misses;  // understood, and passed on: no valid entry
  uint64_t unused[62];
};

struct XdpBody {
  uint64_t epoch;
  uint64_t sizes;               // XdpSizes
  uint64_t key[XDP_KEY_WORDS];  // zeros behind the key, as behind the value
  uint64_t value[XDP_VALUE_WORDS];
};

struct XdpSet {
  uint64_t word[XDP_WAYS];
  uint64_t hash[XDP_WAYS];  // of keyspace and key; 0: never filled
  uint64_t used[XDP_WAYS];  // 1: there was a hit since the server has stored 0
  uint64_t unused[2];
  struct XdpBody body[XDP_WAYS];
  uint64_t unused_too[4];
};

struct XdpMap {
  struct XdpHeader header;
  struct XdpCounters counters[XDP_COUNTERS];
  struct XdpSet sets[XDP_SETS];
};

#ifdef __cplusplus
#define XDP_STATIC_ASSERT static_assert
#else
#define XDP_STATIC_ASSERT _Static_assert
#endif
XDP_STATIC_ASSERT(sizeof(struct XdpHeader) == XDP_ELEMENT_BYTES, "an element");
XDP_STATIC_ASSERT(sizeof(struct XdpCounters) == XDP_ELEMENT_BYTES, "an element");
XDP_STATIC_ASSERT(sizeof(struct XdpSet) == XDP_ELEMENT_BYTES, "an element");
XDP_STATIC_ASSERT(__builtin_offsetof(struct XdpSet, body) == 64, "what writers look at is a line");

// A key, padded with zeros.
struct XdpKey {
  uint64_t words[XDP_KEY_WORDS];
  uint32_t bytes;  // 1 to XDP_KEY_BYTES_MAX
  uint32_t keyspace;
};

static inline uint64_t XdpSizes(uint32_t keyspace, uint32_t key_bytes, uint32_t value_bytes) {
  return keyspace | (uint64_t)key_bytes << 32 | (uint64_t)value_bytes << 40;
}
static inline uint32_t XdpValueBytes(uint64_t sizes) {
  return (uint32_t)(sizes >> 40) & XDP_VALUE_BYTES_MAX;
}

// The hash of a key is that of its words, one after the other: Murmur's mixing, as BPF has no wider
// multiplication. It is never 0.
static inline uint64_t XdpHashBegin(uint64_t seed, uint32_t keyspace, uint32_t key_bytes) {
  return seed ^ ((uint64_t)keyspace << 8 | key_bytes) * 0x9e3779b97f4a7c15u;
}
static inline uint64_t XdpHashWord(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}
static inline uint64_t XdpHash(uint64_t seed, const struct XdpKey* key) {
  uint64_t hash = XdpHashBegin(seed, key->keyspace, key->bytes);
  for (uint32_t i = 0; i < XDP_KEY_WORDS; ++i) {
    if (i * 8 >= key->bytes) break;
    hash = XdpHashWord(hash, key->words[i]);
  }
  return hash | 1;
}
static inline uint32_t XdpSetOf(uint64_t hash) { return (uint32_t)(hash >> 20) % XDP_SETS; }

static inline uint32_t XdpGeneration(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint64_t XdpValidWord(uint32_t generation) {
  return (uint64_t)generation << 32 | generation;
}
static inline int XdpIsValid(uint64_t word) { return XdpGeneration(word) == (uint32_t)word; }

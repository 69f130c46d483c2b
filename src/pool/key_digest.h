// key_digest.h: what the hash index of a pool knows a key by.
//
//   index word   63       56 55                             0     tag word
//               +-----------+--------------------------------+   +----------+
//               | signature |  bits that choose the bucket   |   |  64 bits |
//               +-----------+--------------------------------+   +----------+
//
// Two SipHashes under keys that the pool drew when it was made. A client needs the index word
// alone: it compares the keys themselves. The hash server compares signature, bucket and tag, and
// no keys, which lie in other processes' memory: among n keys in b buckets it takes two for one
// with a probability of n * n / (b * 2^73), which is 10^-12 for 10^9 keys.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/siphash.h"

namespace skep::pool {

// Of one pool. Everybody who may read the pool knows them.
struct DigestKeys {
  SipKey index = {};
  SipKey tag = {};

  friend bool operator==(const DigestKeys&, const DigestKeys&) = default;
};

struct KeyDigest {
  uint64_t index = 0;
  uint64_t tag = 0;

  // Never 0.
  static uint8_t SignatureOf(uint64_t index) {
    const auto bits = static_cast<uint8_t>(index >> 56);
    return bits == 0 ? 1 : bits;
  }
  uint8_t signature() const { return SignatureOf(index); }

  friend bool operator==(const KeyDigest&, const KeyDigest&) = default;
};

inline KeyDigest DigestOf(const DigestKeys& keys, std::string_view key) {
  return {.index = SipHash(keys.index, key), .tag = SipHash(keys.tag, key)};
}

}  // namespace skep::pool

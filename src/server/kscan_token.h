// kscan_token.h: the tokens with which a client carries a KSCAN on.
//
// A token has everything that the next chunk needs, so that the server keeps nothing for it but the
// pin of the version, which the scan's number finds. It is base64 with '-' and '_'
// (RFC 4648, section 5), without padding, of these bytes:
//
//   offset size
//        0    1  0x29, which marks this form, so that every token begins with K
//        1    8  number of the scan, little-endian
//        9    1  1: descending, 2: keys only, 4: with deadlines, 8: no upper bound
//       10       varints: keyspace, version, "now" of the version, items a chunk
//                length and bytes of the lower bound, and of the upper one if there is one
//      end - 8   tag of all bytes before it: SipHash with the process's secret
//
// A token that was made by another process, or was changed, does not verify. Nothing in it is
// secret: its holder may read the range anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/siphash.h"
#include "skep/scan.h"

namespace skep {

// The state of a KSCAN between two chunks.
struct KeyScan {
  uint64_t number = 0;
  uint32_t keyspace = 0;
  uint64_t version = 0;
  uint64_t now_ms = 0;
  std::string lo, hi;
  bool unbounded = false;
  ScanOptions options;  // limit: items a chunk
  bool with_deadlines = false;
};

// A bound has the same meaning when it is cut to this length, because no key is longer.
inline constexpr size_t kScanBoundBytesMax = 64 * 1024 + 1;
// No token is longer, therefore.
inline constexpr size_t kKscanTokenBytesMax = (2 * kScanBoundBytesMax + 80) * 4 / 3;

// The token for going on with `scan`, whose bounds are cut if they are longer than any key. Cost: a
// few nanoseconds for each byte of the bounds.
std::string KscanTokenOf(const KeyScan& scan, const SipKey& secret);

// The state in a token; nullopt if KscanTokenOf did not make it with this secret.
std::optional<KeyScan> ReadKscanToken(std::string_view token, const SipKey& secret);

}  // namespace skep

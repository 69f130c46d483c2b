// packed_request.h: the payload of a kBatch or kAtomic message: requests one after the other.
//
//   with kAtSnapshot     varint   the number of the snapshot
//   with kHasScanLimits  varint   Batch::scan_bytes_max; varint   Batch::scan_visits_max
//   for each request
//     1        op (bits 0-4) | kSameSizes | kSameValue | kHasFields
//     [1]      fields, if kHasFields: which of the fields below follow
//     [1]      flags                     kFlags
//     [1]      when                      kWhen
//     [varint] limit                     kLimit; without: none
//     [varint] deadline + 1, mod 2^64    kDeadline; without: the deadline is 0
//     [8]      hint                      kHint
//              (nothing)                 kPart: a part of the atomic batch begins here
//     operand  depends on op, flags and when:
//                bytes   varint length and bytes: kPut, kUpdate and kDelete whose `when` is kEquals
//                        or kDiffers, and nothing else; kRequireValue, kMove, and ranges but those
//                        with kNoUpperBound
//                digest  16 bytes, the low half first: likewise kDigestEquals or kDigestDiffers;
//                number  varint: random, cursor or watch; for kApply: the number of the function,
//                        in the order in which the message names them, from 0. A number that is not
//                        from 0 in the order in which the message names them. A number that is not
//                        taken yet is followed by the name: 1 FunctionKind, 1 Element, varint
//                        length and bytes
//     sizes    varint key bytes, varint value bytes if the op has a value; not with kSameSizes: as
//              of the request before
//     key      bytes
//     value    bytes, if the op has one (kPut, kInsert, kUpdate, kApply); not with kSameValue: as
//              of the last request that had one. Then its size is not sent either
//
// A GET of a 16-byte key takes 17 bytes, in RESP 36 (*2 $3 GET $16 key).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/store_now.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep::packed {

inline constexpr uint8_t kOpMask = 0x1f;
inline constexpr uint8_t kSameSizes = 0x20;
inline constexpr uint8_t kSameValue = 0x40;
inline constexpr uint8_t kHasFields = 0x80;

enum Field : uint8_t {
  kFlags = 1,
  kWhen = 2,
  kLimit = 4,
  kDeadline = 8,
  kHint = 16,
  kPart = 32,
};
inline constexpr uint8_t kFields = 63;

constexpr bool HasValue(Op op) {
  return op == Op::kPut || op == Op::kInsert || op == Op::kUpdate || op == Op::kApply;
}

// Which member of a request's union is sent.
enum class Operand : uint8_t { kNone, kBytes, kDigest, kNumber, kByteRange };
Operand OperandOf(const Request& request);

// Appends a message with everything of the batch that a server can use: kind, snapshot (by the
// server's number), scan limits, parts and requests. `header` has id, keyspace and the flags kSync,
// kWantDeadlines, kWantVersions, kRemember; the other fields are set here. `hints`, unless empty,
// has a hint for each request, which replaces the request's own. Cost: one pass for the size, one
// to write; at most one allocation for each function.
void AppendBatch(std::string& to, Header header, const Batch& batch, uint64_t snapshot = 0,
                 std::span<const Hint> hints = {});

// The fields of such a payload before its requests.
struct BatchSettings {
  uint64_t snapshot = 0;  // number of the snapshot; 0: none
  uint64_t scan_bytes_max = UINT64_MAX;
  uint64_t scan_visits_max = UINT64_MAX;
};

// Takes the settings from the front of the payload of a message with this header.
//   kCorrupt  the payload is too short
Result<BatchSettings> TakeSettings(const Header& header, std::string_view& payload);

// Adds `count` requests to the batch, views into `payload`, which must be all of it. The limit of a
// count is lowered to `count_limit`, except that of a count of every key (CountsAll), which visits
// none. Deadlines, which are the wall clock's, are converted to the time of `now`. Requests are
// only checked for their form: engines check the rest. With `pins` those that return the value of a
// key may have it pinned (Request::kMayPin), if the batch is not atomic.
//   kCorrupt  the payload ends too early or late, an op or field is not known, kSameSizes without
//             sizes before, kSameValue without a value before. Requests may have been added
Status TakeRequests(std::string_view payload, uint32_t count, uint32_t count_limit, Batch& batch,
                    const StoreNow& now = {}, bool pins = false);

// Takes the keys of a payload whose `count` requests all get the newest value of a key and ask for
// nothing else; the keys are views into it. False: it has something else in it, or is malformed.
bool TakeGets(std::string_view payload, uint32_t count, std::vector<std::string_view>* keys);

}  // namespace skep::packed

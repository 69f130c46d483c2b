// packed_reply.h: the payload of the reply to a kBatch or kAtomic message: outcomes, one after the
// other, in the order of the requests.
//
//     1        verdict (bits 0-2) | kHasOutcomeValue | kSameValueSize | kPresent | kMore
//                | kHasExtras
//     [1]      extras, if kHasExtras: which of the fields below follow
//     [varint] value bytes: with a value, not with kSameValueSize: as of the last value before
//     [bytes]  value
//     [varint] integer, as zigzag: (n << 1) ^ (n >> 63)   kInteger; without: 0
//     [items]  kItems: varint, how many runs; for each run varint items, varint key bytes, varint
//              value bytes; then the bytes of all items, key | value | key | value ...
//     [status] kStatus: code (1), varint detail, varint length and bytes of the text
//     [varint] deadline    kDeadlineOf: the key's, as Outcome::deadline_ms
//     [varint] version     kVersionOf
//     [8]      hint        kHintOf
//
// An answer to a GET of 8 bytes takes 9 or 10.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/store_now.h"
#include "skep/batch.h"
#include "skep/get_answer.h"
#include "wire/packed.h"

namespace skep::packed {

inline constexpr uint8_t kVerdictMask = 7;
inline constexpr uint8_t kHasOutcomeValue = 8;
inline constexpr uint8_t kSameValueSize = 16;
inline constexpr uint8_t kPresent = 32;
inline constexpr uint8_t kMore = 64;
inline constexpr uint8_t kHasExtras = 128;

enum Extra : uint8_t {
  kInteger = 1,
  kItems = 2,
  kStatus = 4,
  kDeadlineOf = 8,
  kVersionOf = 16,
  kHintOf = 32,
};
inline constexpr uint8_t kExtras = 63;

// A pinned value that is sent before the byte at `at` of the string that a reply was appended to.
struct PinnedPart {
  size_t at;
  std::shared_ptr<const PinnedValue> value;
};

// Appends the reply to the message with this header: the outcomes of `count` slots from `slot` on
// (for kAtomic: all). The value of a kGet that was found is sent even if it is empty. Deadlines,
// which are in the time of `now`, are converted to the wall clock's. Scans, walks and samples are
// sent as long as their items take `items_bytes_max` together; the later ones, which have read
// only, are sent as refused with kTooLarge: so a reply never has more than kReplyBytesMax. Pinned
// values are appended to `pins` with their places in `to`; if that is null, they are copied. Cost
// as of AppendBatch.
void AppendReply(std::string& to, const Header& request, const Batch& batch, uint32_t slot,
                 uint32_t count, const StoreNow& now = {},
                 size_t items_bytes_max = kReplyBytesMax / 2,
                 std::vector<PinnedPart>* pins = nullptr);

// The same for a message of gets alone, whose answers are kDone or kAbsent.
void AppendGetReply(std::string& to, const Header& request, std::span<const GetAnswer> answers);

// Appends a reply that is only `status`. Its `what` and detail are sent.
void AppendFailure(std::string& to, const Header& request, const Status& status);
// Takes a status from the front. Its text is kept for the life of the process; after very many
// different ones a text becomes "the server refused it".
//   false  there is none
bool TakeStatus(std::string_view& from, Status* status);

// Fills in the outcomes of `batch` from the payload of such a reply (flags and count as in its
// header, which is not one of a failure). `payload` must live as long as the batch's outcomes:
// BatchWriter::scratch() can adopt it afterwards.
//   kCorrupt  the payload is no reply to this batch; every slot is then refused with it
Status ReadReply(const Header& reply, std::string_view payload, Batch& batch);

}  // namespace skep::packed

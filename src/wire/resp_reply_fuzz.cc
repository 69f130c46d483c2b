// Property: the replies, their lengths and the error that end a stream of bytes depend on the bytes
// alone, not on how they were split nor on whether they are built or skipped; nothing outside them
// is read.
//
// Input: byte 0 chooses how the stream is split, the rest is the stream.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/random.h"
#include "wire/resp_pieces.h"

namespace skep {
namespace {

// Like operator==, but a NaN equals a NaN.
bool IsSame(const RespReply& a, const RespReply& b) {
  const bool same_number = a.number == b.number || (std::isnan(a.number) && std::isnan(b.number));
  return same_number && a.type == b.type && a.format == b.format && a.integer == b.integer &&
         a.text == b.text && std::ranges::equal(a.elements, b.elements, IsSame);
}

void CheckSplitsAgree(uint8_t choice, std::string_view stream) {
  SeededRandom random(choice);
  const auto random_pieces = [&] { return 1 + random.Below(9); };
  const ParsedReplies whole = ParseInPieces(stream, AllAtOnce(), false);
  for (const bool skip : {false, true}) {
    for (const NextPiece& split : {AllAtOnce(), PiecesOf(1), NextPiece(random_pieces)}) {
      const ParsedReplies parsed = ParseInPieces(stream, split, skip);
      SKEP_CHECK(parsed.consumed == whole.consumed);
      SKEP_CHECK(parsed.types == whole.types);
      SKEP_CHECK(parsed.error == whole.error);
      SKEP_CHECK(skip || std::ranges::equal(parsed.replies, whole.replies, IsSame));
    }
  }
}

}  // namespace
}  // namespace skep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  skep::CheckSplitsAgree(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}

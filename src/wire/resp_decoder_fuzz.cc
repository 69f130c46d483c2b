// Property: the commands, their lengths and the error that end a stream of bytes depend on the
// bytes alone, not on how they were split; nothing outside them is read.
//
// Input: byte 0 chooses the limits and how the stream is split, the rest is the stream.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/random.h"
#include "wire/resp_pieces.h"

namespace skep {
namespace {

// Small enough for a fuzzer to reach every limit.
constexpr RespLimits kSmallLimits = {.args_max = 4, .bulk_bytes_max = 20, .inline_bytes_max = 24};

void CheckSplitsAgree(uint8_t choice, std::string_view stream) {
  const RespLimits limits = choice & 1 ? kSmallLimits : RespLimits{};
  SeededRandom random(choice);
  const DecodedCommands whole = DecodeInPieces(stream, limits, AllAtOnce());
  SKEP_CHECK(DecodeInPieces(stream, limits, PiecesOf(1)) == whole);
  SKEP_CHECK(DecodeInPieces(stream, limits, [&] { return 1 + random.Below(9); }) == whole);
}

}  // namespace
}  // namespace skep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  skep::CheckSplitsAgree(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}

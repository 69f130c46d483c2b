// compare_args.h: what a value is compared with, as Redis 8.4 writes it.
//
//   IFEQ value     the key's value is this          IFDEQ digest   its digest is this
//   IFNE value     the key's value is not this      IFDNE digest   its digest is not this
//
// A digest is DigestOf (batch.h) in 32 hexadecimal digits, the high half first: XXH3's canonical
// form, what `xxhsum -H128` prints. Redis's has 16, of XXH3's 64-bit form.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "skep/batch.h"

namespace skep {

inline constexpr size_t kDigestDigits = 32;

// Lower case.
std::array<char, kDigestDigits> DigestText(Digest digest);
// Any case. Nothing if it is not of that form.
std::optional<Digest> ParseDigest(std::string_view text);

inline constexpr std::string_view kNotADigest =
    "ERR a digest must be exactly 32 hexadecimal characters";

class CompareOption {
 public:
  // If args[i] is one of the four, has its operand and is the only one, or the same as was read
  // before: reads both, moves `i` behind them, true. Else false, and nothing is changed.
  bool Read(std::span<const std::string_view> args, size_t& i);

  bool given() const { return when_ != 0; }
  // Makes it a condition of the request. False if the operand should be a digest and is none.
  bool Apply(Request& request) const;

 private:
  uint8_t when_ = 0;  // of Request::When
  std::string_view operand_;
};

}  // namespace skep

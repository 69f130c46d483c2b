// compare_args.h: the words that compare a value, as Redis 8.4 writes them.
//
//   IFEQ value     the key's value is this          IFDEQ digest   its digest is this
//   IFNE value     the key's value is not this      IFDNE digest   its digest is not this
//
// A digest is DigestOf (batch.h) in 32 hexadecimal digits, the high half first: XXH3's canonical
// form, as `xxhsum -H128` prints it. Redis's digest has 16 digits, of XXH3's 64-bit form.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "skep/batch.h"

namespace skep {

inline constexpr size_t kDigestDigits = 32;

// The digits are in lower case.
std::array<char, kDigestDigits> DigestText(Digest digest);
// Upper and lower case are the same. nullopt if the text is no digest.
std::optional<Digest> ParseDigest(std::string_view text);

inline constexpr std::string_view kNotADigest =
    "ERR a digest must be exactly 32 hexadecimal characters";

class CompareOption {
 public:
  // If args[i] is one of the four words, has its operand, and no other one was read before: reads
  // both, moves `i` behind them and returns true. Else returns false, and nothing is changed. The
  // same word may come again.
  bool Read(std::span<const std::string_view> args, size_t& i);

  bool given() const { return when_ != 0; }
  // Adds the comparison to the request. False if the operand should be a digest and is none.
  bool Apply(Request& request) const;

 private:
  uint8_t when_ = 0;  // bits of Request::When
  std::string_view operand_;
};

}  // namespace skep

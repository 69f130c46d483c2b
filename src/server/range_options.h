// range_options.h: the words of a range command, NAME (min max | PREFIX p) option...
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "skep/scan.h"
#include "skep/scratch.h"

namespace skep::commands {

// Items that a chunk of KSCAN has if there is no COUNT, and at most.
inline constexpr uint32_t kKscanCountDefault = 100;
inline constexpr uint32_t kKscanCountMax = 16 * 1024;

// The bounds and options that were given.
struct RangeArgs {
  // The options that a command may have; LIMIT is followed by offset and count, or by a count.
  enum Option : unsigned {
    kRev = 1,
    kLimit = 2,
    kLimitCount = 4,
    kWithValues = 8,
    kCount = 16,
    kWithDeadlines = 32,
    kType = 64,
  };

  Range range;
  bool reverse = false;
  bool with_values = false;
  bool with_deadlines = false;
  uint64_t offset = 0;
  uint32_t limit = kNoLimit;
  uint32_t count = kKscanCountDefault;
  std::optional<std::string_view> type = {};
};

// Reads the words of a command, of whose options it takes those in `allowed`, a sum of
// RangeArgs::Option. Returns an error text, or an empty one. The bounds and the text are views of
// the words or bytes in `scratch`.
std::string_view ParseRangeArgs(std::span<const std::string_view> args, unsigned allowed,
                                Scratch& scratch, RangeArgs& out);

// Likewise without the bounds, which are not read.
std::string_view ParseRangeOptions(std::span<const std::string_view> args, unsigned allowed,
                                   RangeArgs& out);

// Whether the word is WITHVALUE or WITHVALUES. Commands that answer one key are documented with the
// former, the others with the latter. All take both.
bool IsWithValues(std::string_view word);

}  // namespace skep::commands

// range_args.h: bounds and numbers as Redis's commands write them.
//
//   bound   as min                as max
//   -       before every key      nothing is below it: the range is empty
//   +       nothing is above it:  no upper bound
//           the range is empty
//   [key    from `key` on         up to `key`, `key` included
//   (key    after `key`           up to `key`, `key` not included
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "skep/scan.h"
#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

// A range that holds no key.
inline Range EmptyRange() { return Range::Between({}, {}); }
bool IsEmpty(const Range& range);

// The keys from `min` to `max`, as an engine takes them. What can hold no key is EmptyRange(). The
// bounds are views of the arguments or bytes in `scratch`, and live as long as both.
//   kInvalidArgument  a bound has none of the four forms; `what` is Redis's text without "ERR "
Result<Range> ParseRange(std::string_view min, std::string_view max, Scratch& scratch);

// A decimal number in the one form Redis writes it: digits, a "-" before them if it is negative,
// no "+", no space, no leading zero, no "-0". nullopt for anything else or out of range.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);

}  // namespace skep

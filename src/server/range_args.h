// range_args.h: the bounds of ranges as Redis's ZRANGE ... BYLEX writes them.
//
//   bound   as min                as max
//   -       before every key      nothing is below it: the range is empty
//   +       nothing is above it:  no upper bound
//           the range is empty
//   [key    from `key` on         up to `key`, `key` included
//   (key    after `key`           up to `key`, `key` not included
#pragma once

#include <string_view>

#include "skep/scan.h"
#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

// The error for words that are no bounds: Redis's text, then how a range is written.
inline constexpr std::string_view kNotABound =
    "min or max not valid string range item: a bound is [a (with a), (a (without a), - or + (the "
    "ends); or PREFIX p instead of both";
inline constexpr std::string_view kRangeSyntax = kNotABound.substr(kNotABound.find(':') + 2);

// A range that holds no key.
inline Range EmptyRange() { return Range::Between({}, {}); }
bool IsEmpty(const Range& range);

// The keys from `min` to `max`, as an engine takes them; EmptyRange() if no key can be in the
// range. The bounds are views of the arguments or bytes in `scratch`, and live as long as both.
//   kInvalidArgument  a bound has none of the four forms; `what` is kNotABound
Result<Range> ParseRange(std::string_view min, std::string_view max, Scratch& scratch);

// ParseRange of `min max`, or the range of `PREFIX prefix`: the keys that begin with `prefix`.
// "PREFIX" is no bound, so the two cannot be confused.
Result<Range> ParseRangeWords(std::string_view first, std::string_view second, Scratch& scratch);

}  // namespace skep

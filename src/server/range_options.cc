#include "server/range_options.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/call.h"
#include "server/range_args.h"

namespace skep::commands {
namespace {

std::string_view TextOf(Status status, Scratch& scratch) {
  return scratch.Concat("ERR ", status.what());
}

// A count as in LIMIT: negative is no limit.
uint32_t LimitOf(int64_t count) {
  return count < 0 ? kNoLimit : static_cast<uint32_t>(std::min<int64_t>(count, kNoLimit - 1));
}

// Reads one option at args[i] and moves i behind it. Returns an error text, or an empty one.
std::string_view ParseRangeOption(std::span<const std::string_view> args, size_t& i,
                                  unsigned allowed, RangeArgs& out) {
  const std::string_view name = args[i++];
  const size_t left = args.size() - i;
  if ((allowed & RangeArgs::kRev) != 0 && EqualsIgnoringCase(name, "rev")) {
    out.reverse = true;
    return {};
  }
  if ((allowed & RangeArgs::kWithValues) != 0 && IsWithValues(name)) {
    out.with_values = true;
    return {};
  }
  if ((allowed & RangeArgs::kWithDeadlines) != 0 && EqualsIgnoringCase(name, "withdeadlines")) {
    out.with_deadlines = true;
    return {};
  }
  if ((allowed & RangeArgs::kType) != 0 && EqualsIgnoringCase(name, "type") && left >= 1) {
    out.type = args[i++];
    return {};
  }
  if ((allowed & RangeArgs::kLimit) != 0 && EqualsIgnoringCase(name, "limit") && left >= 2) {
    const auto offset = ParseInt64(args[i++]);
    const auto count = ParseInt64(args[i++]);
    if (!offset || !count) return kNotAnInteger;
    out.limit = *offset < 0 ? 0 : LimitOf(*count);  // a negative offset gives nothing, as in Redis
    out.offset = static_cast<uint64_t>(std::max<int64_t>(*offset, 0));
    return {};
  }
  const bool limit = (allowed & RangeArgs::kLimitCount) != 0 && EqualsIgnoringCase(name, "limit");
  const bool count = (allowed & RangeArgs::kCount) != 0 && EqualsIgnoringCase(name, "count");
  if ((limit || count) && left >= 1) {
    const auto number = ParseInt64(args[i++]);
    if (!number) return kNotAnInteger;
    if (limit) {
      out.limit = LimitOf(*number);
    } else if (*number < 1) {
      return kSyntaxError;
    } else {
      out.count = static_cast<uint32_t>(std::min<int64_t>(*number, kKscanCountMax));
    }
    return {};
  }
  return kSyntaxError;
}

}  // namespace

bool IsWithValues(std::string_view word) {
  return EqualsIgnoringCase(word, "withvalue") || EqualsIgnoringCase(word, "withvalues");
}

std::string_view ParseRangeOptions(std::span<const std::string_view> args, unsigned allowed,
                                   RangeArgs& out) {
  for (size_t i = 3; i < args.size();) {
    if (const auto error = ParseRangeOption(args, i, allowed, out); !error.empty()) return error;
  }
  return {};
}

std::string_view ParseRangeArgs(std::span<const std::string_view> args, unsigned allowed,
                                Scratch& scratch, RangeArgs& out) {
  const auto range = ParseRangeWords(args[1], args[2], scratch);
  if (!range) return TextOf(range.error(), scratch);
  out.range = *range;
  return ParseRangeOptions(args, allowed, out);
}

}  // namespace skep::commands

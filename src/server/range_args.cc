#include "server/range_args.h"

#include <cstdint>
#include <optional>

#include "base/ascii.h"

namespace skep {
namespace {

enum class Form : uint8_t { kBeforeAll, kAfterAll, kClosed, kOpen };

std::optional<Form> FormOf(std::string_view bound) {
  if (bound == "-") return Form::kBeforeAll;
  if (bound == "+") return Form::kAfterAll;
  if (bound.starts_with('[')) return Form::kClosed;
  if (bound.starts_with('(')) return Form::kOpen;
  return std::nullopt;
}

}  // namespace

bool IsEmpty(const Range& range) { return !range.unbounded && range.hi <= range.lo; }

Result<Range> ParseRange(std::string_view min, std::string_view max, Scratch& scratch) {
  const std::optional<Form> min_form = FormOf(min);
  const std::optional<Form> max_form = FormOf(max);
  if (!min_form || !max_form) {
    return Fail(Code::kInvalidArgument, kNotABound.data());
  }
  if (min_form == Form::kAfterAll || max_form == Form::kBeforeAll) return EmptyRange();

  Range range = Range::All();
  if (min_form == Form::kClosed) range.lo = min.substr(1);
  if (min_form == Form::kOpen) range.lo = KeyAfter(min.substr(1), scratch);
  range.unbounded = max_form == Form::kAfterAll;
  if (max_form == Form::kClosed) range.hi = KeyAfter(max.substr(1), scratch);
  if (max_form == Form::kOpen) range.hi = max.substr(1);
  return IsEmpty(range) ? EmptyRange() : range;
}

Result<Range> ParseRangeWords(std::string_view first, std::string_view second, Scratch& scratch) {
  if (EqualsIgnoringCase(first, "prefix")) return PrefixRange(second, scratch);
  return ParseRange(first, second, scratch);
}

}  // namespace skep

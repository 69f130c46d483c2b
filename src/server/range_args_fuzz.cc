// Property: for any two bounds, a range that is not refused holds its closed ends and not its open
// ones; a number that is accepted prints as it was read.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/decimal.h"
#include "server/range_args.h"

namespace {

bool Holds(const skep::Range& range, std::string_view key) {
  return range.lo <= key && (range.unbounded || key < range.hi);
}

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

// Input: min, a newline, max. Copied, so that a read past either end is seen.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\n'), input.size());
  const std::string min(input.substr(0, cut));
  const std::string max(input.substr(std::min(cut + 1, input.size())));
  skep::Scratch scratch;
  if (const auto range = skep::ParseRange(min, max, scratch)) {
    const std::string low = min.substr(1), high = max.substr(1);
    const bool some = !skep::IsEmpty(*range);
    if (min[0] == '[') Check(Holds(*range, low) == some);
    if (max[0] == '[') Check(Holds(*range, high) == some);
    if (min[0] == '(') Check(!Holds(*range, low));
    if (max[0] == '(') Check(!Holds(*range, high));
    if (min == "-" && max == "+") Check(some && range->unbounded && range->lo.empty());
  }
  if (const auto number = skep::ParseInt64(min)) Check(std::to_string(*number) == min);
  if (const auto number = skep::ParseUint64(min)) Check(std::to_string(*number) == min);
  return 0;
}

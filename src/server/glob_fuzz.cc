// Property: with any pattern and text, no byte outside them is read, and the prefix holds for every
// match.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/glob.h"

// Input: the pattern, a zero byte, the text. Copied, so that a read past either end is seen.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\0'), input.size());
  const std::string pattern(input.substr(0, cut));
  const std::string text(input.substr(std::min(cut + 1, input.size())));
  bool whole = false;
  const std::string prefix = skep::LiteralPrefix(pattern, &whole);
  const bool matches = skep::GlobMatch(pattern, text);
  const bool starts = text.starts_with(prefix);
  if (matches && !starts) std::abort();
  if (whole && matches != starts) std::abort();
  if (skep::GlobIsLiteral(pattern) && matches != (text == prefix)) std::abort();
  return 0;
}

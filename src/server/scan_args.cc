#include "server/scan_args.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/call.h"

namespace skep {

bool ScanArgs::WantsType(std::string_view name) const {
  return !type || EqualsIgnoringCase(*type, name);
}

std::string_view ParseScan(std::span<const std::string_view> options, bool allows_type,
                           ScanArgs& scan) {
  constexpr uint32_t kScanCountMax = 4096;  // COUNT is only a hint
  for (size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) return kSyntaxError;
    const std::string_view value = options[i + 1];
    if (EqualsIgnoringCase(options[i], "match")) {
      scan.pattern = value;
      if (value.size() > kPatternBytesMax) return kPatternTooLong;
    } else if (allows_type && EqualsIgnoringCase(options[i], "type")) {
      scan.type = value;
    } else if (EqualsIgnoringCase(options[i], "count")) {
      const auto count = ParseInt64(value);
      if (!count) return kNotAnInteger;
      if (*count < 1) return kSyntaxError;
      scan.count = static_cast<uint32_t>(std::min<int64_t>(*count, kScanCountMax));
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

bool IsScanCursor(std::string_view word) {
  const std::string copy(word);
  if (!copy.empty() && std::isspace(static_cast<unsigned char>(copy[0])) != 0) return false;
  char* end = nullptr;
  errno = 0;
  static_cast<void>(std::strtoull(copy.c_str(), &end, 10));
  return *end == '\0' && errno != ERANGE;
}

}  // namespace skep

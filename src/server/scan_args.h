// scan_args.h: the arguments of SCAN, HSCAN, SSCAN and ZSCAN.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace skep {

// Matching takes time with the product of the sizes of pattern and key.
inline constexpr size_t kPatternBytesMax = 1024;
inline constexpr std::string_view kPatternTooLong =
    "ERR pattern exceeds the maximum size (1024 bytes)";

struct ScanArgs {
  std::string_view pattern = "*";
  uint32_t count = 10;
  std::optional<std::string_view> type = {};

  // Whether keys of this type are wanted, by the name that TYPE has for it.
  bool WantsType(std::string_view name) const;
};

// Reads the options behind the cursor; TYPE only if it is allowed. Returns an error text if they
// are wrong, else an empty one.
std::string_view ParseScan(std::span<const std::string_view> options, bool allows_type,
                           ScanArgs& scan);

// Whether Redis takes the word for a cursor.
bool IsScanCursor(std::string_view word);

}  // namespace skep

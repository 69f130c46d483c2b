// scan.h: ranges of the ordered keyspace, and the options of scans and walks.
#pragma once

#include <cstdint>
#include <string_view>

#include "skep/scratch.h"

namespace skep {

inline constexpr uint32_t kNoLimit = UINT32_MAX;

// [lo, hi) in the order of unsigned bytes (memcmp, shorter first). Bounds are views, may be longer
// than any key, and may be empty: an empty `lo` is before every key.
struct Range {
  std::string_view lo = {};
  std::string_view hi = {};
  bool unbounded = true;  // no upper bound; `hi` is ignored

  static Range All() { return {}; }
  static Range From(std::string_view lo) { return {.lo = lo}; }
  static Range Between(std::string_view lo, std::string_view hi) {
    return {.lo = lo, .hi = hi, .unbounded = false};
  }
};

// All keys that start with `prefix`. The upper bound is built in `scratch`.
Range PrefixRange(std::string_view prefix, Scratch& scratch);

// The smallest key that is larger than `key`, built in `scratch`: makes an open lower bound or a
// closed upper one.
std::string_view KeyAfter(std::string_view key, Scratch& scratch);

struct ScanOptions {
  uint32_t limit = kNoLimit;  // items
  bool reverse = false;       // from the largest key of the range down
  bool keys_only = false;
  bool any_type = false;  // also values that are not plain bytes (batch.h); else theirs are empty
  // Honeycomb's form (section 3.1): start at the largest key <= lo, if there is one. Forward only.
  bool seek_floor = false;
};

// Options of a step through all keys in no order (Batch::Walk).
struct WalkOptions {
  uint32_t limit = kNoLimit;  // items
  bool keys_only = false;
};

}  // namespace skep

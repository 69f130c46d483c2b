// bulk_load.h: fills an empty engine with pairs that are already sorted, as in a snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "skep/status.h"

namespace skep {

// The keys are divided into parts, which may be filled at the same time, each by a thread of its
// own. Until the last part is finished and Finish() was called, nothing else may use the engine; if
// it never is, the engine can only be destroyed.
class BulkLoad {
 public:
  // The pairs of the keys from `lower` up to `upper`. Thread safety: one owner. Must be destroyed
  // before the load.
  class Part {
   public:
    virtual ~Part() = default;
    // Adds the next pair, in the order of keys.
    //   kInvalidArgument  the key is not above the one before it, or not of this part; the deadline
    //                     is above kDeadlineMax
    //   kTooLarge         the key or the value
    //   kOutOfMemory
    virtual Status Add(std::string_view key, std::string_view value, uint64_t deadline_ms,
                       uint8_t type) = 0;
    // Called once, after the last pair.
    //   kOutOfMemory
    virtual Status Finish() = 0;
  };

  virtual ~BulkLoad() = default;

  // Begins a part; without `upper` it goes up to the last of all keys. Thread-safe.
  virtual std::unique_ptr<Part> Open(std::string_view lower, std::optional<std::string> upper) = 0;
  // Joins the parts, which must be finished and cover all keys, from the empty one up.
  //   kOutOfMemory
  virtual Status Finish() = 0;
};

}  // namespace skep

// pinned_value.h: a value that the engine which holds it keeps as it is, so that it need not be
// copied.
//
// The reader of a long value may ask that it is pinned (Request::kMayPin) and send its bytes from
// where they lie. Writes of the key go on meanwhile: they make other bytes, as for readers of older
// versions. What a pin keeps counts as memory of the engine as long as the pin lives, also once the
// key has another value; it keeps nothing else.
#pragma once

#include <cstddef>
#include <string_view>

namespace skep {

// The bytes of a value, or of a part of one. They do not change, and are kept until the object is
// destroyed, which must be before the engine is. Thread-safe, destruction by any thread included.
// Cost of the destruction: a cache line for each 16 KiB.
class PinnedValue {
 public:
  PinnedValue() = default;
  virtual ~PinnedValue() = default;
  PinnedValue(const PinnedValue&) = delete;
  PinnedValue& operator=(const PinnedValue&) = delete;

  virtual size_t size() const = 0;
  // The bytes from `offset` on, as far as they lie together: at least one. Requires that the offset
  // is less than size().
  virtual std::string_view From(size_t offset) const = 0;
};

}  // namespace skep

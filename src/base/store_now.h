// store_now.h: a moment of a store's time, and the conversion of instants of the wall clock.
//
// A store's time may be ahead of a wall clock that was set back (store_time.h). A client that names
// an instant (EXPIREAT) or asks for one (EXPIRETIME) means the wall clock. FromWall() converts it
// to the instant of the store's time at which the wall clock will show it, if both go on at the
// same pace. If the wall clock catches up before, the deadline comes late; it never comes early.
// ToWall() is the inverse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "skep/batch.h"

namespace skep {

// A moment in milliseconds since 1970 UTC.
struct StoreNow {
  uint64_t ms = 0;
  uint64_t behind_ms = 0;  // how far the wall clock was behind; 0: it was not

  // Converts a request's deadline from the wall clock to the store's time. A deadline that stands
  // for "none" or for "the key's own", or that is beyond the latest one, stays as it is; one that
  // would get beyond it becomes the latest one.
  uint64_t FromWall(uint64_t deadline_ms) const {
    if (IsSpecial(deadline_ms)) return deadline_ms;
    return std::min(deadline_ms + std::min(behind_ms, kDeadlineMax), kDeadlineMax);
  }
  uint64_t ToWall(uint64_t deadline_ms) const {
    if (IsSpecial(deadline_ms)) return deadline_ms;
    return deadline_ms > behind_ms ? deadline_ms - behind_ms : 1;
  }

 private:
  static bool IsSpecial(uint64_t deadline_ms) {
    return deadline_ms == 0 || deadline_ms > kDeadlineMax;
  }
};

}  // namespace skep

// store_now.h: a moment of a store's time, and instants of the wall clock in it.
//
// A store's time may be ahead of a wall clock that was set back (store_time.h). Whoever names an
// instant (EXPIREAT) or asks for one (EXPIRETIME) means the wall clock. FromWall() makes of it an
// instant of the store's time: the one at which the wall clock will show it, if both go on as they
// do. If the wall clock catches up before, the deadline comes late; it never comes early. ToWall()
// is the inverse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "skep/batch.h"

namespace skep {

// In milliseconds since 1970 UTC.
struct StoreNow {
  uint64_t ms = 0;
  uint64_t behind_ms = 0;  // by which the wall clock was behind it; 0: it was not

  // Moves a request's deadline from the wall clock to the store's time. A deadline that stands for
  // none or for the key's own, or that is too late, stays as it is; one that would get too late
  // becomes the latest there is.
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

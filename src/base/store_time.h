// store_time.h: the time of a store, by which its keys expire and its snapshots age.
//
//   store    |--------------------------.------------------------------------>   never goes back
//            | as the wall clock shows  | at the pace of the     | as the wall
//            |                          | monotonic clock        | clock shows
//   wall     |-------------------------->                        |------------>
//                            .----------- set back --------------'
//
// The store's time begins at the wall clock's time, or at what a recovery has found (StartAt) if
// that is later. It goes on at the pace of the monotonic clock, and follows the wall clock when
// that is ahead of it. So while the wall clock is behind, no time stands still and none comes
// twice: a time to live lasts as long as it says, and a key that has expired stays gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/store_now.h"

namespace skep {

// Thread-safe.
class StoreTime {
 public:
  // The clock must outlive this object.
  explicit StoreTime(Clock& clock) : clock_(clock) {}

  // Returns the time now. `behind_ms` is exact to kSlackMs, and stays what it is until the wall
  // clock is set by more than that: so ToWall() is the exact inverse of FromWall(). Cost: a reading
  // of both clocks.
  StoreNow Now();
  // From now on the time is not before `ms`.
  void StartAt(uint64_t ms);

  static constexpr int64_t kSlackMs = 10;

 private:
  int64_t LeadUs(int64_t* monotonic_us);
  int64_t MeasureBehind();

  Clock& clock_;
  // Relaxed: no other memory depends on them. The lead is in microseconds, in which not all of
  // kDeadlineMax fits, but a hundred thousand years do.
  std::atomic<int64_t> lead_us_{INT64_MIN};  // store's time less monotonic clock
  std::atomic<int64_t> behind_ms_{0};
};

}  // namespace skep

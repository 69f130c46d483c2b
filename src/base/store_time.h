// store_time.h: the time of a store: what its keys expire by and its snapshots age by.
//
//   store    |--------------------------.------------------------------------>   never goes back
//            | as the wall clock shows  | at the pace of the     | as the wall
//            |                          | monotonic clock        | clock shows
//   wall     |-------------------------->                        |------------>
//                            .----------- set back --------------'
//
// It begins at the wall clock's time, or at what a recovery has found (StartAt) if that is later,
// goes on at the pace of the monotonic clock, and follows the wall clock when that is ahead of it.
// So while the wall clock is behind, no time stands still and none comes twice: a time to live
// lasts as long as it says, and what has expired stays gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/store_now.h"

namespace skep {

// Thread-safe.
class StoreTime {
 public:
  // The clock must outlive it.
  explicit StoreTime(Clock& clock) : clock_(clock) {}

  // The time now. `behind_ms` is exact to kSlackMs, and stays what it is until the wall clock is
  // set by more than that: so what FromWall() has made, ToWall() takes back. Cost: a reading of
  // both clocks.
  StoreNow Now();
  // From now on the time is not before this one.
  void StartAt(uint64_t ms);

  static constexpr int64_t kSlackMs = 10;

 private:
  int64_t LeadUs(int64_t* monotonic_us);
  int64_t MeasureBehind();

  Clock& clock_;
  // Relaxed: nothing else depends on them. In microseconds, in which all of kDeadlineMax does not
  // fit, but a hundred thousand years do.
  std::atomic<int64_t> lead_us_{INT64_MIN};  // of the store's time before the monotonic clock
  std::atomic<int64_t> behind_ms_{0};
};

}  // namespace skep

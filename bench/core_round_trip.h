// core_round_trip.h: measures the distance of two cores: the time that a cache line takes to the
// other one and back.
//
//   first core                      second core
//   word = 2i + 1  ---------------> sees 2i + 1
//   sees 2i + 2    <--------------- word = 2i + 2
//
// Two threads of one core share a first-level cache (some 40 ns), two cores of one die share the
// last level (100 ns), two dies do not (several hundred). Virtual cores move between these places
// while a program runs, and two threads on one index become faster or slower.
#pragma once

#include <optional>
#include <vector>

namespace skep::bench {

// Returns the nanoseconds of a round trip between the first two of `cores`, the median of some
// short series, well under a millisecond in all; nothing if there is one core, or if the system
// does not keep a thread on its core. Not thread-safe.
std::optional<double> CoreRoundTripNs(const std::vector<int>& cores);

}  // namespace skep::bench

// memory_limits.h: measures what one core can get out of memory, in the plainest loops there are.
//
// These loops have no prefetch and no batches. Reads whose addresses do not depend on each other
// overlap as far as the core's window and its line fill buffers allow; that is the bound that a
// batch engine works towards. A chase, where each address is read from the line before, is the
// bound of a single request.
//
// Addresses come from a linear congruential generator kept in a register: a multiplication, an
// addition, a multiplication, about 5 cycles for each address and independent of all loads.
// AddressMops() measures the generator alone, so that the output shows it does not limit the rest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/huge_pages.h"

namespace skep::bench {

inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kRunBytes = 3200;  // of a random-start read
static_assert(kRunBytes % kLineBytes == 0);

// All functions below use the same region, in turn, on the calling thread. Each measures
// `repetitions` (> 0) times and returns the median.
class MemoryLimits {
 public:
  // `region` must be larger than kRunBytes, hold fewer than 2^32 lines, and outlive this object.
  // `reads` (> 0): lines read in one repetition of the fastest loop.
  MemoryLimits(PageRegion& region, uint64_t reads, int repetitions);

  // Makes every page resident. To be called first.
  void Touch();

  double AddressMops();          // addresses alone, nothing read
  double RandomReadMops();       // 8 bytes of a random line
  double RandomRmwMops();        // 8 bytes of a random line, changed in place
  double RandomStart3200Mops();  // all of 3,200 consecutive bytes, from a random line on
  double SequentialGbs();        // all bytes in order; 10^9 bytes a second
  // Does dependent reads, one after the other, along one cycle through all lines in random order.
  // Overwrites the region.
  double ChaseNs();

 private:
  uint64_t* line(uint64_t index) const { return words_ + index * (kLineBytes / sizeof(uint64_t)); }
  void MakeCycle();

  uint64_t* words_;
  uint64_t lines_;
  uint64_t reads_;
  int repetitions_;
};

}  // namespace skep::bench

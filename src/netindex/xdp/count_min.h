// count_min.h: about how often each of many keys was asked for lately.
//
// Four rows of counters; a key has one in each, which it shares with others. The least of its four
// is never below its true count (but for counts that threads add at the same time), and above it
// only if others share all four. Halved each second, a counter goes to twice what a second brings.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace skep::xdp {

class CountMin {
 public:
  // Counts a key by its hash, all of whose bits are random but the lowest. Returns its count.
  uint32_t Add(uint64_t hash) {
    uint32_t least = UINT32_MAX;
    for (size_t row = 0; row < kRows; ++row) {
      std::atomic<uint32_t>& counter = rows_[row][hash >> (4 + row * kBits) & (kColumns - 1)];
      least = std::min(least, counter.fetch_add(1, std::memory_order_relaxed) + 1);
    }
    return least;
  }
  void Halve() {
    for (auto& row : rows_) {
      for (std::atomic<uint32_t>& counter : row) {
        counter.store(counter.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
      }
    }
  }

 private:
  static constexpr size_t kRows = 4;
  static constexpr size_t kBits = 13;
  static constexpr size_t kColumns = size_t{1} << kBits;
  static_assert(4 + kRows * kBits <= 64);

  std::array<std::array<std::atomic<uint32_t>, kColumns>, kRows> rows_{};
};

}  // namespace skep::xdp

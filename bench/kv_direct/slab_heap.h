// slab_heap.h: allocates addresses of slabs in a part of a model's memory: powers of two, larger
// ones are split, none is ever freed.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace skep::bench {

class SlabHeap {
 public:
  static constexpr uint32_t kBlockBytes = 512;  // the largest slab

  // Allocates in [begin, end) of the model's addresses. A slab has at least `bytes_min`, a power of
  // two.
  SlabHeap(uint64_t begin, uint64_t end, uint32_t bytes_min)
      : next_((begin + kBlockBytes - 1) / kBlockBytes * kBlockBytes),
        end_(end),
        bytes_min_(bytes_min) {}

  // Returns no address if only smaller slabs are left. 0 < bytes <= kBlockBytes.
  std::optional<uint64_t> Allocate(uint32_t bytes) {
    const uint32_t wanted = std::bit_ceil(bytes < bytes_min_ ? bytes_min_ : bytes);
    uint32_t found = wanted;
    while (found < kBlockBytes && FreeOf(found).empty()) found *= 2;
    if (found == kBlockBytes && FreeOf(found).empty()) {
      if (next_ + kBlockBytes > end_) return std::nullopt;
      FreeOf(found).push_back(next_);
      next_ += kBlockBytes;
    }
    const uint64_t at = FreeOf(found).back();
    FreeOf(found).pop_back();
    while (found > wanted) {
      found /= 2;
      FreeOf(found).push_back(at + found);
    }
    return at;
  }

 private:
  std::vector<uint64_t>& FreeOf(uint32_t bytes) {
    return free_[static_cast<size_t>(std::countr_zero(bytes))];
  }

  uint64_t next_;
  const uint64_t end_;
  const uint32_t bytes_min_;
  std::array<std::vector<uint64_t>, 10> free_;  // by the logarithm of their size
};
static_assert(1u << 9 == SlabHeap::kBlockBytes);

}  // namespace skep::bench

// compare_bytes.h: the order of keys.
//
// Byte strings are ordered by their unsigned bytes; a proper prefix comes first. The result is that
// of memcmp and then of the sizes, but without a call where the first 32 bytes decide: keys are
// short, and a search in a node of the paper's layout compares some twenty of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep {

static_assert(std::endian::native == std::endian::little);

// Returns <0, 0 or >0. Reads nothing outside the two strings.
inline int CompareBytes(std::string_view a, std::string_view b) {
  const auto load8 = [](const char* at) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  };
  const auto order8 = [](uint64_t x, uint64_t y) {
    return __builtin_bswap64(x) < __builtin_bswap64(y) ? -1 : 1;
  };
  const size_t common = std::min(a.size(), b.size());
  const int order_of_sizes = (a.size() > b.size()) - (a.size() < b.size());

  if (common >= 8) [[likely]] {
    size_t i = 0;
    for (; i + 8 <= common && i < 32; i += 8) {
      const uint64_t x = load8(a.data() + i);
      const uint64_t y = load8(b.data() + i);
      if (x != y) return order8(x, y);
    }
    if (common > 40) {
      const int order = std::memcmp(a.data() + i, b.data() + i, common - i);
      return order != 0 ? order : order_of_sizes;
    }
    // The last 8 common bytes: those not compared yet, and some before them that are equal.
    const uint64_t x = load8(a.data() + common - 8);
    const uint64_t y = load8(b.data() + common - 8);
    return x != y ? order8(x, y) : order_of_sizes;
  }
  for (size_t i = 0; i < common; ++i) {
    if (a[i] != b[i]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]) ? -1 : 1;
    }
  }
  return order_of_sizes;
}

}  // namespace skep

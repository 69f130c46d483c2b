// large_hints.h: which keys have had large collections a moment ago.
//
// The wrapped engine looks at a key before it sets a call on a large collection aside. A key that
// has a hint is set aside without that look. A hint may be wrong: a call that is set aside is done
// right whatever the key has, only slower.
//
// Each place of the table holds the hash of one key. A hint is dropped by a hint for another key of
// the same place, and by a call that finds no large collection under the key.
//
// Thread-safe: each place is one atomic number, and any of its values is a right one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace skep::collections {

class LargeHints {
 public:
  bool Has(std::string_view key) const {
    const uint64_t hash = HashOf(key);
    return places_[hash / 2 % kPlaces].load(std::memory_order_relaxed) == hash;
  }
  // Tells whether the key has a large collection.
  void Note(std::string_view key, bool is_large) {
    const uint64_t hash = HashOf(key);
    std::atomic<uint64_t>& place = places_[hash / 2 % kPlaces];
    // Looks first, so that threads that agree do not take the line from each other.
    if ((place.load(std::memory_order_relaxed) == hash) == is_large) return;
    place.store(is_large ? hash : kNone, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kPlaces = 64;
  static constexpr uint64_t kNone = 0;

  static uint64_t HashOf(std::string_view key) { return std::hash<std::string_view>()(key) | 1; }

  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace skep::collections

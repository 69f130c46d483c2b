#include "hash/groups.h"

#include <atomic>

namespace skep::hash {

void Groups::Divide() {
  uint16_t begin = 0;
  for (Group& group : std::span(groups_).first(mask_ + 1)) {
    const uint16_t size = group.end;
    group = {.begin = begin, .end = begin, .number = 0, .moves = Table::kNoMoves};
    begin = static_cast<uint16_t>(begin + size);
  }
}

// Threads begin at different partitions, so that they meet less.
uint32_t Groups::FirstOfThread() {
  static std::atomic<uint32_t> next_thread{0};
  static thread_local const uint32_t thread = next_thread.fetch_add(1, std::memory_order_relaxed);
  constexpr uint32_t kStride = 7;  // odd: neighbours begin far from each other
  return thread * kStride;
}

}  // namespace skep::hash

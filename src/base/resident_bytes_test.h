// resident_bytes_test.h: how much of a piece of memory is resident.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace skep {

// Returns how many bytes of the memory, whole pages, are resident.
inline uint64_t ResidentBytesOf(std::span<std::byte> memory) {
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> is_resident(memory.size() / page_bytes);
  EXPECT_EQ(mincore(memory.data(), memory.size(), is_resident.data()), 0);
  return static_cast<uint64_t>(std::ranges::count(is_resident, 1)) * page_bytes;
}

// Waits until all of the memory is resident without touching it. Returns false after a minute.
inline bool BecomesResident(std::span<std::byte> memory) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (ResidentBytesOf(memory) < memory.size()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace skep

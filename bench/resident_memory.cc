#include "bench/resident_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace skep::bench {

std::optional<uint64_t> ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return std::nullopt;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<uint64_t> ResidentHugeBytes() {
  std::ifstream smaps("/proc/self/smaps_rollup");
  for (std::string line; std::getline(smaps, line);) {
    unsigned long kib = 0;
    if (std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1) return uint64_t{kib} * 1024;
  }
  return std::nullopt;
}

void MapLargeBlocks() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

void RestartWithHugeMalloc(char** argv) {
  constexpr const char* kTunables = "GLIBC_TUNABLES";
  if (std::getenv(kTunables) != nullptr) return;
  if (setenv(kTunables, "glibc.malloc.hugetlb=1", 1) == 0) execv("/proc/self/exe", argv);
}

void ResidentGrowth::Begin() { begin_ = Read(); }

void ResidentGrowth::End() {
  const Reading end = Read();
  sum_.bytes += end.bytes - begin_.bytes;
  sum_.huge_bytes += end.huge_bytes - begin_.huge_bytes;
}

std::optional<uint64_t> ResidentGrowth::bytes() const {
  if (!known_) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(sum_.bytes, 0));
}

std::optional<double> ResidentGrowth::huge_fraction() const {
  if (!known_ || sum_.bytes <= 0) return std::nullopt;
  return std::clamp(static_cast<double>(sum_.huge_bytes) / static_cast<double>(sum_.bytes), 0.0,
                    1.0);
}

ResidentGrowth::Reading ResidentGrowth::Read() {
  malloc_trim(0);
  const auto bytes = ResidentBytes();
  const auto huge_bytes = ResidentHugeBytes();
  known_ = known_ && bytes && huge_bytes;
  return {.bytes = static_cast<int64_t>(bytes.value_or(0)),
          .huge_bytes = static_cast<int64_t>(huge_bytes.value_or(0))};
}

}  // namespace skep::bench

#include "base/release_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace skep {

size_t ReleasePages(std::span<char> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + bytes.size()) / page * page;
  if (first >= end) return 0;
  char* const at = bytes.data() + (first - begin);
  return madvise(at, end - first, MADV_DONTNEED) == 0 ? end - first : 0;
}

}  // namespace skep

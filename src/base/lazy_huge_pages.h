// lazy_huge_pages.h: puts shared memory on huge pages, 2 MiB at a time, as it is first written.
//
// Where the kernel's setting for files of memory (shmem_enabled) is "never", as it is by default,
// none of them gets huge pages by itself. But pages that are there may be joined on demand, from
// Linux 6.1 on (PageRegion::MakeHuge). That costs least while hardly any page of the 2 MiB is
// there: some tenths of a millisecond, as the page faults of 512 small pages do. Everybody who maps
// the memory has the huge page then.
//
// Thread safety: one owner; others may use the memory meanwhile.
#pragma once

#include <cstddef>
#include <vector>

#include "base/huge_pages.h"

namespace skep {

class LazyHugePages {
 public:
  // All of `memory` is told at once that huge pages are wanted: told piece by piece it would be as
  // many mappings to the kernel, which has a limit for these.
  explicit LazyHugePages(PageRegion& memory)
      : is_joined_(memory.size() / PageRegion::kHugePageBytes) {
    memory.Advise(0, is_joined_.size() * PageRegion::kHugePageBytes, Pages::kHuge);
  }

  // The bytes from `begin` to `end` of the memory, at least one, have just been written.
  void Written(PageRegion& memory, size_t begin, size_t end) {
    const size_t last = (end - 1) / PageRegion::kHugePageBytes;
    for (size_t page = begin / PageRegion::kHugePageBytes; page <= last; ++page) {
      if (page < is_joined_.size() && !is_joined_[page]) Join(memory, page);
    }
  }

 private:
  // It is tried once: if the system refuses it does so the next time, too.
  void Join(PageRegion& memory, size_t page) {
    is_joined_[page] = true;
    memory.MakeHuge(page * PageRegion::kHugePageBytes, PageRegion::kHugePageBytes);
  }

  std::vector<bool> is_joined_;
};

}  // namespace skep

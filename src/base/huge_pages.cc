#include "base/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace skep {
namespace {

constexpr int kMadvCollapse = 25;  // MADV_COLLAPSE, which glibc has from 2.37 on

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// EINVAL means that this kernel has no huge pages at all: its pages are plain whichever kind is
// asked for.
bool AdviseKernel(void* begin, size_t bytes, Pages pages) {
  const int advice = pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
  return madvise(begin, bytes, advice) == 0 || errno == EINVAL;
}

// The lines of a mapping in smaps that count its huge pages: anonymous ones, those of a file of
// memory, and those that were reserved (hugetlb), shared or not.
constexpr std::string_view kHugeCounts[] = {
    "AnonHugePages:", "ShmemPmdMapped:", "Shared_Hugetlb:", "Private_Hugetlb:"};

uint64_t HugeBytesIn(const std::string& line) {
  for (const std::string_view name : kHugeCounts) {
    unsigned long kib = 0;
    if (!line.starts_with(name)) continue;
    if (std::sscanf(line.c_str() + name.size(), "%lu kB", &kib) == 1) return uint64_t{kib} * 1024;
  }
  return 0;
}

// Parses the line that opens a mapping in smaps: "7f12a000-7f34b000 rw-p ...".
bool ParseMapping(const std::string& line, uintptr_t* first, uintptr_t* last) {
  unsigned long from = 0;
  unsigned long to = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) != 2) return false;
  *first = from;
  *last = to;
  return true;
}

}  // namespace

Result<PageRegion> PageRegion::ReserveSpace(size_t bytes) {
  const size_t size = RoundUp(bytes, kHugePageBytes);
  // One huge page more on each side: for the alignment; what is left of the two are the guards.
  const size_t mapping_bytes = size + 2 * kHugePageBytes;
  void* mapping =
      mmap(nullptr, mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return Fail(Code::kIo, "reserving memory", errno);

  const auto at = reinterpret_cast<uintptr_t>(mapping);
  auto* begin = static_cast<std::byte*>(mapping) + (RoundUp(at + 1, kHugePageBytes) - at);
  return PageRegion(static_cast<std::byte*>(mapping), mapping_bytes, begin, size);
}

Result<PageRegion> PageRegion::Reserve(size_t bytes, Pages pages) {
  auto region = ReserveSpace(bytes);
  if (!region) return region;
  if (mprotect(region->begin_, region->size_, PROT_READ | PROT_WRITE) != 0) {
    return Fail(Code::kIo, "making memory writable", errno);
  }
  if (!AdviseKernel(region->begin_, region->size_, pages)) {
    return Fail(Code::kIo, "choosing the page size", errno);
  }
  return region;
}

Result<PageRegion> PageRegion::Map(int file, size_t bytes, bool is_writable) {
  auto region = ReserveSpace(bytes);
  if (!region) return region;
  const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const at = mmap(region->begin_, bytes, protection, MAP_SHARED | MAP_FIXED, file, 0);
  if (at == MAP_FAILED) return Fail(Code::kIo, "mapping shared memory", errno);
  region->size_ = bytes;
  region->is_file_ = true;
  return region;
}

PageRegion::PageRegion(PageRegion&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      begin_(other.begin_),
      size_(other.size_),
      is_file_(other.is_file_) {}

PageRegion& PageRegion::operator=(PageRegion&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  std::swap(is_file_, other.is_file_);
  return *this;
}

PageRegion::~PageRegion() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void PageRegion::Advise(size_t offset, size_t bytes, Pages pages) {
  AdviseKernel(begin_ + offset, bytes, pages);
}

void PageRegion::MakeHuge(size_t offset, size_t bytes) {
  Advise(offset, bytes, Pages::kHuge);
  madvise(begin_ + offset, bytes, kMadvCollapse);
}

void PageRegion::GiveBack(size_t offset, size_t bytes) {
  SKEP_CHECK(madvise(begin_ + offset, bytes, is_file_ ? MADV_REMOVE : MADV_DONTNEED) == 0);
}

void PageRegion::MakeResident(std::span<std::byte> part) {
  madvise(part.data(), part.size(), MADV_POPULATE_WRITE);
}

Result<uint64_t> PageRegion::HugeBytes() const {
  std::ifstream smaps("/proc/self/smaps");
  if (!smaps) return Fail(Code::kIo, "opening /proc/self/smaps", errno);
  const auto begin = reinterpret_cast<uintptr_t>(begin_);
  uint64_t bytes = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t first = 0;
    uintptr_t last = 0;
    if (ParseMapping(line, &first, &last)) {
      inside = first >= begin && last <= begin + size_;
    } else if (inside) {
      bytes += HugeBytesIn(line);
    }
  }
  return bytes;
}

}  // namespace skep

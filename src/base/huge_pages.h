// huge_pages.h: memory on pages of the wanted size, and how much of it is on huge pages.
//
//   ...  PROT_NONE  | begin()  read and write, 2 MiB aligned  | PROT_NONE ...
//
// The guards on both sides keep the kernel from merging the mapping with a neighbour, so that what
// /proc/self/smaps says about it is about nothing else; an overrun faults.
//
// A kind of pages is only wished for: the kernel gives a transparent huge page when a 2 MiB frame
// is free and its setting (/sys/kernel/mm/transparent_hugepage/enabled) is not "never". HugeBytes()
// tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "skep/status.h"

namespace skep {

enum class Pages : uint8_t {
  kHuge,   // 2 MiB wherever the kernel can
  kPlain,  // the smallest pages of the machine, even where huge pages are the system's default
};

// Zero-filled memory, given back on destruction. Nothing is resident before it is touched.
// Thread safety: as plain memory.
class PageRegion {
 public:
  static constexpr size_t kHugePageBytes = size_t{2} << 20;

  // Reserves at least `bytes` (> 0), rounded up to whole huge pages. A kernel without huge pages is
  // not an error: HugeBytes() stays 0 there.
  //   kIo  the errno of mmap, mprotect or madvise (ENOMEM: no address space, or over a limit)
  static Result<PageRegion> Reserve(size_t bytes, Pages pages);
  // The same of `bytes` of a file of memory from its begin on, which others may map too. The caller
  // knows that the file has as many, and goes on having them.
  //   kIo  as Reserve
  static Result<PageRegion> Map(int file, size_t bytes, bool is_writable);

  PageRegion(PageRegion&& other) noexcept;
  PageRegion& operator=(PageRegion&& other) noexcept;
  ~PageRegion();

  // Asks for other pages under a part of the region that is not touched yet. If the system refuses,
  // the pages stay as they were. Offset and size are multiples of kHugePageBytes.
  void Advise(size_t offset, size_t bytes, Pages pages);

  // Has the system join the pages of a part of the region, in use or not, to huge ones now; the
  // contents are copied. If the system refuses, or Linux is older than 6.1, nothing changes. Offset
  // and size are multiples of kHugePageBytes. Thread-safe: the part may be used meanwhile. Cost:
  // some hundred microseconds a page, or more.
  void MakeHuge(size_t offset, size_t bytes);

  // Gives the pages of a part of the region back to the system; the part is zero-filled again, of a
  // file for all who map it. Offset and size are multiples of the machine's page size. Only
  // MakeResident may use the part meanwhile.
  void GiveBack(size_t offset, size_t bytes);

  // Has the system find and clear now the pages of `part` that are not resident yet. Changes no
  // byte, so other threads may use the part meanwhile. Does nothing where the kernel is older than
  // 5.14 or has no memory.
  static void MakeResident(std::span<std::byte> part);

  std::byte* begin() const { return begin_; }
  size_t size() const { return size_; }

  // Returns how many bytes of the region are on huge pages now. Reads /proc/self/smaps:
  // milliseconds.
  //   kIo  /proc cannot be read
  Result<uint64_t> HugeBytes() const;

 private:
  // Address space between guards, in which nothing can be touched yet.
  static Result<PageRegion> ReserveSpace(size_t bytes);

  PageRegion(std::byte* mapping, size_t mapping_bytes, std::byte* begin, size_t size)
      : mapping_(mapping), mapping_bytes_(mapping_bytes), begin_(begin), size_(size) {}

  std::byte* mapping_;  // guards included; null if moved from
  size_t mapping_bytes_;
  std::byte* begin_;
  size_t size_;
  bool is_file_ = false;
};

}  // namespace skep

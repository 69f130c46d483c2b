// shared_memory.h: memory that other processes map.
//
//   one process                                              another
//   Create(bytes) -- fd() or ReadOnlyDescriptor(), over a unix socket --> Map(descriptor)
//
// A file of memory (memfd_create). Its size is sealed, so that whoever maps it never faults at
// bytes that are gone: Map() refuses a descriptor without these seals. What two processes do to the
// same bytes is between them.
//
// Zero-filled. A page is resident once any process touches it, be it only to read it, so that 64
// GiB may be made and cost what is used; hugetlb pages alone are set aside at once. It is given
// back when nobody maps it and nobody has a descriptor.
//
// Read-only: a descriptor of ReadOnlyDescriptor() cannot be mapped to write. Another user's process
// cannot make a better one of it; one of the same user can, as it can trace this process too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/huge_pages.h"
#include "skep/status.h"

namespace skep {

enum class SharedPages : uint8_t {
  kHugetlb,      // 2 MiB, from those the system keeps for this (vm.nr_hugepages)
  kTransparent,  // 2 MiB where the kernel can: a wish, as of private memory (huge_pages.h)
  kPlain,        // the machine's smallest
};

// "hugetlb", "transparent", "4 KiB".
std::string_view NameOf(SharedPages pages);

// Thread safety: as plain memory.
class SharedMemory {
 public:
  // At least `bytes` (> 0), rounded up to 2 MiB, on the pages that are wished for, or the best
  // after these that can be had: pages() tells.
  //   kIo  the errno of memfd_create, ftruncate, fchmod, fcntl or mmap
  static Result<SharedMemory> Create(size_t bytes, SharedPages wish);

  // Maps what another process has created; writable if the descriptor is. A child of fork(2) does
  // not have the mapping, so that what has been mapped is gone when this process is.
  //   kInvalidArgument  it is no shared memory, or its size is not sealed
  //   kIo               the errno of fcntl, fstat or mmap (ENOMEM: no address space)
  static Result<SharedMemory> Map(FileDescriptor file);

  // A descriptor of the same memory that can only be read.
  //   kIo  the errno: without /proc there is none
  Result<FileDescriptor> ReadOnlyDescriptor() const;

  std::byte* begin() const { return memory_.begin(); }
  size_t size() const { return memory_.size(); }
  int fd() const { return file_.get(); }
  bool is_writable() const { return is_writable_; }
  SharedPages pages() const { return pages_; }
  // The mapping, for whoever gives back parts of it, say.
  PageRegion& memory() { return memory_; }
  const PageRegion& memory() const { return memory_; }

 private:
  SharedMemory(FileDescriptor file, PageRegion memory, SharedPages pages, bool is_writable)
      : file_(std::move(file)),
        memory_(std::move(memory)),
        pages_(pages),
        is_writable_(is_writable) {}

  static Result<SharedMemory> CreateOn(size_t bytes, SharedPages pages);

  FileDescriptor file_;
  PageRegion memory_;
  SharedPages pages_;
  bool is_writable_;
};

}  // namespace skep

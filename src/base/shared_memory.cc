#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

namespace skep {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr size_t kPageBytes = 4096;
constexpr unsigned kHugetlb2MiB = 21u << 26;  // MFD_HUGE_2MB, which glibc's headers lack

Status MappingError(const char* what) {
  return Status(Code::kIo, what, static_cast<uint64_t>(errno));
}

// Whether the kernel's setting lets files of memory have transparent huge pages.
bool HasTransparentPages() {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string text;
  std::getline(setting, text);
  return !text.empty() && !text.contains("[never]") && !text.contains("[deny]");
}

// Only its owner may open it again: the mode that it has at first lets everybody.
Status SizeAndSeal(int file, size_t bytes) {
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return MappingError("sizing shared memory");
  if (fchmod(file, S_IRUSR | S_IWUSR) != 0) return MappingError("protecting shared memory");
  if (fcntl(file, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return MappingError("sealing shared memory");
  }
  return {};
}

Result<SharedPages> PagesOf(int file) {
  struct statfs about;
  if (fstatfs(file, &about) != 0)
    return Fail(MappingError("asking for the pages of shared memory"));
  if (about.f_type == HUGETLBFS_MAGIC) return SharedPages::kHugetlb;
  return HasTransparentPages() ? SharedPages::kTransparent : SharedPages::kPlain;
}

// The size of a file that another process cannot change.
Result<size_t> SealedSize(int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 && errno != EINVAL)
    return Fail(MappingError("asking for the seals of shared memory"));
  if (seals < 0) return Fail(Code::kInvalidArgument, "a descriptor is not one of shared memory");
  if ((seals & kSizeSeals) != kSizeSeals) {
    return Fail(Code::kInvalidArgument, "the size of shared memory is not sealed");
  }
  struct stat about;
  if (fstat(file, &about) != 0) return Fail(MappingError("asking for the size of shared memory"));
  if (about.st_size <= 0 || about.st_size % kPageBytes != 0) {
    return Fail(Code::kInvalidArgument, "the size of shared memory is not one of whole pages");
  }
  return static_cast<size_t>(about.st_size);
}

}  // namespace

std::string_view NameOf(SharedPages pages) {
  switch (pages) {
    case SharedPages::kHugetlb:
      return "hugetlb";
    case SharedPages::kTransparent:
      return "transparent";
    case SharedPages::kPlain:
      return "4 KiB";
  }
  return "";
}

Result<SharedMemory> SharedMemory::Create(size_t bytes, SharedPages wish) {
  if (wish == SharedPages::kHugetlb) {
    auto memory = CreateOn(bytes, SharedPages::kHugetlb);
    if (memory) return memory;
    wish = SharedPages::kTransparent;
  }
  const bool is_huge = wish == SharedPages::kTransparent && HasTransparentPages();
  return CreateOn(bytes, is_huge ? SharedPages::kTransparent : SharedPages::kPlain);
}

// The mapping has the kernel set hugetlb pages aside, or fails: without that a process that touches
// one more page than there are would die.
Result<SharedMemory> SharedMemory::CreateOn(size_t bytes, SharedPages pages) {
  constexpr size_t kUnit = PageRegion::kHugePageBytes;
  const size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
  const unsigned huge = pages == SharedPages::kHugetlb ? MFD_HUGETLB | kHugetlb2MiB : 0;
  FileDescriptor file(memfd_create("skep", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge));
  if (!file.valid()) return Fail(MappingError("making shared memory"));
  if (const Status s = SizeAndSeal(file.get(), size); !s.ok()) return Fail(s);
  auto memory = PageRegion::Map(file.get(), size, true);
  if (!memory) return Fail(memory.error());
  if (pages != SharedPages::kHugetlb) {
    memory->Advise(0, size, pages == SharedPages::kPlain ? Pages::kPlain : Pages::kHuge);
  }
  return SharedMemory(std::move(file), std::move(*memory), pages, true);
}

Result<SharedMemory> SharedMemory::Map(FileDescriptor file) {
  const auto size = SealedSize(file.get());
  if (!size) return Fail(size.error());
  const auto pages = PagesOf(file.get());
  if (!pages) return Fail(pages.error());
  const int flags = fcntl(file.get(), F_GETFL);
  if (flags < 0) return Fail(MappingError("asking for the access to shared memory"));
  const bool is_writable = (flags & O_ACCMODE) == O_RDWR;
  auto memory = PageRegion::Map(file.get(), *size, is_writable);
  if (!memory) return Fail(memory.error());
  if (madvise(memory->begin(), *size, MADV_DONTFORK) != 0) {
    return Fail(MappingError("keeping shared memory from children"));
  }
  return SharedMemory(std::move(file), std::move(*memory), *pages, is_writable);
}

Result<FileDescriptor> SharedMemory::ReadOnlyDescriptor() const {
  const std::string path = fmt::format("/proc/self/fd/{}", fd());
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Fail(MappingError("opening shared memory to read it"));
  return file;
}

}  // namespace skep

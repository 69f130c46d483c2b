#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/lazy_huge_pages.h"
#include "base/resident_bytes_test.h"

namespace skep {
namespace {

constexpr size_t kHugeBytes = PageRegion::kHugePageBytes;

SharedMemory Create(size_t bytes, SharedPages pages = SharedPages::kPlain) {
  auto memory = SharedMemory::Create(bytes, pages);
  EXPECT_TRUE(memory) << memory.error().ToString();
  return std::move(*memory);
}

// The descriptor another process would receive.
FileDescriptor Received(const SharedMemory& memory) {
  return FileDescriptor(fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
}

SharedMemory Map(FileDescriptor file) {
  auto memory = SharedMemory::Map(std::move(file));
  EXPECT_TRUE(memory) << memory.error().ToString();
  return std::move(*memory);
}

// What a child process that runs `function` exits with.
template <typename Function>
int ExitCodeOfChild(Function function) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

// Goal: every wish gives memory that is whole huge pages, aligned, zero and writable to its end,
// and the pages it tells of are those wished for or, where the system has none, the next best.
TEST(SharedMemory, IsZeroAndWritableOnEveryKindOfPage) {
  for (const auto wish : {SharedPages::kHugetlb, SharedPages::kTransparent, SharedPages::kPlain}) {
    SCOPED_TRACE(NameOf(wish));
    const SharedMemory memory = Create(kHugeBytes + 1, wish);
    EXPECT_EQ(memory.size(), 2 * kHugeBytes);
    EXPECT_GE(memory.pages(), wish);
    EXPECT_TRUE(memory.is_writable());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.begin()) % kHugeBytes, 0u);
    for (size_t i = 0; i < memory.size(); i += 4096) ASSERT_EQ(memory.begin()[i], std::byte{0});
    memory.begin()[memory.size() - 1] = std::byte{1};
  }
}

// Goal: what it tells of its pages is what the kernel gave.
TEST(SharedMemory, TellsWhichPagesItHas) {
  EXPECT_EQ(NameOf(SharedPages::kHugetlb), "hugetlb");
  EXPECT_EQ(NameOf(SharedPages::kTransparent), "transparent");
  EXPECT_EQ(NameOf(SharedPages::kPlain), "4 KiB");
  for (const auto wish : {SharedPages::kHugetlb, SharedPages::kTransparent, SharedPages::kPlain}) {
    const SharedMemory memory = Create(kHugeBytes, wish);
    std::memset(memory.begin(), 1, memory.size());
    const uint64_t huge = memory.memory().HugeBytes().value();
    if (memory.pages() == SharedPages::kPlain) {
      EXPECT_EQ(huge, 0u);
    } else if (memory.pages() == SharedPages::kHugetlb) {
      EXPECT_EQ(huge, memory.size());
    } else if (huge == 0) {
      GTEST_SKIP() << "no free 2 MiB frame";
    }
    EXPECT_EQ(Map(Received(memory)).pages() == SharedPages::kHugetlb,
              memory.pages() == SharedPages::kHugetlb);
  }
}

// Goal: an arena's region of address space costs nothing before it is used, and then what is used.
TEST(SharedMemory, IsSparse) {
  const SharedMemory memory = Create(uint64_t{64} << 30);
  EXPECT_EQ(memory.size(), uint64_t{64} << 30);
  memory.begin()[memory.size() / 2] = std::byte{7};
  EXPECT_EQ(ResidentBytesOf({memory.begin() + memory.size() / 2, kHugeBytes}), 4096u);
  EXPECT_EQ(ResidentBytesOf({memory.begin(), kHugeBytes}), 0u);
}

// Goal: two mappings, as of two processes, are the same bytes in both directions, and outlive the
// other one.
TEST(SharedMemory, IsTheSameWhereverItIsMapped) {
  auto owner = std::make_unique<SharedMemory>(Create(kHugeBytes));
  const SharedMemory other = Map(Received(*owner));
  ASSERT_EQ(other.size(), owner->size());
  EXPECT_NE(other.begin(), owner->begin());
  EXPECT_TRUE(other.is_writable());
  owner->begin()[17] = std::byte{1};
  EXPECT_EQ(other.begin()[17], std::byte{1});
  other.begin()[kHugeBytes - 1] = std::byte{2};
  EXPECT_EQ(owner->begin()[kHugeBytes - 1], std::byte{2});
  owner.reset();
  EXPECT_EQ(other.begin()[17], std::byte{1});
}

// Goal: what is given back is zero for everybody, and the rest stays.
TEST(SharedMemory, GivesBackAPart) {
  SharedMemory owner = Create(2 * kHugeBytes, SharedPages::kTransparent);
  const SharedMemory other = Map(Received(owner));
  std::memset(owner.begin(), 1, owner.size());
  owner.memory().GiveBack(65536, kHugeBytes);
  EXPECT_EQ(other.begin()[65535], std::byte{1});
  EXPECT_EQ(other.begin()[65536], std::byte{0});
  EXPECT_EQ(other.begin()[65536 + kHugeBytes - 1], std::byte{0});
  EXPECT_EQ(other.begin()[65536 + kHugeBytes], std::byte{1});
}

using SharedMemoryDeathTest = ::testing::Test;

// Goal: a descriptor to read with cannot be mapped to write, made writable, or be written to.
TEST(SharedMemoryDeathTest, ReadOnlyMeansIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const SharedMemory owner = Create(kHugeBytes);
  auto file = owner.ReadOnlyDescriptor();
  ASSERT_TRUE(file) << file.error().ToString();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, file->get(), 0), MAP_FAILED);
  EXPECT_EQ(write(file->get(), "x", 1), -1);
  EXPECT_EQ(fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  const SharedMemory reader = Map(std::move(*file));
  EXPECT_FALSE(reader.is_writable());
  owner.begin()[5] = std::byte{3};
  EXPECT_EQ(reader.begin()[5], std::byte{3});
  EXPECT_EQ(mprotect(reader.begin(), 4096, PROT_READ | PROT_WRITE), -1);
  volatile std::byte* const at = reader.begin();
  EXPECT_DEATH(*at = std::byte{1}, "");
}

// Goal: neither side can change the size under the other's feet.
TEST(SharedMemory, CannotBeTruncated) {
  const SharedMemory owner = Create(kHugeBytes);
  EXPECT_EQ(ftruncate(owner.fd(), 0), -1);
  EXPECT_EQ(ftruncate(owner.fd(), 2 * kHugeBytes), -1);
  EXPECT_EQ(fcntl(owner.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

// Goal: what is no shared memory of a size that stays is refused: each would let the other process
// end this one by making the file smaller.
TEST(SharedMemory, MapsOnlyWhatIsSealed) {
  const auto code = [](FileDescriptor file) {
    const auto memory = SharedMemory::Map(std::move(file));
    return memory ? Code::kOk : memory.error().code();
  };
  const auto memfd = [](off_t bytes, int seals) {
    FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(file.get(), bytes), 0);
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  };
  constexpr int kBoth = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_EQ(code(memfd(4096, kBoth)), Code::kOk);
  EXPECT_EQ(code(memfd(4096, F_SEAL_SHRINK)), Code::kInvalidArgument);
  EXPECT_EQ(code(memfd(4096, F_SEAL_GROW)), Code::kInvalidArgument);
  EXPECT_EQ(code(memfd(4095, kBoth)), Code::kInvalidArgument);
  EXPECT_EQ(code(memfd(0, kBoth)), Code::kInvalidArgument);
  EXPECT_EQ(code(FileDescriptor(open("/proc/self/exe", O_RDONLY))), Code::kInvalidArgument);
  EXPECT_EQ(code(FileDescriptor(open("/dev/null", O_RDWR))), Code::kInvalidArgument);
  EXPECT_EQ(code(FileDescriptor()), Code::kIo);
}

// Goal: more than the address space is an error with its errno.
TEST(SharedMemory, RefusesMoreThanTheAddressSpace) {
  const auto memory = SharedMemory::Create(size_t{1} << 60, SharedPages::kHugetlb);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), Code::kIo);
  EXPECT_EQ(memory.error().detail(), static_cast<uint64_t>(ENOMEM));
}

// Goal: a child process has the memory that its parent created, and does not have what its parent
// only mapped.
TEST(SharedMemory, ChildrenDoNotHaveWhatWasMapped) {
  const SharedMemory owner = Create(kHugeBytes);
  const SharedMemory other = Map(Received(owner));
  EXPECT_EQ(ExitCodeOfChild([&] {
              owner.begin()[1] = std::byte{9};
              return 0;
            }),
            0);
  EXPECT_EQ(other.begin()[1], std::byte{9});
  EXPECT_EQ(ExitCodeOfChild([&] {
              unsigned char is_resident = 0;
              return mincore(other.begin(), 4096, &is_resident) == -1 && errno == ENOMEM ? 42 : 1;
            }),
            42);
}

// Goal: what is written comes to lie on huge pages, and nothing else does, for all who map it.
// Method: one byte of the second of three. The kernel may have no free frame, or not know how.
TEST(LazyHugePages, AreThoseThatAreWritten) {
  const auto huge_bytes = [](const SharedMemory& memory) { return memory.memory().HugeBytes(); };
  SharedMemory control = Create(kHugeBytes, SharedPages::kTransparent);
  control.begin()[0] = std::byte{1};
  control.memory().MakeHuge(0, kHugeBytes);
  if (huge_bytes(control).value_or(0) == 0) GTEST_SKIP() << "the system joins no pages";
  SharedMemory memory = Create(3 * kHugeBytes, SharedPages::kTransparent);
  const SharedMemory other = Map(Received(memory));
  LazyHugePages pages(memory.memory());
  memory.begin()[kHugeBytes + 5] = std::byte{1};
  EXPECT_EQ(other.begin()[kHugeBytes + 5], std::byte{1});
  pages.Written(memory.memory(), kHugeBytes + 5, kHugeBytes + 6);
  EXPECT_EQ(huge_bytes(memory).value(), kHugeBytes);
  EXPECT_EQ(other.begin()[kHugeBytes + 5], std::byte{1});
  EXPECT_EQ(huge_bytes(other).value(), kHugeBytes);
}

}  // namespace
}  // namespace skep

#include "base/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace skep {
namespace {

constexpr size_t kBytes = 4 * PageRegion::kHugePageBytes;

bool KernelGivesHugePages() {
  std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(enabled, text);
  return text.find("[madvise]") != std::string::npos || text.find("[always]") != std::string::npos;
}

void TouchAll(PageRegion& region) { std::memset(region.begin(), 1, region.size()); }

// Goal: the layout of the header comment: aligned, rounded up, zero, writable to the last byte.
TEST(PageRegion, IsAlignedRoundedUpAndZero) {
  for (size_t bytes : {size_t{1}, PageRegion::kHugePageBytes, PageRegion::kHugePageBytes + 1}) {
    auto region = PageRegion::Reserve(bytes, Pages::kHuge);
    ASSERT_TRUE(region) << region.error().ToString();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region->begin()) % PageRegion::kHugePageBytes, 0u);
    EXPECT_EQ(region->size() % PageRegion::kHugePageBytes, 0u);
    EXPECT_GE(region->size(), bytes);
    EXPECT_LT(region->size(), bytes + PageRegion::kHugePageBytes);
    for (size_t i = 0; i < region->size(); i += 4096) ASSERT_EQ(region->begin()[i], std::byte{0});
    region->begin()[region->size() - 1] = std::byte{1};
  }
}

// Goal: a region that asks for plain pages has plain pages, whatever the system's default.
TEST(PageRegion, PlainHasNoHugeBytes) {
  auto region = PageRegion::Reserve(kBytes, Pages::kPlain);
  ASSERT_TRUE(region);
  TouchAll(*region);
  EXPECT_EQ(region->HugeBytes().value(), 0u);
}

// Goal: HugeBytes counts this region's pages and no other's.
// Method: untouched memory has none; a plain neighbour adds none. How many huge pages a touched
// region gets is the kernel's decision (it may have no free 2 MiB frame), so only bounds are
// certain.
TEST(PageRegion, HugeBytesAreItsOwn) {
  auto huge = PageRegion::Reserve(kBytes, Pages::kHuge);
  auto idle = PageRegion::Reserve(kBytes, Pages::kHuge);
  auto plain = PageRegion::Reserve(kBytes, Pages::kPlain);
  ASSERT_TRUE(huge && idle && plain);
  EXPECT_EQ(huge->HugeBytes().value(), 0u);
  TouchAll(*huge);
  TouchAll(*plain);
  const uint64_t bytes = huge->HugeBytes().value();
  EXPECT_LE(bytes, huge->size());
  EXPECT_EQ(bytes % PageRegion::kHugePageBytes, 0u);
  EXPECT_EQ(idle->HugeBytes().value(), 0u);
  EXPECT_EQ(plain->HugeBytes().value(), 0u);
  if (!KernelGivesHugePages()) GTEST_SKIP() << "the kernel's setting forbids huge pages";
  if (bytes == 0) GTEST_SKIP() << "no free 2 MiB frame";
}

// Goal: memory in use becomes a huge page, and keeps its contents.
// Method: the kernel may have no free 2 MiB frame at the moment: ten attempts.
TEST(PageRegion, JoinsPagesToHugeOnes) {
  if (!KernelGivesHugePages()) GTEST_SKIP() << "the system gives no huge pages";
  bool is_joined = false;
  for (int attempt = 0; attempt < 10 && !is_joined; ++attempt) {
    auto region = PageRegion::Reserve(kBytes, Pages::kPlain);
    ASSERT_TRUE(region);
    TouchAll(*region);
    EXPECT_EQ(region->HugeBytes().value(), 0u);
    region->MakeHuge(PageRegion::kHugePageBytes, PageRegion::kHugePageBytes);
    EXPECT_EQ(std::count(region->begin(), region->begin() + kBytes, std::byte{1}), kBytes);
    is_joined = region->HugeBytes().value() == PageRegion::kHugePageBytes;
  }
  EXPECT_TRUE(is_joined);
}

// Goal: moving hands the memory over; it is freed once.
TEST(PageRegion, Moves) {
  auto made = PageRegion::Reserve(kBytes, Pages::kPlain);
  ASSERT_TRUE(made);
  PageRegion first = std::move(*made);
  first.begin()[0] = std::byte{42};
  auto other = PageRegion::Reserve(kBytes, Pages::kPlain);
  ASSERT_TRUE(other);
  *other = std::move(first);
  EXPECT_EQ(other->begin()[0], std::byte{42});
}

// Goal: a part that is given back reads as zero, and its neighbours are as they were, on either
// kind of pages and with other pages advised for a part.
TEST(PageRegion, GivesBackAPart) {
  for (Pages pages : {Pages::kHuge, Pages::kPlain}) {
    auto region = PageRegion::Reserve(kBytes, pages);
    ASSERT_TRUE(region);
    region->Advise(0, PageRegion::kHugePageBytes, Pages::kPlain);
    TouchAll(*region);
    const size_t begin = PageRegion::kHugePageBytes - 65536;
    region->GiveBack(begin, 2 * 65536);
    for (size_t i = 0; i < region->size(); i += 4096) {
      const bool is_back = i >= begin && i < begin + 2 * 65536;
      ASSERT_EQ(region->begin()[i], std::byte{is_back ? uint8_t{0} : uint8_t{1}}) << i;
    }
  }
}

// Goal: a size that cannot be reserved is an error with its errno, not a crash.
TEST(PageRegion, RefusesMoreThanTheAddressSpace) {
  auto region = PageRegion::Reserve(size_t{1} << 60, Pages::kHuge);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code(), Code::kIo);
  EXPECT_EQ(region.error().detail(), static_cast<uint64_t>(ENOMEM));
}

using PageRegionDeathTest = ::testing::Test;

// Goal: an overrun faults instead of reading a neighbour.
TEST(PageRegionDeathTest, GuardsOnBothSides) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto region = PageRegion::Reserve(1, Pages::kPlain);
  ASSERT_TRUE(region);
  volatile std::byte* begin = region->begin();
  EXPECT_DEATH(begin[region->size()] = std::byte{1}, "");
  EXPECT_DEATH(*(begin - 1) = std::byte{1}, "");
}

}  // namespace
}  // namespace skep

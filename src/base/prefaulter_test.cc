#include "base/prefaulter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/huge_pages.h"
#include "base/resident_bytes_test.h"

namespace skep {
namespace {

constexpr size_t kPiece = PageRegion::kHugePageBytes;

// Goal: the pieces asked for become resident, no others do, and their contents stay.
TEST(Prefaulter, MakesMemoryResident) {
  for (const Pages pages : {Pages::kHuge, Pages::kPlain}) {
    auto region = PageRegion::Reserve(8 * kPiece, pages);
    ASSERT_TRUE(region);
    const auto piece = [&](size_t i) { return std::span(region->begin() + i * kPiece, kPiece); };
    piece(1)[5] = std::byte{7};
    Prefaulter prefaulter;
    for (const size_t i : {1, 4, 6}) prefaulter.Ask(piece(i));
    for (const size_t i : {1, 4, 6}) EXPECT_TRUE(BecomesResident(piece(i))) << i;
    for (const size_t i : {0, 2, 3, 5, 7}) EXPECT_EQ(ResidentBytesOf(piece(i)), 0u) << i;
    EXPECT_EQ(piece(1)[5], std::byte{7});
    EXPECT_EQ(std::ranges::count(piece(4), std::byte{0}), kPiece);
  }
}

// Goal: a prefaulter can be destroyed with any number of pieces waiting: none, some, or more than
// it keeps.
TEST(Prefaulter, EndsWithPiecesWaiting) {
  auto region = PageRegion::Reserve(512 * kPiece, Pages::kHuge);
  ASSERT_TRUE(region);
  {
    const Prefaulter never_asked;
  }
  Prefaulter().Ask({region->begin(), kPiece});
  Prefaulter prefaulter;
  prefaulter.Ask({region->begin(), kPiece});
  EXPECT_TRUE(BecomesResident({region->begin(), kPiece}));
  for (size_t i = 0; i < 512; ++i) prefaulter.Ask({region->begin() + i * kPiece, kPiece});
}

}  // namespace
}  // namespace skep

#include "bench/resident_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/huge_pages.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{64} << 20;

PageRegion Touched(Pages pages) {
  auto region = PageRegion::Reserve(kBytes, pages);
  std::memset(region->begin(), 1, region->size());
  Keep(region->begin());
  return std::move(*region);
}

// Goal: growth is the memory that was allocated between Begin and End and kept, and nothing of what
// happened between End and the next Begin.
// Method: regions so large that everything else in the process is noise.
TEST(ResidentGrowth, CountsWhatIsKeptInItsTurns) {
  constexpr double kNoise = 0.2 * kBytes;
  ResidentGrowth growth;
  growth.Begin();
  const PageRegion kept = Touched(Pages::kPlain);
  {
    const PageRegion given_back = Touched(Pages::kPlain);
  }
  growth.End();
  if (!growth.bytes()) GTEST_SKIP() << "no /proc";
  EXPECT_NEAR(static_cast<double>(*growth.bytes()), kBytes, kNoise);
  EXPECT_LT(growth.huge_fraction().value_or(0), 0.3);

  auto elsewhere = std::make_optional(Touched(Pages::kPlain));
  growth.Begin();
  const PageRegion more = Touched(Pages::kPlain);
  growth.End();
  EXPECT_NEAR(static_cast<double>(*growth.bytes()), 2 * kBytes, kNoise);

  growth.Begin();
  elsewhere.reset();
  growth.End();
  EXPECT_NEAR(static_cast<double>(*growth.bytes()), kBytes, kNoise);
}

TEST(ResidentGrowth, SeesHugePages) {
  ResidentGrowth growth;
  growth.Begin();
  const PageRegion region = Touched(Pages::kHuge);
  growth.End();
  const auto huge = region.HugeBytes();
  if (!growth.huge_fraction() || !huge) GTEST_SKIP() << "no /proc";
  EXPECT_NEAR(*growth.huge_fraction(), static_cast<double>(*huge) / kBytes, 0.2);
}

}  // namespace
}  // namespace skep::bench

// Fabrics by their names, and the module that one of them is in.
#include "rma/fabrics.h"

#include <gtest/gtest.h>

namespace skep::rma {
namespace {

// Goal: a name is one of a fabric, or is told to be none.
TEST(Fabrics, Names) {
  for (const char* name : {"mem", "tcp", "ofi:tcp", "ofi:verbs"}) EXPECT_TRUE(IsFabricName(name));
  for (const char* name : {"", "ether", "ofi", "ofi:", "tcp:ofi"}) {
    EXPECT_FALSE(IsFabricName(name));
    std::string problem;
    EXPECT_EQ(MakeFabric(name, &problem).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(problem, kFabricNames);
  }
  EXPECT_TRUE(ListensAtPaths("mem") && ListensAtPaths("ofi:shm"));
  EXPECT_FALSE(ListensAtPaths("tcp") || ListensAtPaths("ofi:tcp"));
}

// Goal: what is asked for is what one gets.
TEST(Fabrics, AreMade) {
  for (const char* name : {"mem", "tcp"}) {
    std::string problem;
    const auto fabric = MakeFabric(name, &problem);
    ASSERT_TRUE(fabric);
    EXPECT_EQ((*(*fabric)->Open({}))->capabilities().name, name);
  }
}

// Goal: the fabric of libfabric comes out of its module; where it cannot be had, nothing stands in
// for it, and a person is told what is missing.
TEST(Fabrics, OfTheModule) {
  std::string problem;
  const auto fabric = MakeFabric("ofi:tcp", &problem);
  if (!fabric) {
    EXPECT_EQ(fabric.error().code(), Code::kNotSupported);
    EXPECT_NE(problem, "");
    GTEST_SKIP() << "SKIPPED: " << problem;
  }
  EXPECT_EQ((*(*fabric)->Open({}))->capabilities().name, "ofi:tcp");
  EXPECT_EQ(MakeFabric("ofi:nonesuch", &problem).error().code(), Code::kNotSupported);
  EXPECT_TRUE(problem.starts_with("ofi:nonesuch: not supported: libfabric has no such")) << problem;
}

}  // namespace
}  // namespace skep::rma

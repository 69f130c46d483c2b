#include "sim/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace skep {
namespace {

// Goal: fibers go on where they suspended themselves, in the order in which they are resumed, and
// know who they are.
TEST(Fiber, GoesOnWhereItStopped) {
  std::string said;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (const char name : {'a', 'b'}) {
    fibers.push_back(std::make_unique<Fiber>([&said, &fibers, name] {
      for (const char step : {'1', '2', '3'}) {
        EXPECT_EQ(Fiber::Current(), fibers[static_cast<size_t>(name - 'a')].get());
        said += {name, step, ' '};
        Fiber::Suspend();
      }
    }));
  }
  EXPECT_EQ(said, "");
  for (int i = 0; i < 4; ++i) {
    for (const auto& fiber : fibers) {
      EXPECT_FALSE(fiber->is_over());
      fiber->Resume();
      EXPECT_EQ(Fiber::Current(), nullptr);
    }
  }
  EXPECT_EQ(said, "a1 b1 a2 b2 a3 b3 ");
  for (const auto& fiber : fibers) EXPECT_TRUE(fiber->is_over());
}

// Goal: what is on a fiber's stack stays, and one that was never begun costs nothing.
TEST(Fiber, KeepsItsStack) {
  const Fiber never([] { FAIL(); });
  for (int round = 0; round < 100; ++round) {
    Fiber fiber([] {
      volatile char bytes[100'000];
      for (volatile char& byte : bytes) byte = 7;
      Fiber::Suspend();
      for (volatile char& byte : bytes) ASSERT_EQ(byte, 7);
    });
    while (!fiber.is_over()) fiber.Resume();
  }
}

}  // namespace
}  // namespace skep

#include "base/cpu.h"

#include <gtest/gtest.h>

namespace skep {
namespace {

// Goal: a pin holds while it lives and leaves nothing behind.
// Method: every allowed core in turn.
TEST(ScopedPin, HoldsAndRestores) {
  const std::vector<int> before = AllowedCores();
  ASSERT_FALSE(before.empty());
  for (int core : before) {
    {
      ScopedPin pin(core);
      ASSERT_TRUE(pin.pinned());
      EXPECT_EQ(AllowedCores(), std::vector<int>{core});
      EXPECT_EQ(sched_getcpu(), core);
    }
    EXPECT_EQ(AllowedCores(), before);
  }
}

// Goal: a refused pin changes nothing.
TEST(ScopedPin, CoreThatIsNotThere) {
  const std::vector<int> before = AllowedCores();
  {
    ScopedPin pin(CPU_SETSIZE - 1);
    EXPECT_FALSE(pin.pinned());
    EXPECT_EQ(AllowedCores(), before);
  }
  EXPECT_EQ(AllowedCores(), before);
}

TEST(Cpu, ModelIsOneLine) {
  EXPECT_FALSE(CpuModel().empty());
  EXPECT_EQ(CpuModel().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace skep

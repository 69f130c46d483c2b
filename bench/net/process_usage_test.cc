#include "bench/net/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace skep::bench {
namespace {

// Goal: the fields are found behind a name that looks like fields, and a text of another form is
// refused.
TEST(ProcessUsage, ReadsTheFields) {
  const auto usage = ParseProcessStat(
      "42 (a) R 7 (b) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 1000 99999999 12 "
      "18446744073709551615 1 1 0 0\n");
  ASSERT_TRUE(usage.has_value());
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, 300.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(usage->rss_bytes, 12u * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_FALSE(ParseProcessStat("").has_value());
  EXPECT_FALSE(ParseProcessStat("42 (short) S 1 42\n").has_value());
}

// Goal: the real file is parsed; a process that does not exist has no usage.
TEST(ProcessUsage, KnowsProcesses) {
  const auto self = UsageOfProcess(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_GT(self->rss_bytes, 100'000u);
  EXPECT_FALSE(UsageOfProcess(-1).has_value());
  EXPECT_GT(ThreadCpuSeconds(), 0);
}

}  // namespace
}  // namespace skep::bench

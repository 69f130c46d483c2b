#include "base/helper_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace skep {
namespace {

// Goal: every piece of every job is done once, and no helper is inside a job that is over.
// Method: several callers at once, jobs of some pieces whose bytes go out of scope with the job.
TEST(HelperPool, EveryPieceOnce) {
  HelperPool helper_pool(2);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::array<std::atomic<int>, 20> done{};
        std::atomic<uint32_t> next{0};
        helper_pool.Help([&] {
          for (uint32_t piece; (piece = next.fetch_add(1)) < done.size();) ++done[piece];
        });
        for (const auto& piece : done) ASSERT_EQ(piece.load(), 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Goal: a helper that sleeps wakes up, and helps.
// Method: a job that ends when two threads are inside; if no helper came, the test would stand
// still.
TEST(HelperPool, HelpersWakeUp) {
  HelperPool helper_pool(1);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> inside{0};
    helper_pool.Help([&] {
      ++inside;
      while (inside.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(inside.load(), 2);
  }
}

// Goal: helpers work while the caller does something else.
// Method: jobs that only helpers do; the caller waits for their pieces, or the test stands still.
TEST(HelperPool, Meanwhile) {
  HelperPool helper_pool(2);
  for (int round = 0; round < 200; ++round) {
    std::atomic<uint32_t> next{0};
    std::atomic<int> done{0};
    const std::function<void()> job = [&] {
      while (next.fetch_add(1) < 20) ++done;
    };
    helper_pool.Begin(job);
    while (done.load() < 20) std::this_thread::yield();
    helper_pool.End();
    EXPECT_EQ(done.load(), 20);
  }
}

TEST(HelperPool, WithoutHelpersTheCallerIsAlone) {
  HelperPool helper_pool(0);
  int runs = 0;
  helper_pool.Help([&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace skep

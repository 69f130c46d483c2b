// Histories of servers that move ranges, each wholly given by its seed.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "ranges/range_world_test.h"
#include "sim/seeds.h"

namespace skep::ranges {
namespace {

// Goal: whatever happens to servers, their sessions and the service while ranges are moved, a key
// has the value that was written last, wherever it is read.
// Method: steps of one thread, so what is done in a step is done at one instant, and an answer is
// right if it is the model's.
void RunHistory(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
  constexpr size_t kServers = 3;
  RangeWorld world(kServers, seed,
                   {.slow_ppm = 5000,
                    .slow_ns_max = 700 * kMs,
                    .lag_ns_max = 300 * kMs,
                    .losses_ppm = 3000,
                    .partitions_ppm = 1000});
  SeededRandom random(seed);
  world.Make({.entries = {{.lower = "", .target = "s0:1"},
                          {.lower = "h", .target = "s1:1"},
                          {.lower = "p", .target = "s2:1"}}});
  std::map<std::string, std::string> model;
  uint64_t answers = 0;
  uint64_t written = 0;
  uint64_t moves = 0;
  std::optional<size_t> down;
  for (int step = 0; step < 4000; ++step) {
    world.Step();
    const std::string key(1, static_cast<char>('a' + random.Below(26)));
    const size_t server = random.Below(kServers);
    if (step % 400 == 399) {
      world.copy_ns = random.Below(400) * kMs;
      RangeMap map = world.Map();
      if (map.BeginMove(key, RangeWorld::NameOf(random.Below(kServers))).ok())
        moves += world.Replace(map);
    }
    if (random.Below(500) == 0 && !down) {
      down = server;
      world.Stop(server);
    } else if (random.Below(100) == 0 && down) {
      world.Resume(*std::exchange(down, std::nullopt));
    }
    const Outcome got = world.Get(server, key);
    if (got.verdict != Verdict::kRefused) {
      ++answers;
      const auto is = model.find(key);
      const bool is_right = is == model.end()
                                ? got.verdict == Verdict::kAbsent
                                : got.verdict == Verdict::kDone && got.value == is->second;
      ASSERT_TRUE(is_right) << key << " at step " << step;
    }
    const size_t writer = random.Below(kServers);
    const std::string value = std::to_string(++written);
    if (world.Put(writer, key, value).verdict == Verdict::kDone) model[key] = value;
  }
  EXPECT_GT(answers, 200u);
  EXPECT_GT(moves, 0u);
  if (down) world.Resume(*down);
  const auto is_at_rest = [&] {
    for (const RangeMap::Entry& entry : world.Map().entries) {
      if (entry.phase != RangeMap::Phase::kServed) return false;
    }
    return true;
  };
  EXPECT_TRUE(world.RunUntil(is_at_rest)) << "every move ends";
}

TEST(RangeOwnerHistory, AnyHistory) {
  for (const uint64_t seed : Seeds(30)) {
    RunHistory(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace skep::ranges

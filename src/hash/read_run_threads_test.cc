// Tests runs of gets while threads write.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "hash/hash_engine.h"

namespace skep::hash {
namespace {

constexpr uint32_t kKeys = 400;
constexpr uint32_t kWriters = 2;

std::string KeyAt(uint64_t i) { return "key:" + std::to_string(i); }

// Keys whose number ends in 0 are never deleted.
bool IsKept(uint64_t i) { return i % 10 == 0; }

// A value is "<key>=<step>" and dots: it says to which key it was written, and when.
void Write(HashEngine& engine, uint32_t thread, const std::atomic<bool>& stop) {
  std::mt19937_64 rng(thread);
  for (uint64_t step = 1; !stop.load(std::memory_order_relaxed); ++step) {
    Batch batch;
    for (int n = 0; n < 20; ++n) {
      const uint64_t i = rng() % (kKeys / kWriters) * kWriters + thread;
      const std::string_view key = batch.scratch().Copy(KeyAt(i));
      if (!IsKept(i) && rng() % 3 == 0) {
        batch.Delete(key);
      } else {
        const std::string value =
            std::string(key) + "=" + std::to_string(step) + std::string(rng() % 120, '.');
        batch.Put(key, batch.scratch().Copy(value));
      }
    }
    engine.Execute(batch);
    // A pause lets some runs meet no writer.
    if (step % 64 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Goal: a run of gets answers with values of its own keys, finds the keys that are never deleted,
// and does not go back in time, while pairs move between buckets, chains and slabs between its
// steps.
// Method: one partition of long chains; writers that store values of all sizes and delete, so that
// slabs and chained buckets are used again at once; every value names its key and its step.
// slabs and chained buckets are used again at once; every value names its key and its step.
TEST(ReadRunThreads, AnswersWithValuesOfTheKey) {
  MemoryBudget budget;
  const auto engine = HashEngine::Make(
      {.budget = &budget}, {.partitions = 1, .table = {.inline_bytes_max = 20, .fill_slots = 60}});
  for (uint64_t i = 0; i < kKeys; ++i) {
    Batch batch;
    const std::string key = KeyAt(i);
    const std::string value = key + "=0";
    batch.Put(key, value);
    engine->Execute(batch);
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (uint32_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] { Write(*engine, i, stop); });
  }

  std::vector<uint64_t> latest(kKeys);
  std::mt19937_64 rng(kWriters);
  std::vector<uint64_t> asked;
  Batch batch;
  for (int run = 0; run < Rounds(3000) && !testing::Test::HasFailure(); ++run) {
    batch.Clear();
    asked.clear();
    for (int n = 0; n < 200; ++n) {
      asked.push_back(rng() % kKeys);
      batch.Get(batch.scratch().Copy(KeyAt(asked.back())));
    }
    engine->Execute(batch);
    for (uint32_t slot = 0; slot < asked.size(); ++slot) {
      const uint64_t i = asked[slot];
      if (batch.outcome(slot).verdict == Verdict::kAbsent) {
        EXPECT_FALSE(IsKept(i)) << KeyAt(i);
        continue;
      }
      const std::string value(batch.outcome(slot).value);
      const std::string begin = KeyAt(i) + "=";
      EXPECT_EQ(value.substr(0, begin.size()), begin);
      const uint64_t step = std::stoull(value.substr(begin.size()));
      EXPECT_GE(step, latest[i]) << KeyAt(i);
      latest[i] = step;
    }
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& writer : writers) writer.join();
  EXPECT_STREQ(engine->Verify(), nullptr);
}

}  // namespace
}  // namespace skep::hash

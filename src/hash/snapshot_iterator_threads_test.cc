// Tests snapshot iterators and walks while threads write.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hash/hash_engine.h"

namespace skep::hash {
namespace {

constexpr uint32_t kWriters = 3;
constexpr uint32_t kGroups = 200;    // of keys that are written together
constexpr uint32_t kGroupKeys = 6;   // in partitions of their own
constexpr uint32_t kCrowd = 20'000;  // keys that come and go, so that tables grow and shrink

std::string GroupKey(uint64_t group, uint64_t i) {
  return "group:" + std::to_string(group) + ":" + std::to_string(i);
}

// Threads that write until they are told to stop.
class Writers {
 public:
  Writers(HashEngine& engine, unsigned seed) : engine_(engine) {
    for (uint32_t i = 0; i < kWriters; ++i) {
      threads_.emplace_back([this, seed, i] { Write(seed + i, i); });
    }
  }
  ~Writers() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Write(unsigned seed, uint32_t thread) {
    std::mt19937_64 rng(seed);
    const std::string own = std::to_string(thread) + ":";
    for (uint64_t step = 0; !stop_.load(std::memory_order_relaxed); ++step) {
      Batch group(Batch::Kind::kAtomic);
      const uint64_t which = rng() % kGroups;
      // Values of all sizes make pairs move between buckets, slabs and the arena.
      const std::string value = own + std::to_string(step) + std::string(rng() % 90, '.');
      const bool erases = rng() % 8 == 0;
      if (rng() % 300 == 0) group.DeleteAll();
      for (uint32_t i = 0; i < kGroupKeys; ++i) {
        const std::string_view key = group.scratch().Copy(GroupKey(which, i));
        erases ? group.Delete(key) : group.Put(key, value);
      }
      engine_.Execute(group);
      Batch crowd;
      const bool grows = step / 100 % 2 == 0;
      for (uint32_t i = 0; i < 40; ++i) {
        const std::string_view key =
            crowd.scratch().Copy("crowd:" + own + std::to_string(rng() % kCrowd));
        grows ? crowd.Put(key, "crowd") : crowd.Delete(key);
      }
      engine_.Execute(crowd);
      if (step % 64 == 0) engine_.Maintain(1);
    }
  }

  HashEngine& engine_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Goal: a snapshot iterator sees each atomic batch whole or not at all, while threads write.
// Method: a batch gives the keys of a group one value, or deletes them all, sometimes everything
// else too; in what an iterator gives, a group has one value or no key.
TEST(SnapshotIteratorThreads, AtomicBatchesAreWhole) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  MemoryBudget budget;
  const auto engine = HashEngine::Make({.budget = &budget}, {.partitions = 8, .table = {}});
  constexpr uint64_t kGroupsSeenMin = 2000;
  uint64_t groups_seen = 0;
  {
    const Writers writers(*engine, seed);
    // More rounds follow until the threads have begun.
    for (int round = 0; round < 60 || groups_seen < kGroupsSeenMin; ++round) {
      const auto iterator = engine->OpenPairIterator(1);
      ASSERT_TRUE(iterator.has_value());
      std::set<std::string> keys;
      std::map<std::string, std::map<std::string, uint32_t>> values;  // of each group
      for (;;) {
        const auto next = (*iterator)->Next();
        ASSERT_TRUE(next.has_value());
        if (next->empty()) break;
        for (const Pair& pair : *next) {
          ASSERT_TRUE(keys.emplace(pair.key).second) << "twice: " << pair.key;
          if (!pair.key.starts_with("group:")) continue;
          const std::string group(pair.key.substr(0, pair.key.rfind(':')));
          ++values[group][std::string(pair.value)];
        }
        std::this_thread::yield();
      }
      for (const auto& [group, seen] : values) {
        ASSERT_EQ(seen.size(), 1u) << group << " of round " << round << " is torn";
        ASSERT_EQ(seen.begin()->second, kGroupKeys) << group << " of round " << round;
      }
      groups_seen += values.size();
    }
  }
  EXPECT_STREQ(engine->Verify(), nullptr);
  EXPECT_EQ(budget.used(), engine->Statistics().bytes);
}

// Goal: a walk gives each key that stays once, and no key twice, while threads write.
TEST(WalkThreads, WhatStaysComesOnce) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  MemoryBudget budget;
  const auto engine = HashEngine::Make({.budget = &budget}, {.partitions = 4, .table = {}});
  constexpr uint32_t kStaying = 1000;
  std::atomic<bool> stop{false};
  Batch fill;
  for (uint32_t i = 0; i < kStaying; ++i) {
    fill.Put(fill.scratch().Copy("stays:" + std::to_string(i)), "s");
  }
  engine->Execute(fill);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kWriters; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t step = 0; !stop.load(std::memory_order_relaxed); ++step) {
        Batch batch;
        const bool grows = step / 200 % 2 == 0;
        for (uint32_t i = 0; i < 50; ++i) {
          const std::string_view key = batch.scratch().Copy(
              "comes:" + std::to_string(thread) + ":" + std::to_string((step % 200) * 50 + i));
          grows ? batch.Put(key, "c") : batch.Delete(key);
        }
        engine->Execute(batch);
      }
    });
  }
  constexpr uint64_t kComingSeenMin = 20'000;
  uint64_t coming_seen = 0;
  for (int round = 0; round < 40 || coming_seen < kComingSeenMin; ++round) {
    std::set<std::string> keys;
    uint32_t staying = 0;
    uint64_t cursor = 0;
    do {
      Batch step;
      step.Walk(cursor, {.limit = 100, .keys_only = true});
      engine->Execute(step);
      for (const Item& item : step.items(0)) {
        EXPECT_TRUE(keys.emplace(item.key).second) << "twice: " << item.key;
        staying += item.key.starts_with("stays:") ? 1 : 0;
      }
      cursor = static_cast<uint64_t>(step.outcome(0).integer);
    } while (cursor != 0);
    EXPECT_EQ(staying, kStaying) << "round " << round;
    coming_seen += keys.size() - staying;
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_STREQ(engine->Verify(), nullptr);
}

}  // namespace
}  // namespace skep::hash

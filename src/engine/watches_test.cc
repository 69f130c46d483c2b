// Watches by themselves: which of them a write touches, and the protocol of watches.h in threads.
#include "engine/watches.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace skep {
namespace {

class WatchesTest : public testing::Test {
 protected:
  uint64_t Add(std::string_view key, bool present = true, uint64_t deadline_ms = 0) {
    const uint64_t watch = watches_.Add(key).value();
    watches_.Arm(watch, present, deadline_ms);
    keys_[watch] = key;
    return watch;
  }
  std::optional<Watches::Seen> Judge(uint64_t watch, uint64_t now_ms = 1) {
    return watches_.Judge(watch, keys_[watch], now_ms);
  }
  bool IsUnchanged(uint64_t watch, uint64_t now_ms = 1) {
    const auto seen = Judge(watch, now_ms);
    EXPECT_TRUE(seen.has_value());
    return seen && seen->unchanged;
  }

  Watches watches_;
  std::map<uint64_t, std::string> keys_;  // by watch
};

TEST_F(WatchesTest, TheFirstTouchCounts) {
  const uint64_t watch = Add("a");
  const uint64_t other = Add("b");
  EXPECT_TRUE(IsUnchanged(watch));
  watches_.Touch("a", 5);
  watches_.Touch("a", 6);
  EXPECT_FALSE(IsUnchanged(watch));
  EXPECT_EQ(Judge(watch, 1)->version, 5u);
  EXPECT_TRUE(IsUnchanged(other));
  const uint64_t later = Add("a");
  EXPECT_TRUE(IsUnchanged(later));
  watches_.Touch("a", 7);
  EXPECT_EQ(Judge(later, 1)->version, 7u);
  EXPECT_EQ(Judge(watch, 1)->version, 5u);
}

// Goal: a write before Arm() does not touch the watch.
TEST_F(WatchesTest, ArmForgetsWhatCameBefore) {
  const uint64_t watch = watches_.Add("a").value();
  keys_[watch] = "a";
  EXPECT_FALSE(Judge(watch).has_value());
  watches_.Touch("a", 5);
  watches_.Arm(watch, true, 0);
  EXPECT_TRUE(IsUnchanged(watch));
}

TEST_F(WatchesTest, DeadlinesOfPresentKeysPass) {
  const uint64_t present = Add("a", true, 10);
  const uint64_t absent = Add("a", false, 0);
  const uint64_t forever = Add("a", true, 0);
  EXPECT_TRUE(IsUnchanged(present, 9));
  EXPECT_FALSE(IsUnchanged(present, 10));
  EXPECT_EQ(Judge(present, 10)->version, 0u);
  EXPECT_TRUE(IsUnchanged(absent, UINT64_MAX));
  EXPECT_TRUE(IsUnchanged(forever, UINT64_MAX));
}

// Goal: a range touches the keys in [lo, hi) that were present, and not those that came later and
// were touched then.
TEST_F(WatchesTest, Ranges) {
  const uint64_t a = Add("a");
  const uint64_t b = Add("b");
  const uint64_t absent = Add("b", false);
  const uint64_t c = Add("c");
  const uint64_t touched = Add("b");
  watches_.Touch("x", 3);
  watches_.TouchRange("b", "b", false, 4);
  EXPECT_TRUE(IsUnchanged(b));
  watches_.TouchRange("b", "c", false, 5);
  EXPECT_TRUE(IsUnchanged(a));
  EXPECT_FALSE(IsUnchanged(b));
  EXPECT_TRUE(IsUnchanged(absent));
  EXPECT_TRUE(IsUnchanged(c));
  watches_.TouchRange("", "ignored", true, 6);
  EXPECT_FALSE(IsUnchanged(a));
  EXPECT_FALSE(IsUnchanged(c));
  EXPECT_EQ(Judge(touched, 1)->version, 5u);
}

// Goal: deleting a range does not touch a watch that was armed after its key had expired, but
// touches one that was armed before.
TEST_F(WatchesTest, RangesOfExpiredKeys) {
  const uint64_t before = Add("a", true, 10);
  const uint64_t after = Add("a", false);
  watches_.TouchRange("", "", true, 5);
  EXPECT_FALSE(IsUnchanged(before, 20));
  EXPECT_TRUE(IsUnchanged(after, 20));
  watches_.Touch("a", 6);
  EXPECT_EQ(Judge(before, 20)->version, 5u);
  EXPECT_EQ(Judge(after, 20)->version, 6u);
}

// Goal: a removed watch is unknown, also when removed twice; the others go on.
TEST_F(WatchesTest, Removal) {
  const uint64_t first = Add("a");
  const uint64_t second = Add("a");
  EXPECT_NE(first, second);
  watches_.Remove(first);
  watches_.Remove(first);
  watches_.Remove(12345);
  EXPECT_FALSE(Judge(first, 1).has_value());
  EXPECT_TRUE(IsUnchanged(second));
  watches_.Touch("a", 5);
  EXPECT_FALSE(IsUnchanged(second));
  watches_.Arm(first, true, 0);  // armed too late: the watch stays unknown
  EXPECT_FALSE(Judge(first, 1).has_value());
}

// Goal: an id is never given out twice, whichever engine gives it, and is good for its key only.
TEST_F(WatchesTest, IdsAreOfOneKeyAndOneEngine) {
  Watches others;
  std::set<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ids.insert(Add("a")).second);
    const uint64_t other = others.Add("a").value();
    others.Arm(other, true, 0);
    ASSERT_TRUE(ids.insert(other).second);
    ASSERT_FALSE(watches_.Judge(other, "a", 1).has_value());
    watches_.Remove(*ids.begin());
  }
  const uint64_t watch = Add("a");
  EXPECT_TRUE(watches_.Judge(watch, "a", 1).has_value());
  EXPECT_FALSE(watches_.Judge(watch, "b", 1).has_value());
  EXPECT_FALSE(watches_.Judge(watch, "", 1).has_value());
  // All ids take as many bytes as a varint.
  EXPECT_GE(*ids.begin(), uint64_t{1} << 62);
  EXPECT_LT(*ids.rbegin(), uint64_t{1} << 63);
}

// Goal: watches are charged while they live, and never beyond the limit.
TEST_F(WatchesTest, AreCounted) {
  MemoryBudget budget(10 * Watches::BytesOfKey(std::string(1000, 'k')));
  std::vector<uint64_t> ids;
  {
    Watches counted;
    counted.set_budget(&budget);
    for (int i = 0; i < 1000; ++i) {
      std::string key = std::to_string(i);
      key.resize(1000, 'k');
      if (const auto id = counted.Add(key)) ids.push_back(*id);
      ASSERT_LE(budget.used(), budget.limit());
    }
    EXPECT_EQ(ids.size(), 9u);
    counted.Remove(ids[0]);
    ids.erase(ids.begin());
    // A further watch of a key is cheaper.
    std::string key = std::to_string(1);
    key.resize(1000, 'k');
    const uint64_t before = budget.used();
    ids.push_back(counted.Add(key).value());
    EXPECT_EQ(budget.used() - before, Watches::kWatchBytes);
    for (const uint64_t id : ids) counted.Remove(id);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_TRUE(counted.Add("a").has_value());
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: a write costs the same for any number of watches of its key.
// Method: so many writes and watches that the test would not end if each write visited each watch.
TEST_F(WatchesTest, AWriteDoesNotWalkTheWatchesOfItsKey) {
  constexpr int kMany = 200'000;
  std::vector<uint64_t> ids;
  for (int i = 0; i < kMany; ++i) ids.push_back(Add("a"));
  const uint64_t other = Add("b");
  for (int i = 1; i <= kMany; ++i) watches_.Touch("a", static_cast<Version>(i));
  for (const uint64_t id : ids) ASSERT_EQ(Judge(id)->version, 1u);
  EXPECT_TRUE(IsUnchanged(other));
}

// Goal: keys that share a cell of the hash table are told apart, and removing one keeps the other.
// Method: far more keys than cells.
TEST_F(WatchesTest, SharedCells) {
  constexpr int kKeys = 20'000;
  std::vector<uint64_t> ids;
  for (int i = 0; i < kKeys; ++i) ids.push_back(Add(std::to_string(i)));
  for (int i = 0; i < kKeys; i += 2) watches_.Remove(ids[static_cast<size_t>(i)]);
  for (int i = 1; i < kKeys; i += 4) watches_.Touch(std::to_string(i), 9);
  for (int i = 1; i < kKeys; i += 2) {
    EXPECT_EQ(IsUnchanged(ids[static_cast<size_t>(i)]), i % 4 != 1) << i;
  }
}

// Goal: a write is either seen by the read that arms the watch, or touches it, in every
// interleaving.
// Method: a counter under a lock that stands for the lock of the key's node. Writers touch and
// count; watchers arm with the counter as they read it, and later see it unchanged exactly if the
// counter is still what it was.
TEST_F(WatchesTest, NoWriteIsMissed) {
  constexpr int kRounds = 5000;
  Mutex node;
  uint64_t counter = 0;  // guarded by node
  {
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < 2; ++writer) {
      threads.emplace_back([&] {
        for (int i = 0; i < kRounds; ++i) {
          const MutexLock lock(node);
          watches_.Touch("key", counter + 1);
          ++counter;
        }
      });
    }
    for (int watcher = 0; watcher < 2; ++watcher) {
      threads.emplace_back([&] {
        for (int i = 0; i < kRounds; ++i) {
          const uint64_t watch = watches_.Add("key").value();
          uint64_t read = 0;
          {
            const MutexLock lock(node);
            watches_.Arm(watch, true, 0);
            read = counter;
          }
          if (i % 2 == 0) std::this_thread::yield();
          {
            const MutexLock lock(node);
            const auto seen = watches_.Judge(watch, "key", 1);
            ASSERT_TRUE(seen.has_value());
            ASSERT_EQ(seen->unchanged, counter == read);
            if (!seen->unchanged) {
              ASSERT_EQ(seen->version, read + 1);
            }
          }
          watches_.Remove(watch);
        }
      });
    }
  }
  EXPECT_EQ(counter, 2u * kRounds);
}

}  // namespace
}  // namespace skep

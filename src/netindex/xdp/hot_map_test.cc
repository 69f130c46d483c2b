// Tests the protocol of the map of hot keys: the program's own look-up, compiled for the host,
// beside writers and fillers.
#include "netindex/xdp/hot_map.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "netindex/xdp/xdp_answer.h"

namespace skep::xdp {
namespace {

class HotMapTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 42;

  // The value that the hook would send; nullopt: it passes the question on.
  std::optional<std::string> Find(std::string_view key, uint32_t keyspace = 0) {
    const XdpKey padded = *KeyOf(keyspace, key);
    const uint64_t hash = XdpHash(kSeed, &padded);
    uint64_t value[XDP_VALUE_WORDS] = {};
    const int bytes =
        XdpFind(&memory_->header, &memory_->sets[XdpSetOf(hash)], hash, &padded, value);
    if (bytes < 0) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(value), static_cast<size_t>(bytes));
  }
  HotMap::Claim Begin(std::string_view key) { return map_.BeginFill(*KeyOf(0, key)).value(); }
  void Fill(std::string_view key, std::string_view value) {
    ASSERT_TRUE(map_.FinishFill(Begin(key), value));
  }
  // Keys that share a set.
  std::vector<std::string> KeysOfOneSet(size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      const XdpKey key = *KeyOf(0, std::to_string(i));
      if (XdpSetOf(XdpHash(kSeed, &key)) == 77) keys.push_back(std::to_string(i));
    }
    return keys;
  }

  std::unique_ptr<XdpMap> memory_ = std::make_unique<XdpMap>();
  HotMap map_{*memory_, 1, kSeed};
};

// Goal: the hook finds what was filled, and nothing else: keys and values of every length.
TEST_F(HotMapTest, FindsWhatWasFilled) {
  EXPECT_EQ(Find("never filled"), std::nullopt);
  for (uint32_t bytes = 1; bytes <= XDP_KEY_BYTES_MAX; ++bytes) {
    const std::string key(bytes, 'k');
    const std::string value(bytes * 2 - 1, static_cast<char>(bytes));
    Fill(key, value);
    EXPECT_EQ(Find(key), value);
    EXPECT_EQ(Find(key, 1), std::nullopt) << "another keyspace";
  }
  Fill("empty", "");
  EXPECT_EQ(Find("empty"), "");
  EXPECT_EQ(KeyOf(0, ""), std::nullopt);
  EXPECT_EQ(KeyOf(0, std::string(XDP_KEY_BYTES_MAX + 1, 'k')), std::nullopt);
}

// Goal: a write makes its key's entry invalid, and no other; a range makes all invalid.
TEST_F(HotMapTest, WritesMakeEntriesInvalid) {
  Fill("a", "1");
  Fill("b", "2");
  map_.WillWrite(0, "c");
  map_.WillWrite(1, "a");
  EXPECT_EQ(Find("a"), "1");
  map_.WillWrite(0, "a");
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find("b"), "2");
  Fill("a", "3");
  map_.WillWriteRange();
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find("b"), std::nullopt);
  Fill("a", "4");
  EXPECT_EQ(Find("a"), "4");
  EXPECT_EQ(map_.statistics().invalidations, 1u);
  EXPECT_EQ(map_.statistics().epoch, 1u);
}

// Goal: a writer, who reads a key where it lies, and a filler, who pads it, find the same entry.
// Method: keys of every length, of random bytes.
TEST_F(HotMapTest, WritesOfEveryLengthMakeEntriesInvalid) {
  std::mt19937_64 random(1);
  for (uint32_t bytes = 1; bytes <= XDP_KEY_BYTES_MAX; ++bytes) {
    std::string key(bytes, '\0');
    for (char& c : key) c = static_cast<char>(random());
    Fill(key, "value");
    map_.WillWrite(0, key);
    EXPECT_EQ(Find(key), std::nullopt) << bytes;
  }
  EXPECT_EQ(map_.statistics().invalidations, uint64_t{XDP_KEY_BYTES_MAX});
}

// Goal: a value that was read before a write is never told after it.
// Method: one thread plays writer and filler; the write comes after the claim, as the key, as a
// range, or as another claim of the entry.
TEST_F(HotMapTest, AFillThatAWriteHasOvertakenFails) {
  HotMap::Claim claim = Begin("a");
  map_.WillWrite(0, "a");
  EXPECT_FALSE(map_.FinishFill(claim, "old"));
  EXPECT_EQ(Find("a"), std::nullopt);
  claim = Begin("a");
  map_.WillWriteRange();
  map_.FinishFill(claim, "old");
  EXPECT_EQ(Find("a"), std::nullopt);
  claim = Begin("a");
  Fill("a", "new");
  EXPECT_FALSE(map_.FinishFill(claim, "old"));
  EXPECT_EQ(Find("a"), "new");
  EXPECT_EQ(map_.statistics().fills_in_vain, 2u);
}

// Goal: an entry that is being filled anew is not read, from its claim on: not the value before,
// which a write that does not see its hash any more would leave, and not half of the next.
TEST_F(HotMapTest, AClaimedEntryIsNotRead) {
  const auto keys = KeysOfOneSet(3);
  Fill(keys[0], "0");
  Fill(keys[1], "1");
  map_.Age();
  const HotMap::Claim claim = Begin(keys[2]);
  EXPECT_EQ(Find(keys[0]), std::nullopt);
  EXPECT_EQ(Find(keys[1]), "1");
  map_.WillWrite(0, keys[0]);
  EXPECT_TRUE(map_.FinishFill(claim, "2"));
  EXPECT_EQ(Find(keys[2]), "2");
  EXPECT_EQ(Find(keys[0]), std::nullopt);
}

// Goal: keys that are asked for keep their entries.
TEST_F(HotMapTest, WhatIsUsedStays) {
  const auto keys = KeysOfOneSet(3);
  Fill(keys[0], "0");
  Fill(keys[1], "1");
  EXPECT_FALSE(map_.BeginFill(*KeyOf(0, keys[2])).has_value());
  map_.Age();
  EXPECT_EQ(Find(keys[0]), "0");  // used since
  Fill(keys[2], "2");
  EXPECT_EQ(Find(keys[0]), "0");
  EXPECT_EQ(Find(keys[1]), std::nullopt);
}

// Goal: a key is worth a fill once it was missed often enough, lately; one that has an entry as
// soon as a write has made that invalid; one that cannot be answered not before it is written.
TEST_F(HotMapTest, FillsWhatIsHot) {
  const XdpKey key = *KeyOf(0, "a");
  for (uint32_t i = 1; i < HotMap::kHotMisses; ++i) EXPECT_FALSE(map_.CountMiss(key));
  map_.Age();
  for (uint32_t i = HotMap::kHotMisses / 2; i + 1 < HotMap::kHotMisses; ++i) {
    EXPECT_FALSE(map_.CountMiss(key)) << i;
  }
  EXPECT_FALSE(map_.CountMiss(key));
  EXPECT_TRUE(map_.CountMiss(key));
  map_.FinishWithoutValue(Begin("a"));
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_FALSE(map_.CountMiss(key));
  map_.WillWrite(0, "a");
  EXPECT_TRUE(map_.CountMiss(key));
  Fill("a", "1");
  EXPECT_FALSE(map_.CountMiss(key));
  map_.WillWriteRange();
  EXPECT_TRUE(map_.CountMiss(key));
}

// Goal: after any steps the hook answers with the newest value, or not.
// Method: few keys, most of one set; a write is told and then done at once, a fill is two steps
// that other steps come between. All keys are looked up after every step.
TEST_F(HotMapTest, AgreesWithModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  std::vector<std::string> keys = KeysOfOneSet(4);
  keys.insert(keys.end(), {"x", "y"});
  std::map<std::string, std::string> newest;
  struct Fill {
    HotMap::Claim claim;
    std::string value;
  };
  std::vector<Fill> under_way;
  uint64_t found = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::string& key = keys[rng() % keys.size()];
    const auto what = rng() % 1000;
    if (what < 150) {
      map_.WillWrite(0, key);
      newest[key] = std::to_string(step);
    } else if (what < 170) {
      map_.WillWriteRange();
      newest.clear();
    } else if (what < 172) {
      map_.Age();
    } else if (what < 600) {
      if (const auto claim = map_.BeginFill(*KeyOf(0, key))) {
        under_way.push_back({*claim, newest[key]});
      }
    } else if (!under_way.empty()) {
      const size_t at = rng() % under_way.size();
      map_.FinishFill(under_way[at].claim, under_way[at].value);
      under_way.erase(under_way.begin() + static_cast<ptrdiff_t>(at));
    }
    for (const std::string& each : keys) {
      const auto value = Find(each);
      found += value.has_value();
      ASSERT_EQ(value.value_or(newest[each]), newest[each]) << each << " at step " << step;
    }
  }
  EXPECT_GT(found, 1000u);
}

// Goal: no answer is torn, or older than an earlier one, and none is older than what was written
// before it was asked for.
// Method: the writer counts one key up; under a lock, as an engine's, it tells the map and then
// changes the value. The filler passes through the lock after its claim. Two threads look up.
TEST_F(HotMapTest, ThreadsSeeWholeAndNewestValues) {
  constexpr uint64_t kWritesMax = kSanitized ? 20'000 : 400'000;
  Mutex lock;
  std::atomic<uint64_t> newest{0};
  std::atomic<uint64_t> found{0};
  std::thread filler([&] {
    while (newest.load() < kWritesMax) {
      const HotMap::Claim claim = Begin("key");
      {
        const MutexLock through(lock);
      }
      const std::string number = std::to_string(newest.load() + 1'000'000'000);
      std::string value;
      while (value.size() + number.size() <= XDP_VALUE_BYTES_MAX) value += number;
      map_.FinishFill(claim, value);
    }
  });
  const auto look = [&] {
    for (uint64_t last = 0; last < kWritesMax;) {
      const uint64_t begun = newest.load();
      last = begun;
      const auto value = Find("key");
      if (!value) continue;
      const std::string number = value->substr(0, 10);
      for (size_t at = 0; at < value->size(); at += 10) ASSERT_EQ(value->substr(at, 10), number);
      ASSERT_GE(std::stoull(number) - 1'000'000'000, begun);
      found.fetch_add(1);
    }
  };
  std::thread one(look), other(look);
  for (uint64_t i = 1; i <= kWritesMax; ++i) {
    if (i % 64 == 0) std::this_thread::yield();
    const MutexLock through(lock);
    map_.WillWrite(0, "key");
    newest.store(i);
  }
  filler.join();
  one.join();
  other.join();
  std::printf("%lu answers beside %lu writes\n", found.load(), kWritesMax);
}

}  // namespace
}  // namespace skep::xdp

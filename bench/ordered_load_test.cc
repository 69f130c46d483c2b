#include "bench/ordered_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace skep::bench {
namespace {

const KeyFormat kFormat = KeyFormat::Random(16);

// The numbers of all keys, so that a stream's keys can be told.
std::map<std::string, uint64_t> NumbersOf(uint64_t items) {
  std::map<std::string, uint64_t> numbers;
  for (uint64_t number = 0; number < items; ++number) {
    std::string key(kFormat.bytes(), '\0');
    kFormat.Render(number, key.data());
    numbers[key] = number;
  }
  return numbers;
}

std::vector<uint64_t> Take(OpSource& source, size_t count,
                           const std::map<std::string, uint64_t>& numbers) {
  OpStream stream(kFormat);
  source.Fill(stream, count);
  std::vector<uint64_t> taken;
  for (size_t i = 0; i < count; ++i) taken.push_back(numbers.at(std::string(stream.at(i).key)));
  return taken;
}

TEST(OrderedLoad, NamesSayWhatIsDone) {
  EXPECT_EQ(FindOrderedLoad("insert")->kind, OpKind::kInsert);
  EXPECT_EQ(FindOrderedLoad("delete")->kind, OpKind::kDelete);
  EXPECT_EQ(FindOrderedLoad("update")->kind, OpKind::kUpdate);
  EXPECT_EQ(FindOrderedLoad("get")->distribution, Distribution::kUniform);
  EXPECT_EQ(FindOrderedLoad("get_zipf")->distribution, Distribution::kZipfian);
  EXPECT_EQ(FindOrderedLoad("get_zipf")->kind, OpKind::kRead);
  EXPECT_EQ(FindOrderedLoad("scan24")->scan_items, 24u);
  EXPECT_EQ(FindOrderedLoad("scan100_zipf")->scan_items, 100u);
  EXPECT_EQ(FindOrderedLoad("scan100_zipf")->name, "scan100_zipf");
  for (const char* name : {"", "_zipf", "insert_zipf", "delete_zipf", "scan", "scan0", "scan101",
                           "scan-1", "scan3x", "scan 3", "scan4294967299", "put"}) {
    EXPECT_FALSE(FindOrderedLoad(name)) << name;
  }
}

// Goal: the threads of a sweep take every key once between them, in an order that neither is that
// of the numbers nor the same for another seed.
// Method: numbers of items that share factors with everything, and shares of unequal size.
TEST(OrderedLoad, SweepsTakeEveryKeyOnce) {
  for (uint64_t items : {1, 2, 30, 1000, 1024, 1155}) {
    const auto numbers = NumbersOf(items);
    for (uint32_t threads = 1; threads <= 3; ++threads) {
      std::vector<uint64_t> taken;
      for (uint32_t thread = 0; thread < threads; ++thread) {
        const auto source = MakeSweep(OpKind::kDelete, {items, thread, threads, 5});
        const uint64_t share = items / threads + (thread < items % threads ? 1 : 0);
        std::ranges::copy(Take(*source, share, numbers), std::back_inserter(taken));
      }
      EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), items) << items << " / " << threads;
      EXPECT_EQ(taken.size(), items);
    }
  }
  const auto numbers = NumbersOf(1000);
  const auto take = [&](uint64_t seed) {
    return Take(*MakeSweep(OpKind::kDelete, {1000, 0, 1, seed}), 1000, numbers);
  };
  EXPECT_FALSE(std::ranges::is_sorted(take(1)));
  EXPECT_EQ(take(1), take(1));
  EXPECT_NE(take(1), take(2));
}

// Goal: choices are of keys that are there, spread evenly or skewed as the load says; seeds and
// threads choose differently.
TEST(OrderedLoad, ChoicesFollowTheDistribution) {
  constexpr uint64_t kItems = 100;
  constexpr size_t kChoices = 20'000;
  const auto numbers = NumbersOf(kItems);
  const auto largest_share = [&](const char* load, uint32_t thread, uint64_t seed) {
    std::map<uint64_t, size_t> counts;
    const auto source = MakeChoices(*FindOrderedLoad(load), {kItems, thread, 2, seed});
    for (uint64_t number : Take(*source, kChoices, numbers)) ++counts[number];
    EXPECT_EQ(counts.size(), kItems);
    return std::ranges::max_element(counts, {}, [](auto& c) { return c.second; })->second;
  };
  EXPECT_LT(largest_share("get", 0, 1), 2 * kChoices / kItems);
  EXPECT_GT(largest_share("get_zipf", 0, 1), 3 * kChoices / kItems);

  const auto first = [&](uint32_t thread, uint64_t seed) {
    return Take(*MakeChoices(*FindOrderedLoad("get"), {kItems, thread, 2, seed}), 50, numbers);
  };
  EXPECT_EQ(first(0, 1), first(0, 1));
  EXPECT_NE(first(0, 1), first(1, 1));
  EXPECT_NE(first(0, 1), first(0, 2));
}

// Goal: what is stored after updates does not depend on which thread was faster.
// Method: the keys that two threads update are disjoint, and together all of them.
TEST(OrderedLoad, ThreadsUpdateKeysOfTheirOwn) {
  constexpr uint64_t kItems = 101;
  const auto numbers = NumbersOf(kItems);
  std::set<uint64_t> all;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    const auto source = MakeChoices(*FindOrderedLoad("update"), {kItems, thread, 3, 1});
    const auto taken = Take(*source, 5000, numbers);
    for (uint64_t number : std::set(taken.begin(), taken.end())) {
      EXPECT_TRUE(all.insert(number).second) << number;
    }
  }
  EXPECT_EQ(all.size(), kItems);
}

// Goal: a scan says how many items it is of.
TEST(OrderedLoad, ScansCarryTheirLength) {
  OpStream stream(kFormat);
  MakeChoices(*FindOrderedLoad("scan24"), {10, 0, 1, 1})->Fill(stream, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(stream.at(i).kind, OpKind::kScan);
    EXPECT_EQ(stream.at(i).scan_items, 24u);
  }
}

}  // namespace
}  // namespace skep::bench

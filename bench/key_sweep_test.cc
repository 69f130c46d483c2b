#include "bench/key_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace skep::bench {
namespace {

const KeyFormat kFormat = KeyFormat::Random(16);

// Returns the numbers of all keys, so that the keys of a stream can be identified.
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
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(stream.at(i).kind, OpKind::kDelete);
    taken.push_back(numbers.at(std::string(stream.at(i).key)));
  }
  return taken;
}

// Goal: the threads of a sweep together take every key once, in an order that neither is that of
// the numbers nor the same for another seed.
// Method: numbers of items that share factors with everything, and shares of unequal size.
TEST(KeySweep, TakesEveryKeyOnce) {
  for (uint64_t items : {1, 2, 30, 1000, 1024, 1155}) {
    const auto numbers = NumbersOf(items);
    for (uint32_t threads = 1; threads <= 3; ++threads) {
      std::vector<uint64_t> taken;
      for (uint32_t thread = 0; thread < threads; ++thread) {
        KeySweep source(OpKind::kDelete, items, thread, threads, 5);
        const uint64_t share = items / threads + (thread < items % threads ? 1 : 0);
        std::ranges::copy(Take(source, share, numbers), std::back_inserter(taken));
      }
      EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), items) << items << " / " << threads;
      EXPECT_EQ(taken.size(), items);
    }
  }
  const auto numbers = NumbersOf(1000);
  const auto take = [&](uint64_t seed) {
    KeySweep source(OpKind::kDelete, 1000, 0, 1, seed);
    return Take(source, 1000, numbers);
  };
  EXPECT_FALSE(std::ranges::is_sorted(take(1)));
  EXPECT_EQ(take(1), take(1));
  EXPECT_NE(take(1), take(2));
}

// Goal: the keys taken are those that the threads have inserted, however many each has.
TEST(InsertedKeys, AreThoseOfTheThread) {
  const auto numbers = NumbersOf(100);
  InsertedKeys first(OpKind::kDelete, /*records=*/10, /*thread=*/0, /*threads=*/3);
  InsertedKeys last(OpKind::kDelete, /*records=*/10, /*thread=*/2, /*threads=*/3);
  EXPECT_EQ(Take(first, 3, numbers), (std::vector<uint64_t>{10, 13, 16}));
  EXPECT_EQ(Take(last, 2, numbers), (std::vector<uint64_t>{12, 15}));
  EXPECT_EQ(Take(last, 1, numbers), (std::vector<uint64_t>{18}));
}

}  // namespace
}  // namespace skep::bench

#include "hash/bucket_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/random.h"
#include "base/resident_bytes_test.h"

namespace skep::hash {
namespace {

// Members are destroyed in the right order: the prefaulter first.
struct TestArray {
  explicit TestArray(bool is_prefaulted) : array(budget, is_prefaulted ? &prefaulter : nullptr) {
    EXPECT_TRUE(array.Reserve());
  }

  MemoryBudget budget;
  BucketArray array;
  Prefaulter prefaulter;
};

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBucketsPerMiB = kMiB / sizeof(Bucket);

// Goal: however the array grows and shrinks, it is charged for what it holds, a new bucket is
// empty, and the others keep their contents, also where the first page becomes a huge one.
// Method: each bucket in use has its index written into it.
TEST(BucketArray, KeepsItsBucketsAndItsAccount) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (const bool is_prefaulted : {true, false}) {
    TestArray test(is_prefaulted);
    BucketArray& array = test.array;
    const MemoryBudget& budget = test.budget;
    const auto word = [&](uint64_t index) {
      uint64_t value;
      std::memcpy(&value, &array[index], sizeof(value));
      return value;
    };
    const auto resize = [&](uint64_t count) {
      while (array.count() < count) {
        ASSERT_TRUE(array.Add());
        const uint64_t last = array.count() - 1;
        ASSERT_EQ(word(last), 0u);
        std::memcpy(static_cast<void*>(&array[last]), &last, sizeof(last));
      }
      while (array.count() > count) {
        array[array.count() - 1] = Bucket{};
        array.RemoveLast();
      }
      ASSERT_EQ(budget.used(), array.held_bytes());
      ASSERT_GE(array.held_bytes(), array.count() * sizeof(Bucket));
      for (uint64_t i = 1; i < array.count(); ++i) ASSERT_EQ(word(i), i);
    };
    for (int turn = 0; turn < 40; ++turn) {
      resize(1 + random.Below(random.Chance(1, 2) ? 2 * kBucketsPerMiB : 24 * kBucketsPerMiB));
      if (HasFatalFailure()) return;
    }
    array.Clear();
    EXPECT_EQ(array.count(), 1u);
    EXPECT_EQ(word(0), 0u);
    EXPECT_EQ(budget.used(), array.held_bytes());
  }
}

// Goal: from 16 MiB on a further page is charged as soon as half of the last one is used, and
// becomes resident before it is touched; where the budget has no room for it, nothing is lost.
TEST(BucketArray, HoldsTheNextPageAhead) {
  TestArray test(true);
  BucketArray& array = test.array;
  const auto grow = [&](uint64_t count) {
    while (array.count() < count) ASSERT_TRUE(array.Add());
  };
  grow(15 * kBucketsPerMiB - 1);
  EXPECT_EQ(array.held_bytes(), 16 * kMiB);
  grow(15 * kBucketsPerMiB);
  EXPECT_EQ(array.held_bytes(), 18 * kMiB);
  EXPECT_TRUE(BecomesResident({reinterpret_cast<std::byte*>(&array[0]) + 16 * kMiB, 2 * kMiB}));
  // Shrinking and growing there asks for nothing again.
  array.RemoveLast();
  EXPECT_EQ(array.held_bytes(), 18 * kMiB);
  grow(15 * kBucketsPerMiB);
  EXPECT_EQ(array.held_bytes(), 18 * kMiB);

  test.budget.set_limit(test.budget.used());
  grow(18 * kBucketsPerMiB);
  EXPECT_EQ(array.held_bytes(), 18 * kMiB);
  EXPECT_FALSE(array.Add());
  test.budget.set_limit(0);
  grow(18 * kBucketsPerMiB + 1);
  EXPECT_EQ(array.held_bytes(), 20 * kMiB);
}

}  // namespace
}  // namespace skep::hash

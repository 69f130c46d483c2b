// Goal: both ways of sorting give the same groups, of the right leaves, and keep the order of
// operations on one key.
#include "hashleaf/dispatcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace skep::hashleaf {
namespace {

template <typename K>
class DispatcherTest : public testing::Test {
 protected:
  // Makes a map of leaves that begin at random keys.
  void MakeMap(size_t leaves, uint64_t range) {
    std::vector<K> firsts = {0};
    while (firsts.size() < leaves) firsts.push_back(static_cast<K>(rng_() % range));
    std::ranges::sort(firsts);
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    std::vector<Leaf<K>*> all;
    leaves_.clear();
    for (const K first : firsts) {
      leaves_.push_back(std::make_unique<Leaf<K>>(memory_, format_, first, kKeyMax<K>));
      all.push_back(leaves_.back().get());
    }
    map_ = std::make_unique<LeafMap<K>>(all);
  }

  MemoryBudget budget_;
  Memory memory_{budget_};
  const Format format_{.key_bytes = sizeof(K), .value_bytes = 8, .secret = 7};
  std::vector<std::unique_ptr<Leaf<K>>> leaves_;
  std::unique_ptr<LeafMap<K>> map_;
  std::mt19937_64 rng_{std::random_device{}()};
};

using Keys = testing::Types<uint32_t, uint64_t, Key128>;
TYPED_TEST_SUITE(DispatcherTest, Keys);

TYPED_TEST(DispatcherTest, TheMapFindsTheLeafOfEveryKey) {
  using K = TypeParam;
  for (const size_t leaves : {1u, 2u, 15u, 16u, 17u, 255u, 257u, 5000u}) {
    this->MakeMap(leaves, leaves * 10);
    const LeafMap<K>& map = *this->map_;
    for (uint32_t i = 0; i < map.size(); ++i) {
      const K last = i + 1 < map.size() ? map.leaf(i + 1)->first - 1 : kKeyMax<K>;
      ASSERT_EQ(map.IndexOf(map.leaf(i)->first), i);
      ASSERT_EQ(map.IndexOf(last), i);
    }
  }
}

TYPED_TEST(DispatcherTest, BothWaysGiveTheSameGroups) {
  using K = TypeParam;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  this->rng_.seed(seed);
  Dispatcher<K> by_count;
  Dispatcher<K> by_sort;
  for (const size_t leaves : {1u, 7u, 300u}) {
    this->MakeMap(leaves, 1000);
    const LeafMap<K>& map = *this->map_;
    for (const uint32_t count : {1u, 2u, 33u, 1000u}) {
      std::vector<Unit<K>> units;
      for (uint32_t i = 0; i < count; ++i) {
        const K key = this->rng_() % 10 == 0 ? kKeyMax<K> : static_cast<K>(this->rng_() % 1100);
        units.push_back(Unit<K>::Of(key, i, i % 6));
      }
      by_count.Dispatch(units, map, GroupBy::kCount);
      by_sort.Dispatch(units, map, GroupBy::kSort);
      ASSERT_EQ(by_count.groups().size(), by_sort.groups().size());
      uint32_t at = 0;
      for (size_t g = 0; g < by_count.groups().size(); ++g) {
        const Group<K>& group = by_count.groups()[g];
        ASSERT_EQ(group.leaf, by_sort.groups()[g].leaf);
        ASSERT_EQ(group.begin, at);
        ASSERT_EQ(group.begin, by_sort.groups()[g].begin);
        ASSERT_EQ(group.end, by_sort.groups()[g].end);
        at = group.end;
        for (const Dispatcher<K>* const dispatcher : {&by_count, &by_sort}) {
          for (uint32_t i = group.begin; i < group.end; ++i) {
            const Unit<K>& unit = dispatcher->sorted()[i];
            ASSERT_EQ(unit.key, units[unit.index()].key);
            ASSERT_EQ(unit.kind(), unit.index() % 6);
            ASSERT_EQ(map.leaf(map.IndexOf(unit.key)), group.leaf);
            for (uint32_t j = group.begin; j < i && count < 100; ++j) {
              const Unit<K>& before = dispatcher->sorted()[j];
              if (before.key != unit.key) continue;
              ASSERT_LT(before.index(), unit.index());
            }
          }
        }
      }
      ASSERT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace skep::hashleaf

// Goal: a lane looks for a key once however often it is read, does nothing in a leaf that another
// thread holds, and follows leaves that were split since the batch was dispatched: its answers
// alone do not tell.
#include "hashleaf/lane.h"

#include <gtest/gtest.h>

#include <string>

namespace skep::hashleaf {
namespace {

using K = uint32_t;

// One leaf, and a window of points on it.
class LaneTest : public testing::Test {
 protected:
  struct Point {
    PointKind kind;
    K key;
    uint32_t value = 0;  // to store
  };

  LaneTest() { EXPECT_TRUE(core_.Start()); }

  static uint64_t Hash(K key) { return HashOf(key, kSecret); }
  Leaf<K>& First() { return *core_.Map().leaf(0); }
  void Store(LeafMutator<K>& mutator, K key, uint32_t value) {
    const std::lock_guard lock(First().lock);
    ASSERT_EQ(mutator.Store(First(), key, Hash(key), &value, nullptr, Arena::Limit::kObey),
              LeafMutator<K>::Stored::kDone);
  }

  // Makes the window of these points, with the map as it is now.
  const SortedWindow<K>& Dispatch(const std::vector<Point>& points) {
    units_.clear();
    slots_.clear();
    values_.clear();
    for (const Point& point : points) {
      const auto index = static_cast<uint32_t>(units_.size());
      units_.push_back(Unit<K>::Of(point.key, index, static_cast<uint32_t>(point.kind)));
      slots_.push_back(index);
      values_.push_back(point.value);
      // Writers tell watches the key of their request, so the batch needs one.
      batch_.Delete("1234");
    }
    results_.assign(points.size(), kNothing);
    dispatcher_.Dispatch(units_, core_.Map(), GroupBy::kSort);
    window_.emplace(SortedWindow<K>{.core = core_,
                                    .traits = traits_,
                                    .requests = batch_.requests(),
                                    .out = out_,
                                    .sorted = dispatcher_.sorted(),
                                    .groups = dispatcher_.groups(),
                                    .slots = slots_.data(),
                                    .results = results_.data(),
                                    .numbers = nullptr,
                                    .values = reinterpret_cast<char*>(values_.data())});
    return *window_;
  }

  static constexpr uint64_t kSecret = 7;
  static constexpr uint8_t kNothing = 0xff;  // of a point that is not done
  static constexpr uint8_t kFound = kPointPresent | kPointDone;

  MemoryBudget budget_;
  LatestNow now_;
  Watches watches_;
  Core<K> core_{{.leaf_bytes = Table<K>::kBytesMin},
                {.key_bytes = 4, .value_bytes = 4, .secret = kSecret, .chunk_bytes = 4096},
                budget_,
                now_,
                watches_,
                false};
  const Epochs::Guard guard_{core_.epochs};
  const EngineTraits traits_{.name = "test"};
  Batch batch_;
  BatchWriter out_{batch_};
  std::vector<Unit<K>> units_;
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> values_;
  std::vector<uint8_t> results_;
  Dispatcher<K> dispatcher_;
  std::optional<SortedWindow<K>> window_;
};

// Goal: equal keys lie side by side, and only the first read looks for its key; a write between two
// reads makes the second one look again.
TEST_F(LaneTest, EqualKeysAreLookedForOnce) {
  LeafMutator<K> mutator(core_);
  Store(mutator, 5, 50);
  Store(mutator, 6, 60);
  constexpr auto kGet = PointKind::kGet;
  const SortedWindow<K>& window = Dispatch(
      {{kGet, 5}, {kGet, 6}, {kGet, 5}, {kGet, 5}, {PointKind::kPut, 6, 61}, {kGet, 6}, {kGet, 6}});
  Lane<K> lane(window, mutator);
  lane.Do(0, window.groups.size());
  EXPECT_EQ(results_, std::vector<uint8_t>(7, kFound));
  EXPECT_EQ(values_, (std::vector<uint32_t>{50, 60, 50, 50, 61, 61, 61}));
  EXPECT_EQ(lane.repeats(), 3u) << "5 the second and third time, 6 the last time";
}

// Goal: one thread works on a leaf at a time: nothing is done in a locked leaf until it is free.
TEST_F(LaneTest, ABusyLeafIsLeftForTheEnd) {
  LeafMutator<K> mutator(core_);
  Store(mutator, 5, 50);
  const SortedWindow<K>& window = Dispatch({{PointKind::kGet, 5}, {PointKind::kPut, 5, 51}});
  Lane<K> lane(window, mutator);
  First().lock.lock();
  lane.Do(0, window.groups.size());
  EXPECT_EQ(results_, std::vector<uint8_t>(2, kNothing));
  uint32_t stored = 0;
  std::memcpy(&stored, First().table.Find(5, Hash(5)), sizeof(stored));
  EXPECT_EQ(stored, 50u);
  First().lock.unlock();
  lane.DoBusy();
  EXPECT_EQ(results_, std::vector<uint8_t>(2, kFound));
  EXPECT_EQ(values_, (std::vector<uint32_t>{50, 51}));
}

// Goal: a batch that was dispatched before leaves were split finds its keys in the new leaves.
// Method: the window is made while there is one leaf; then pairs are added until there are several.
TEST_F(LaneTest, ABatchInFlightFollowsASplit) {
  LeafMutator<K> mutator(core_);
  constexpr K kStep = 1000;
  constexpr K kKeys = 2000;
  const SortedWindow<K>& window = Dispatch({{PointKind::kGet, 0},
                                            {PointKind::kGet, (kKeys - 1) * kStep},
                                            {PointKind::kPut, (kKeys - 1) * kStep, 77},
                                            {PointKind::kGet, (kKeys - 1) * kStep},
                                            {PointKind::kDelete, kStep}});
  ASSERT_EQ(window.groups.size(), 1u);
  for (K i = 0; i < kKeys; ++i) {
    const K key = i * 777 % kKeys * kStep;
    Leaf<K>* leaf = &LockLeafOf(&First(), key);
    const uint32_t value = key + 1;
    while (mutator.Store(*leaf, key, Hash(key), &value, nullptr, Arena::Limit::kObey) ==
           LeafMutator<K>::Stored::kElsewhere) {
      leaf->lock.unlock();
      leaf = &LockLeafOf(&First(), key);
    }
    leaf->lock.unlock();
  }
  ASSERT_LT(First().last, (kKeys - 1) * kStep);
  Lane<K> lane(window, mutator);
  lane.Do(0, window.groups.size());
  EXPECT_EQ(results_, std::vector<uint8_t>(5, kFound));
  EXPECT_EQ(values_, (std::vector<uint32_t>{1, (kKeys - 1) * kStep + 1, 77, 77, 0}));
  EXPECT_EQ(First().table.Find(kStep, Hash(kStep)), nullptr);
}

}  // namespace
}  // namespace skep::hashleaf

// Goal: a thread that finds a partition locked does the unlocked ones first, and none without its
// lock.
// Method: another thread holds the first partition of a thread's order until all others are done.
#include "hash/groups.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/arena.h"

namespace skep::hash {
namespace {

TEST(Groups, APartitionThatIsTakenComesLast) {
  constexpr uint32_t kPartitions = 4;
  MemoryBudget budget;
  LatestNow now;
  Watches watches;
  Core core(budget, now, watches, false);
  core.arenas.push_back(std::make_unique<Arena>(ArenaOptions{.budget = &budget}));
  for (uint32_t i = 0; i < kPartitions; ++i) {
    core.partitions.push_back(
        std::make_unique<Partition>(*core.arenas[0], budget, TableOptions{.prefaulter = nullptr}));
  }
  const auto groups = std::make_unique<Groups>();
  const auto run = [&](auto step) {
    groups->Begin(core);
    for (uint32_t i = 0; i < kPartitions; ++i) groups->Count(i);
    groups->Divide();
    for (uint32_t i = 0; i < kPartitions; ++i) groups->Put(i, i);
    groups->Run(step);
  };

  std::vector<const Partition*> met;
  const auto meet = [&](Partition& partition, const Groups::Group&) {
    EXPECT_FALSE(partition.lock.try_lock());
    met.push_back(&partition);
  };
  run(meet);
  ASSERT_EQ(met.size(), kPartitions);
  Partition& first = *core.partitions[0];
  const size_t others = kPartitions - 1;

  met.clear();
  std::atomic<size_t> done = 0;
  first.lock.lock();
  std::thread thread([&] {
    run([&](Partition& partition, const Groups::Group& group) {
      meet(partition, group);
      ++done;
    });
  });
  while (done < others) std::this_thread::yield();
  first.lock.unlock();
  thread.join();
  ASSERT_EQ(met.size(), kPartitions);
  EXPECT_EQ(met.back(), &first);
}

}  // namespace
}  // namespace skep::hash

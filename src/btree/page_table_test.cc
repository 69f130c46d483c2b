#include "btree/page_table.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/random.h"

namespace skep::btree {
namespace {

constexpr uint64_t kLids = 1000;

ArenaAddress BufferOf(uint64_t n) {
  return ArenaAddress::Of(static_cast<uint16_t>(n % 7), (n % 1000 + 1) * 256);
}

// Goal: an empty table finds no link, and costs nothing.
TEST(PageTable, Empty) {
  MemoryBudget budget;
  const PageTable table(&budget, kLids);
  EXPECT_EQ(table.end(), 1u);
  EXPECT_EQ(table.allocated(), 0u);
  EXPECT_EQ(table.held_bytes(), 0u);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_FALSE(table.Find(Link()));
  EXPECT_FALSE(table.Find(Link::Of(0, 1)));
  EXPECT_FALSE(table.Find(Link::Of(1, 0)));
  EXPECT_FALSE(table.Find(Link::Of(1, 1)));
}

// Goal: the row's format holds the highest region and offset, and the region 0.
TEST(PageTable, Rows) {
  MemoryBudget budget;
  PageTable table(&budget, kLids);
  const Link link = table.Allocate();
  EXPECT_FALSE(table.Find(link));
  for (const ArenaAddress buffer : {ArenaAddress::Of(0, 256), ArenaAddress::Of(UINT16_MAX, 0),
                                    ArenaAddress::Of(UINT16_MAX, (uint64_t{1} << 40) - 256)}) {
    table.Map(link, buffer);
    EXPECT_EQ(table.Find(link), buffer);
    EXPECT_EQ(table.Load(link.lid()).buffer(), buffer);
    EXPECT_EQ(table.Load(link.lid()).generation(), link.generation());
  }
  table.Map(link, {});
  EXPECT_FALSE(table.Find(link));
  EXPECT_EQ(table.Load(link.lid()).generation(), link.generation());
}

// Goal: the table agrees with a map from LIDs to generation and buffer, whatever is allocated,
// mapped and freed; old links are never found.
TEST(PageTable, AgreesWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  MemoryBudget budget;
  PageTable table(&budget, kLids);
  std::vector<Link> live;
  std::map<Lid, ArenaAddress> model;
  std::vector<Link> stale;

  for (uint64_t step = 0; step < 20000; ++step) {
    const uint64_t choice = random.Below(10);
    if (choice < 4 || live.empty()) {
      const Link link = table.Allocate();
      ASSERT_EQ(static_cast<bool>(link), live.size() < kLids - 1);
      if (!link) continue;
      ASSERT_NE(link.generation(), 0u);
      ASSERT_TRUE(model.emplace(link.lid(), ArenaAddress()).second) << "given twice";
      live.push_back(link);
    } else if (choice < 7) {
      const Link link = live[random.Below(live.size())];
      model[link.lid()] = BufferOf(step);
      table.Map(link, BufferOf(step));
    } else {
      std::swap(live[random.Below(live.size())], live.back());
      table.Free(live.back());
      model.erase(live.back().lid());
      stale.push_back(live.back());
      live.pop_back();
    }
    ASSERT_EQ(table.allocated(), live.size());
    if (!live.empty()) {
      const Link link = live[random.Below(live.size())];
      ASSERT_EQ(table.Find(link), model[link.lid()]);
    }
    if (!stale.empty()) {
      ASSERT_FALSE(table.Find(stale[random.Below(stale.size())]));
    }
  }
  for (const Link link : live) EXPECT_EQ(table.Find(link), model[link.lid()]);
  EXPECT_LE(table.end(), kLids);
}

// Goal: all LIDs but 0 can be had; then none, until one is free; the last one freed comes first.
TEST(PageTable, Exhausted) {
  MemoryBudget budget;
  PageTable table(&budget, kLids);
  std::vector<Link> links;
  while (const Link link = table.Allocate()) links.push_back(link);
  EXPECT_EQ(links.size(), kLids - 1);
  EXPECT_EQ(links.front().lid(), 1u);
  EXPECT_EQ(links.back().lid(), kLids - 1);
  table.Free(links[5]);
  table.Free(links[9]);
  EXPECT_EQ(table.Allocate(), Link::Of(links[9].lid(), 2));
  EXPECT_EQ(table.Allocate(), Link::Of(links[5].lid(), 2));
  EXPECT_FALSE(table.Allocate());
}

// Goal: generations go around from 65535 to 1: 0 is never one, and a link is found only while its
// generation is that of its LID.
TEST(PageTable, GenerationsGoAround) {
  MemoryBudget budget;
  PageTable table(&budget, kLids);
  const Link first = table.Allocate();
  table.Map(first, BufferOf(1));
  Link link = first;
  for (uint32_t i = 1; i <= 70000; ++i) {
    table.Free(link);
    const auto entry = table.Load(first.lid());
    ASSERT_FALSE(entry.buffer());
    ASSERT_NE(entry.generation(), 0u);
    ASSERT_FALSE(table.Find(link));
    link = table.Allocate();
    ASSERT_EQ(link.lid(), first.lid());
    ASSERT_EQ(link.generation(), i % UINT16_MAX + 1);
    table.Map(link, BufferOf(i));
    ASSERT_EQ(table.Find(link), BufferOf(i));
    ASSERT_EQ(static_cast<bool>(table.Find(first)), link == first);
  }
}

// Goal: a client's hint may hold any bits.
TEST(PageTable, FindsNothingForAnyBits) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  MemoryBudget budget;
  PageTable table(&budget);
  const Link link = table.Allocate();
  table.Map(link, BufferOf(1));
  for (const uint64_t lid :
       {uint64_t{0}, table.end(), uint64_t{1} << 28, uint64_t{1} << 32, (uint64_t{1} << 48) - 1}) {
    EXPECT_FALSE(table.Find(Link::Of(lid, 0)));
    EXPECT_FALSE(table.Find(Link::Of(lid, 1)));
    EXPECT_FALSE(table.Find(Link::Of(lid, UINT16_MAX)));
  }
  for (int i = 0; i < 10000; ++i) {
    const Link any{random.Next() >> random.Below(64)};
    EXPECT_EQ(static_cast<bool>(table.Find(any)), any == link) << any.bits;
  }
}

// Goal: the table charges the pages of the rows that were used, and of the stack of free LIDs.
TEST(PageTable, Charges) {
  MemoryBudget budget;
  {
    PageTable table(&budget);
    EXPECT_EQ(budget.used(), 0u);
    const Link first = table.Allocate();
    EXPECT_EQ(budget.used(), 2 * 4096u);  // rows of 8 bytes, and counts of 4
    for (int i = 1; i < 511; ++i) table.Allocate();
    EXPECT_EQ(table.held_bytes(), 2 * 4096u);
    table.Allocate();
    EXPECT_EQ(table.held_bytes(), 3 * 4096u);
    table.Free(first);
    EXPECT_EQ(table.held_bytes(), 4 * 4096u);
    table.Free(table.Allocate());
    EXPECT_EQ(table.held_bytes(), 4 * 4096u);
    EXPECT_EQ(budget.used(), table.held_bytes());
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: with little address space the table is smaller; with none it has no LIDs.
TEST(PageTable, LittleAddressSpace) {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  const uint64_t now = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  MemoryBudget budget;

  tight.rlim_cur = now + (uint64_t{256} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::optional<PageTable> smaller(std::in_place, &budget);
  tight.rlim_cur = now;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::optional<PageTable> none(std::in_place, &budget);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);

  EXPECT_TRUE(smaller->Allocate());
  EXPECT_FALSE(none->Allocate());
  EXPECT_FALSE(none->Find(Link::Of(1, 1)));
  EXPECT_EQ(none->held_bytes(), 0u);
}

// Goal: no LID is given twice at a time, and a reader sees, for any link it is handed, that link's
// buffer or none.
// Method: the buffer says which LID and generation it was mapped for; readers take links from slots
// that writers keep overwriting, so that many are stale. Few LIDs, so that they are reused at once.
TEST(PageTable, Threads) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr uint64_t kFewLids = 64;
  constexpr int kWriters = 2;
  constexpr int kSteps = 20000;
  MemoryBudget budget;
  PageTable table(&budget, kFewLids);
  const auto buffer_of = [](Link link) {
    return ArenaAddress::Of(link.generation(), (link.lid() + 1) * 256);
  };
  std::vector<std::atomic<uint64_t>> owned(kFewLids);
  std::vector<std::atomic<uint64_t>> published(16);
  std::atomic<uint64_t> broken = 0;
  std::atomic<int> writing = kWriters;

  const auto free = [&](Link link) {
    owned[link.lid()] = 0;
    table.Free(link);
  };
  const auto write = [&](int thread) {
    SeededRandom random(seed + static_cast<uint64_t>(thread));
    std::vector<Link> mine;
    for (int step = 0; step < kSteps; ++step) {
      const Link link = mine.size() < kFewLids / 4 ? table.Allocate() : Link();
      if (link) {
        if (owned[link.lid()].exchange(1) != 0) ++broken;
        table.Map(link, buffer_of(link));
        published[random.Below(published.size())] = link.bits;
        mine.push_back(link);
      }
      if (!mine.empty() && random.Chance(1, 2)) {
        std::swap(mine[random.Below(mine.size())], mine.back());
        free(mine.back());
        mine.pop_back();
      }
    }
    for (const Link link : mine) free(link);
    --writing;
  };
  const auto read = [&] {
    SeededRandom random(seed);
    while (writing > 0) {
      const Link link{published[random.Below(published.size())]};
      const ArenaAddress found = table.Find(link);
      if (found && found != buffer_of(link)) ++broken;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) threads.emplace_back(write, i + 1);
  threads.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0u);
  EXPECT_EQ(table.allocated(), 0u);
}

using PageTableDeathTest = ::testing::Test;

// Goal: freeing a link twice stops the process.
TEST(PageTableDeathTest, FreesOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  MemoryBudget budget;
  PageTable table(&budget, kLids);
  const Link link = table.Allocate();
  table.Free(link);
  EXPECT_DEATH(table.Free(link), "");
  EXPECT_DEATH(table.Free(Link()), "");
  EXPECT_DEATH(table.Free(Link::Of(kLids, 1)), "");
}

}  // namespace
}  // namespace skep::btree

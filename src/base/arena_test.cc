#include "base/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/poison.h"
#include "base/random.h"
#include "base/resident_bytes_test.h"
#include "base/sanitized.h"
#include "base/test_arena_test.h"

namespace skep {
namespace {

struct Allocation {
  ArenaAddress at;
  size_t bytes;
  uint8_t pattern;
};

void Fill(const Arena& arena, const Allocation& allocation) {
  std::memset(arena.At(allocation.at), allocation.pattern, Arena::RoundUp(allocation.bytes));
}

// Checks the first and last bytes, which is enough to notice a neighbour that overlaps.
bool IsIntact(const Arena& arena, const Allocation& allocation) {
  const std::byte* at = arena.At(allocation.at);
  const size_t size = Arena::RoundUp(allocation.bytes);
  const auto is_pattern = [&](std::byte b) { return b == std::byte{allocation.pattern}; };
  return std::all_of(at, at + 64, is_pattern) && std::all_of(at + size - 64, at + size, is_pattern);
}

constexpr bool kHasShadow = kSanitized;  // with a shadow, more memory is resident than is used

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns how much of the first `bytes` of region 0 is resident.
uint64_t ResidentBytes(const Arena& arena, uint64_t bytes) {
  return ResidentBytesOf({arena.At(ArenaAddress()), bytes});
}

// Returns sizes that are mostly small; some are a node's, few take several spans.
size_t RandomSize(Random& random) {
  if (random.Chance(1, 50)) return 1 + random.Below(5 * Arena::kSpanBytes);
  if (random.Chance(1, 3)) return 2048 + random.Below(8192 - 2048);
  return 1 + random.Below(random.Chance(1, 4) ? Arena::kSlotBytesMax : 1024);
}

// Goal: RoundUp keeps its contract: at least the requested size, of the promised alignment,
// idempotent, monotone; and it costs no slot: the waste is below the next slot's share.
TEST_P(ArenaTest, RoundUp) {
  size_t last = 0;
  for (size_t bytes = 1; bytes <= 3 * Arena::kSpanBytes; ++bytes) {
    const size_t rounded = Arena::RoundUp(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_GE(rounded, last) << bytes;
    ASSERT_EQ(Arena::RoundUp(rounded), rounded) << bytes;
    ASSERT_EQ(rounded % (rounded < 1024 ? 64 : 256), 0u) << bytes;
    if (bytes <= 1024) {
      ASSERT_LT(rounded - bytes, 64u);
    }
    if (bytes <= Arena::kSlotBytesMax) {
      const size_t unit = bytes <= 1024 ? 64 : 256;
      const size_t least = (bytes + unit - 1) / unit * unit;
      ASSERT_EQ(Arena::kSpanBytes / rounded, Arena::kSpanBytes / least) << bytes;
    } else {
      ASSERT_LT(rounded - bytes, Arena::kSpanBytes) << bytes;
    }
    last = rounded;
  }
  EXPECT_EQ(Arena::RoundUp(1), 64u);
  EXPECT_EQ(Arena::RoundUp(8192), 8192u);
  EXPECT_EQ(Arena::RoundUp(Arena::kSlotBytesMax), Arena::kSlotBytesMax);
  EXPECT_EQ(Arena::RoundUp(Arena::kBytesMax), Arena::kBytesMax);
}

// Goal: an arena that was never used holds nothing, and gives back at its end what it held.
TEST_P(ArenaTest, HoldsNothingAtFirstAndAtLast) {
  MemoryBudget budget;
  {
    Arena arena({.budget = &budget, .is_shared = GetParam()});
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(arena.Verify(), nullptr);
    EXPECT_FALSE(arena.Trim());
    Arena::Cache cache;
    const ArenaAddress at = arena.Allocate(cache, 100, Limit::kObey);
    ASSERT_TRUE(at);
    EXPECT_EQ(budget.used(), Arena::kSpanBytes);
    EXPECT_EQ(arena.Statistics().allocated_bytes, 128u);
    arena.Flush(cache);
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: allocations overlap nothing, are aligned, and are counted, whatever is allocated and freed.
// Method: each is filled with its own byte, checked when it is freed; regions of 4 MiB so that
// there are several; phases that mostly allocate and mostly free.
TEST_P(ArenaTest, AgreesWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  TestArena test(GetParam(), 0, 4 * kMiB);
  Arena& arena = test.arena;
  std::vector<Allocation> live;
  uint64_t model_bytes = 0;
  std::set<uint16_t> regions;

  for (int step = 0; step < 30000; ++step) {
    const bool grows = step / 5000 % 2 == 0;
    if (live.empty() || random.Chance(grows ? 2 : 1, 3)) {
      const size_t bytes = RandomSize(random);
      const Allocation made = {.at = test.Allocate(bytes),
                               .bytes = bytes,
                               .pattern = static_cast<uint8_t>(random.Next())};
      ASSERT_TRUE(made.at);
      const size_t alignment = Arena::RoundUp(bytes) % 256 == 0 ? 256 : 64;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(arena.At(made.at)) % alignment, 0u) << bytes;
      ASSERT_EQ(made.at.offset() % alignment, 0u);
      Fill(arena, made);
      live.push_back(made);
      regions.insert(made.at.region());
      model_bytes += Arena::RoundUp(bytes);
    } else {
      std::swap(live[random.Below(live.size())], live.back());
      ASSERT_TRUE(IsIntact(arena, live.back())) << live.back().bytes;
      model_bytes -= Arena::RoundUp(live.back().bytes);
      test.Free(live.back().at,
                random.Chance(1, 2) ? live.back().bytes : Arena::RoundUp(live.back().bytes));
      live.pop_back();
    }
    if (random.Chance(1, 1000)) test.arena.Flush(test.cache);
    if (random.Chance(1, 1000)) test.arena.Trim();
    if (step % 500 == 0) {
      ASSERT_STREQ(arena.Verify(), nullptr) << step;
    }
    ASSERT_EQ(test.allocated(), model_bytes);
    ASSERT_EQ(test.held(), test.budget.used());
    ASSERT_GE(test.held(), model_bytes);
  }
  EXPECT_GT(regions.size(), 2u);
  for (const Allocation& allocation : live) {
    ASSERT_TRUE(IsIntact(arena, allocation));
    test.Free(allocation.at, allocation.bytes);
  }
  test.FlushAndTrim();
  EXPECT_STREQ(arena.Verify(), nullptr);
  EXPECT_EQ(test.held(), 0u);
  EXPECT_EQ(test.allocated(), 0u);
}

// Goal: slots of a class pack: a span holds as many as fit.
TEST_P(ArenaTest, SlotsPack) {
  for (size_t bytes : {64, 960, 1024, 5888, 8192, 21760, 32768}) {
    TestArena test(GetParam());
    const size_t slots = Arena::kSpanBytes / bytes;
    for (size_t i = 0; i < 3 * slots; ++i) ASSERT_TRUE(test.Allocate(bytes));
    EXPECT_EQ(test.held(), 3 * Arena::kSpanBytes) << bytes;
    ASSERT_TRUE(test.Allocate(bytes));
    EXPECT_EQ(test.held(), 4 * Arena::kSpanBytes) << bytes;
  }
}

// Goal: holes close, though one thread frees and allocates by turns and could always use again what
// it has just freed.
// Method: buffers of which a random half goes, and then each of the others, in random order, to a
// new place.
TEST_P(ArenaTest, HolesClose) {
  constexpr size_t kBytes = 5888;
  constexpr size_t kLive = 2000;
  SeededRandom random(1);
  TestArena test(GetParam());
  std::vector<ArenaAddress> buffers;
  for (size_t i = 0; i < 2 * kLive; ++i) buffers.push_back(test.Allocate(kBytes));
  while (buffers.size() > kLive) {
    std::swap(buffers[random.Below(buffers.size())], buffers.back());
    test.Free(buffers.back(), kBytes);
    buffers.pop_back();
  }
  for (size_t i = 0; i < 5 * kLive; ++i) {
    ArenaAddress& buffer = buffers[random.Below(kLive)];
    const ArenaAddress next = test.Allocate(kBytes);
    test.Free(buffer, kBytes);
    buffer = next;
  }
  while (test.arena.Trim()) {
  }
  EXPECT_LE(test.held(), test.allocated() * 5 / 4);
  EXPECT_STREQ(test.arena.Verify(), nullptr);
}

// Goal: no allocation has the address 0, and memory fills from the beginning.
TEST_P(ArenaTest, AddressesBeginLow) {
  TestArena test(GetParam());
  const ArenaAddress first = test.Allocate(Arena::kSlotBytesMax);
  EXPECT_EQ(first.region(), 0u);
  EXPECT_GE(first.offset(), Arena::kSpanBytes);
  EXPECT_LT(first.offset(), 2 * Arena::kSpanBytes);
}

// Goal: the limit is obeyed to the span, kExceed goes beyond it, and freed spans can be had again.
TEST_P(ArenaTest, ObeysTheLimit) {
  constexpr uint64_t kSpans = 10;
  TestArena test(GetParam(), kSpans * Arena::kSpanBytes + Arena::kSpanBytes - 1);
  std::vector<ArenaAddress> slots;
  while (const ArenaAddress at = test.Allocate(8192)) slots.push_back(at);
  EXPECT_EQ(slots.size(), kSpans * 8);
  EXPECT_EQ(test.held(), kSpans * Arena::kSpanBytes);
  EXPECT_FALSE(test.Allocate(64));
  EXPECT_FALSE(test.Allocate(kMiB));

  const ArenaAddress beyond = test.Allocate(64, Limit::kExceed);
  const ArenaAddress run = test.Allocate(kMiB, Limit::kExceed);
  ASSERT_TRUE(beyond && run);
  EXPECT_EQ(test.held(), (kSpans + 1) * Arena::kSpanBytes + kMiB);
  test.Free(run, kMiB);
  test.Free(beyond, 64);

  for (ArenaAddress at : slots) test.Free(at, 8192);
  test.FlushAndTrim();
  EXPECT_EQ(test.held(), 0u);
  EXPECT_TRUE(test.Allocate(kSpans * Arena::kSpanBytes));
  EXPECT_FALSE(test.Allocate(64));
  EXPECT_STREQ(test.arena.Verify(), nullptr);
}

// Goal: spans that are only kept do not stand in the way of a run at the limit.
// Method: at the limit, free two spans that are not neighbours: both are kept and no run of two.
TEST_P(ArenaTest, GivesKeptSpansBackForARun) {
  TestArena test(GetParam(), 8 * Arena::kSpanBytes);
  std::vector<ArenaAddress> spans;
  while (const ArenaAddress at = test.Allocate(Arena::kSpanBytes)) spans.push_back(at);
  ASSERT_EQ(spans.size(), 8u);
  test.Free(spans[2], Arena::kSpanBytes);
  test.Free(spans[5], Arena::kSpanBytes);
  EXPECT_EQ(test.held(), 8 * Arena::kSpanBytes);
  const ArenaAddress run = test.Allocate(2 * Arena::kSpanBytes);
  EXPECT_TRUE(run);
  EXPECT_EQ(test.held(), 8 * Arena::kSpanBytes);
  EXPECT_FALSE(test.Allocate(64));
  EXPECT_STREQ(test.arena.Verify(), nullptr);
}

// Goal: runs up to the largest value, in regions that would be too small for them.
TEST_P(ArenaTest, LargeRuns) {
  TestArena test(GetParam(), 0, 4 * kMiB);
  std::vector<Allocation> live;
  for (size_t bytes : {Arena::kSlotBytesMax + 1, size_t{Arena::kSpanBytes + 1}, size_t{3 * kMiB},
                       size_t{5 * kMiB}, size_t{64 * kMiB + 8}}) {
    live.push_back({.at = test.Allocate(bytes), .bytes = bytes, .pattern = 7});
    ASSERT_TRUE(live.back().at) << bytes;
    Fill(test.arena, live.back());
  }
  EXPECT_STREQ(test.arena.Verify(), nullptr);
  for (const Allocation& allocation : live) {
    EXPECT_TRUE(IsIntact(test.arena, allocation));
    test.Free(allocation.at, allocation.bytes);
  }
  test.FlushAndTrim();
  EXPECT_EQ(test.held(), 0u);
}

// Goal: after a random 95 % of a tree's nodes are gone, most of their memory is, and new nodes take
// the gaps; after all are gone, everything is, resident memory too.
TEST_P(ArenaTest, MemoryComesBack) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr size_t kBytes = 5500;
  constexpr size_t kCount = 16000;
  TestArena test(GetParam());
  test.Free(test.Allocate(kBytes), kBytes);  // its tables are there
  test.FlushAndTrim();
  EXPECT_EQ(test.held(), 0u);
  std::vector<Allocation> live(kCount);
  const uint64_t resident_before = ResidentBytes();
  for (Allocation& allocation : live) {
    allocation = {.at = test.Allocate(kBytes), .bytes = kBytes, .pattern = 1};
    Fill(test.arena, allocation);
  }
  const uint64_t full = test.held();
  EXPECT_GE(ResidentBytes(test.arena, 2 * full), full * 9 / 10);

  for (size_t i = kCount; i > 1; --i) std::swap(live[i - 1], live[random.Below(i)]);
  const size_t left = kCount / 20;
  for (size_t i = left; i < kCount; ++i) test.Free(live[i].at, kBytes);
  live.resize(left);
  test.FlushAndTrim();
  EXPECT_STREQ(test.arena.Verify(), nullptr);
  // 57 % (0.95^11) of the spans of eleven slots are wholly free.
  EXPECT_LT(test.held(), full / 2);
  const uint64_t sparse = test.held();
  const size_t gaps = sparse / Arena::kSpanBytes * 11 - left;
  for (size_t i = 0; i < gaps * 9 / 10; ++i) {
    live.push_back({.at = test.Allocate(kBytes), .bytes = kBytes, .pattern = 2});
    Fill(test.arena, live.back());
  }
  EXPECT_EQ(test.held(), sparse);

  for (const Allocation& allocation : live) {
    ASSERT_TRUE(IsIntact(test.arena, allocation));
    test.Free(allocation.at, kBytes);
  }
  test.FlushAndTrim();
  EXPECT_EQ(test.held(), 0u);
  EXPECT_EQ(test.budget.used(), 0u);
  // The span of the address 0 is never handed out, but may be resident as a part of a huge page.
  EXPECT_LE(ResidentBytes(test.arena, 2 * full), Arena::kSpanBytes);
  if (!kHasShadow) {
    EXPECT_LT(ResidentBytes(), resident_before + full / 20);
  }
}

// Goal: an arena keeps few free spans: without being asked a block's or 1/12 of what it holds,
// after Trim two or 1/12, and none if hardly any span is used.
TEST_P(ArenaTest, KeepsFewFreeSpans) {
  TestArena test(GetParam());
  std::vector<ArenaAddress> spans;
  for (int i = 0; i < 2000; ++i) spans.push_back(test.Allocate(Arena::kSpanBytes));
  const auto kept = [&] { return test.held() / Arena::kSpanBytes - spans.size(); };
  const auto share = [&] { return test.held() / Arena::kSpanBytes / 12; };
  while (spans.size() > 100) {
    test.Free(spans.back(), Arena::kSpanBytes);
    spans.pop_back();
    ASSERT_LE(kept(), std::max<uint64_t>(32, share()));
  }
  EXPECT_GT(kept(), share());
  const uint64_t share_before = share();
  EXPECT_TRUE(test.arena.Trim());
  EXPECT_LE(kept(), share_before);
  EXPECT_FALSE(test.arena.Trim());
  while (spans.size() > 1) {
    test.Free(spans.back(), Arena::kSpanBytes);
    spans.pop_back();
  }
  test.FlushAndTrim();
  EXPECT_EQ(kept(), 0u);
}

// Goal: an arena with a prefaulter keeps a little of what it will need next, charged and resident
// before it is touched: nothing below 96 MiB, up to 10 MiB; it takes that first, Trim leaves it,
// and where the budget has no room there is none.
TEST_P(ArenaTest, KeepsTheNextBlocksAhead) {
  TestArena test(GetParam(), 0, uint64_t{1} << 30, true);
  std::vector<ArenaAddress> spans;
  const auto grow = [&](uint64_t bytes) {
    while (spans.size() * Arena::kSpanBytes < bytes) {
      spans.push_back(test.Allocate(Arena::kSpanBytes));
      ASSERT_TRUE(spans.back());
    }
  };
  const auto kept = [&] { return test.held() - spans.size() * Arena::kSpanBytes; };
  grow(95 * kMiB);
  EXPECT_EQ(kept(), 0u);
  for (const uint64_t bytes : {120 * kMiB, 200 * kMiB, 400 * kMiB}) {
    grow(bytes);
    EXPECT_GE(kept(), std::min(test.held() / 24, 8 * kMiB) - Arena::kSpanBytes);
    EXPECT_LE(kept(), std::min(test.held() / 12, 10 * kMiB));
    EXPECT_FALSE(test.arena.Trim());
    EXPECT_STREQ(test.arena.Verify(), nullptr);
  }
  EXPECT_TRUE(BecomesResident({test.arena.At(spans.back()), kept()}));

  // Blocks that gave some of their spans back are filled up as well.
  for (size_t i = 0; i < spans.size(); i += 2) test.Free(spans[i], Arena::kSpanBytes);
  for (size_t i = 0; i < spans.size() / 2; ++i) spans[i] = spans[2 * i + 1];
  spans.resize(spans.size() / 2);
  while (test.arena.Trim()) {
  }
  grow(300 * kMiB);
  EXPECT_LE(kept(), test.held() / 12);
  EXPECT_STREQ(test.arena.Verify(), nullptr);

  const uint64_t ahead = kept();
  test.budget.set_limit(test.budget.used());
  grow(300 * kMiB + ahead);
  EXPECT_EQ(kept(), 0u);
  EXPECT_FALSE(test.Allocate(Arena::kSpanBytes));
  for (const ArenaAddress span : spans) test.Free(span, Arena::kSpanBytes);
  test.FlushAndTrim();
  EXPECT_EQ(test.budget.used(), 0u);
}

// Goal: spans that are free for a moment do not send back those kept ahead, to be asked for again.
TEST_P(ArenaTest, WhatIsKeptAheadStays) {
  TestArena test(GetParam(), 0, uint64_t{1} << 30, true);
  for (uint64_t bytes = 46 * kMiB; bytes < 240 * kMiB; bytes += kMiB) {
    while (test.allocated() < bytes) test.Allocate(Arena::kSpanBytes);
    const ArenaAddress value = test.Allocate(2 * kMiB + 100);
    for (int i = 0; i < 4; ++i) {
      const uint64_t held = test.held();
      test.Free(value, 2 * kMiB + 100);
      ASSERT_EQ(test.held(), held) << bytes;
      ASSERT_EQ(test.Allocate(2 * kMiB + 100), value) << bytes;
    }
  }
}

// Goal: a block that gave back some spans gets no huge page meanwhile, and may have one again once
// it is full: what the kernel holds is what is charged.
// Method: two blocks past the first one; free every other span of them, and fill them again.
// Which pages a block may have is in /proc/self/smaps: "nh" of VmFlags is MADV_NOHUGEPAGE.
TEST_P(ArenaTest, BlocksPartlyGivenBackArePlain) {
  const auto may_be_huge = [](const std::byte* at) {
    std::ifstream smaps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
      unsigned long first = 0;
      unsigned long last = 0;
      const auto address = reinterpret_cast<unsigned long>(at);
      if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
        inside = first <= address && address < last;
      } else if (inside && line.starts_with("VmFlags:")) {
        return line.find(" nh") == std::string::npos;
      }
    }
    return false;
  };
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
    GTEST_SKIP() << "a kernel without huge pages";
  }
  if (GetParam() &&
      SharedMemory::Create(1, SharedPages::kTransparent)->pages() == SharedPages::kPlain) {
    GTEST_SKIP() << "the kernel has only plain pages for shared memory";
  }
  constexpr size_t kBlock = 32;
  TestArena test(GetParam());
  std::vector<ArenaAddress> spans;
  for (size_t i = 0; i < 3 * kBlock - 1; ++i) {  // span 0 is never handed out
    spans.push_back(test.Allocate(Arena::kSpanBytes));
    ASSERT_EQ(spans.back().offset(), (i + 1) * Arena::kSpanBytes);
    if (i == 0) {
      EXPECT_FALSE(may_be_huge(test.arena.At(spans[0]))) << "the first block begins so";
    }
  }
  const std::byte* const second = test.arena.At(spans[kBlock]);
  const std::byte* const third = test.arena.At(spans[2 * kBlock]);
  EXPECT_TRUE(may_be_huge(test.arena.At(spans[0])));
  EXPECT_TRUE(may_be_huge(second));
  EXPECT_TRUE(may_be_huge(third));

  for (size_t i = kBlock; i < spans.size(); i += 2) test.Free(spans[i], Arena::kSpanBytes);
  test.FlushAndTrim();
  EXPECT_EQ(test.arena.Verify(), nullptr);
  EXPECT_FALSE(may_be_huge(second));
  EXPECT_FALSE(may_be_huge(third));
  for (size_t i = kBlock; i < spans.size(); i += 2) spans[i] = test.Allocate(Arena::kSpanBytes);
  EXPECT_TRUE(may_be_huge(second));
  EXPECT_TRUE(may_be_huge(third));

  for (size_t i = 2 * kBlock; i < spans.size(); i += 2) test.Free(spans[i], Arena::kSpanBytes);
  test.FlushAndTrim();
  EXPECT_FALSE(may_be_huge(third));
  for (size_t i = 2 * kBlock - 1; i < spans.size(); i += 2) test.Free(spans[i], Arena::kSpanBytes);
  test.FlushAndTrim();
  EXPECT_TRUE(may_be_huge(third)) << "wholly free";
  EXPECT_EQ(test.arena.Verify(), nullptr);
}

// Goal: the n-th allocation fails, of either limit and kind, and no other one does.
TEST_P(ArenaTest, FailAt) {
  TestArena test(GetParam());
  for (uint64_t n = 1; n <= 20; ++n) {
    test.arena.FailAt(n);
    for (uint64_t i = 1; i <= 40; ++i) {
      const size_t bytes = i % 3 == 0 ? 2 * Arena::kSpanBytes : 500;
      const ArenaAddress at = test.Allocate(bytes, i % 2 == 0 ? Limit::kObey : Limit::kExceed);
      ASSERT_EQ(static_cast<bool>(at), i != n) << i << " of " << n;
      if (at) test.Free(at, bytes);
    }
  }
  test.arena.FailAt(1);
  test.arena.FailAt(0);
  EXPECT_TRUE(test.Allocate(1));
}

// Goal: where the system gives no more address space, deletes still get spans.
// Method: forbid the process to grow. The region has 1023 spans for use; four are the reserve.
TEST_P(ArenaTest, ReserveWhenTheSystemRefuses) {
  TestArena test(GetParam(), 0, 64 * kMiB);
  ASSERT_TRUE(test.Allocate(Arena::kSpanBytes));
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + 32 * kMiB;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  uint64_t obeying = 1;
  while (test.Allocate(Arena::kSpanBytes)) ++obeying;
  uint64_t exceeding = 0;
  while (test.Allocate(Arena::kSpanBytes, Limit::kExceed)) ++exceeding;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(obeying, 1023u - 4);
  EXPECT_EQ(exceeding, 4u);
  EXPECT_TRUE(test.Allocate(Arena::kSpanBytes)) << "a second region";
  EXPECT_STREQ(test.arena.Verify(), nullptr);
}

// Goal: a region that cannot be had is tried smaller.
TEST_P(ArenaTest, TakesSmallerRegions) {
  TestArena test(GetParam(), 0, uint64_t{1} << 40);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + 512 * kMiB;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const ArenaAddress at = test.Allocate(100);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(at);
}

// Goal: what one thread allocates another may free, at any time.
// Method: threads that hand each other allocations through a shared pool, check them and free them;
// another one trims and reads statistics. ThreadSanitizer and the patterns find what is wrong.
TEST_P(ArenaTest, Threads) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr int kThreads = 3;
  constexpr int kSteps = 10000;
  MemoryBudget budget;
  Arena arena({.budget = &budget, .is_shared = GetParam(), .region_bytes = 8 * kMiB});
  Mutex mutex;
  std::vector<Allocation> pool;
  std::atomic<bool> done = false;
  std::atomic<uint64_t> broken = 0;

  const auto work = [&](int thread) {
    SeededRandom random(seed + static_cast<uint64_t>(thread));
    Arena::Cache cache;
    for (int step = 0; step < kSteps; ++step) {
      Allocation made = {
          .at = {}, .bytes = RandomSize(random), .pattern = static_cast<uint8_t>(random.Next())};
      made.at = arena.Allocate(cache, made.bytes, Limit::kObey);
      Fill(arena, made);
      Allocation other;
      {
        const MutexLock lock(mutex);
        pool.push_back(made);
        if (pool.size() < 500) continue;
        std::swap(pool[random.Below(pool.size())], pool.back());
        other = pool.back();
        pool.pop_back();
      }
      if (!IsIntact(arena, other)) ++broken;
      arena.Free(cache, other.at, other.bytes);
    }
    arena.Flush(cache);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  std::thread trimmer([&] {
    while (!done) {
      arena.Trim();
      if (const auto now = arena.Statistics(); now.allocated_bytes > now.held_bytes) ++broken;
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  trimmer.join();

  EXPECT_EQ(broken, 0u);
  EXPECT_STREQ(arena.Verify(), nullptr);
  Arena::Cache cache;
  for (const Allocation& allocation : pool) {
    EXPECT_TRUE(IsIntact(arena, allocation));
    arena.Free(cache, allocation.at, allocation.bytes);
  }
  arena.Flush(cache);
  while (arena.Trim()) {
  }
  EXPECT_STREQ(arena.Verify(), nullptr);
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: no span is handed out while its pages are on their way back to the system, to be zeroed.
// Method: threads take and free more spans than are kept, and look at every page of theirs before
// they free it.
TEST_P(ArenaTest, ThreadsWhileSpansGoBack) {
  constexpr uint8_t kThreads = 2;
  constexpr int kWaves = 4000;
  constexpr size_t kPageBytes = 4096;
  MemoryBudget budget;
  Arena arena({.budget = &budget, .is_shared = GetParam(), .region_bytes = 64 * kMiB});
  std::atomic<uint64_t> broken = 0;

  const auto work = [&](uint8_t pattern) {
    Arena::Cache cache;
    std::array<ArenaAddress, 24> spans;
    for (int wave = 0; wave < kWaves; ++wave) {
      for (ArenaAddress& at : spans) {
        at = arena.Allocate(cache, Arena::kSpanBytes, Limit::kObey);
        std::byte* const begin = arena.At(at);
        for (size_t i = 0; i < Arena::kSpanBytes; i += kPageBytes) begin[i] = std::byte{pattern};
      }
      for (const ArenaAddress at : spans) {
        const std::byte* const begin = arena.At(at);
        for (size_t i = 0; i < Arena::kSpanBytes; i += kPageBytes) {
          if (begin[i] != std::byte{pattern}) ++broken;
        }
        arena.Free(cache, at, Arena::kSpanBytes);
      }
    }
    arena.Flush(cache);
  };
  std::vector<std::thread> threads;
  for (uint8_t i = 1; i <= kThreads; ++i) threads.emplace_back(work, i);
  std::atomic<bool> done = false;
  std::thread trimmer([&] {
    while (!done) arena.Trim();
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  trimmer.join();
  EXPECT_EQ(broken, 0u);
  EXPECT_STREQ(arena.Verify(), nullptr);
  while (arena.Trim()) {
  }
  EXPECT_EQ(budget.used(), 0u);
}

// Goal: another process sees in the regions that a shared arena tells of what is in its slots, at
// the offsets of their addresses; a private arena tells of none.
TEST_P(ArenaTest, SharedRegionsAreWhereItsAddressesAre) {
  TestArena test(GetParam(), 0, 64 * kMiB);
  EXPECT_TRUE(test.arena.SharedRegions().empty());
  std::vector<Allocation> live;
  for (int i = 0; i < 3; ++i) {
    live.push_back({.at = test.Allocate(63 * kMiB), .bytes = 64, .pattern = uint8_t(i + 1)});
    Fill(test.arena, live.back());
  }
  const auto regions = test.arena.SharedRegions();
  ASSERT_EQ(regions.size(), GetParam() ? live.back().at.region() + size_t{1} : 0);
  for (const Allocation& allocation : live) {
    if (regions.empty()) break;
    const FileDescriptor file(dup(regions[allocation.at.region()]->fd()));
    uint8_t first = 0;
    ASSERT_EQ(pread(file.get(), &first, 1, static_cast<off_t>(allocation.at.offset())), 1);
    EXPECT_EQ(first, allocation.pattern);
  }
}

// Goal: freed memory is poisoned, memory handed out is not.
TEST_P(ArenaTest, PoisonsWhatIsFree) {
  if (!kPoisons) GTEST_SKIP() << "only with AddressSanitizer";
  TestArena test(GetParam());
  for (size_t bytes : {size_t{100}, size_t{8192}, 2 * Arena::kSpanBytes}) {
    const ArenaAddress at = test.Allocate(bytes);
    const std::byte* begin = test.arena.At(at);
    EXPECT_FALSE(IsPoisoned(begin));
    EXPECT_FALSE(IsPoisoned(begin + Arena::RoundUp(bytes) - 1));
    if (bytes <= Arena::kSlotBytesMax) {
      EXPECT_TRUE(IsPoisoned(begin + Arena::RoundUp(bytes)));
    }
    test.Free(at, bytes);
    EXPECT_TRUE(IsPoisoned(begin));
    EXPECT_TRUE(IsPoisoned(begin + Arena::RoundUp(bytes) - 1));
  }
}

// Goal: errors of the arena's user stop the process.
TEST_P(ArenaDeathTest, DoubleFreeAndWrongSize) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TestArena test(GetParam());
  const ArenaAddress slot = test.Allocate(100);
  const ArenaAddress run = test.Allocate(kMiB);
  EXPECT_DEATH(
      {
        test.Free(slot, 100);
        test.Free(slot, 100);
        test.arena.Flush(test.cache);
      },
      "");
  EXPECT_DEATH(
      {
        test.Free(slot, 200);
        test.arena.Flush(test.cache);
      },
      "");
  EXPECT_DEATH(test.Free(run, kMiB / 2), "");
  EXPECT_DEATH(
      {
        test.Free(run, kMiB);
        test.Free(run, kMiB);
      },
      "");
}

INSTANTIATE_TEST_SUITE_P(Memory, ArenaTest, testing::Bool(), NameOfMemory);
INSTANTIATE_TEST_SUITE_P(Memory, ArenaDeathTest, testing::Bool(), NameOfMemory);

}  // namespace
}  // namespace skep

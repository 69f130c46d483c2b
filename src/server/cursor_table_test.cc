#include "server/cursor_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <ranges>
#include <thread>
#include <utility>
#include <vector>

namespace skep {
namespace {

constexpr uint64_t kTtlMs = 100;

constexpr uint64_t kMe = 1;

CursorLimits Limits(size_t entries_max, size_t bytes_max) {
  return {.entries_max = entries_max, .bytes_max = bytes_max};
}

// The contracts of the header, implemented on a plain list, the entry used least recently first.
class Model {
 public:
  explicit Model(const CursorLimits& limits) : limits_(limits) {}

  void Put(uint64_t number, int state, size_t bytes, uint64_t now_ms, uint64_t owner,
           uint64_t parent) {
    Expire(now_ms);
    if (Has(parent)) {
      const uint64_t scan = Get(parent).scan;
      std::erase_if(entries_, [&](const Entry& e) { return e.scan == scan && e.number != parent; });
      Touch(parent, now_ms, owner);
    }
    while (CountOf(owner) >= limits_.owner_entries_max) DropOldestOf(owner);
    while (!entries_.empty() &&
           (entries_.size() >= limits_.entries_max || this->bytes() + bytes > limits_.bytes_max)) {
      DropOldestOf(Greediest(owner, bytes));
    }
    const uint64_t scan = Has(parent) ? Get(parent).scan : number;
    entries_.push_back({number, scan, state, bytes, now_ms, owner});
  }

  std::optional<int> Find(uint64_t number, uint64_t now_ms, uint64_t owner) {
    Expire(now_ms);
    if (!Has(number)) return std::nullopt;
    Touch(number, now_ms, owner);
    while (CountOf(owner) > limits_.owner_entries_max) DropOldestOf(owner);
    return entries_.back().state;
  }

  void EraseScan(uint64_t number) {
    if (!Has(number)) return;
    const uint64_t scan = Get(number).scan;
    std::erase_if(entries_, [&](const Entry& e) { return e.scan == scan; });
  }

  void Leave(uint64_t owner) {
    for (Entry& entry : entries_) {
      if (entry.owner == owner) entry.owner = 0;
    }
  }

  void Expire(uint64_t now_ms) {
    std::erase_if(entries_, [&](const Entry& e) { return now_ms - e.used_ms >= kTtlMs; });
  }

  size_t size() const { return entries_.size(); }
  size_t bytes() const {
    size_t sum = 0;
    for (const Entry& entry : entries_) sum += entry.bytes;
    return sum;
  }

  size_t CountOf(uint64_t owner) const {
    return static_cast<size_t>(std::ranges::count(entries_, owner, &Entry::owner));
  }

 private:
  struct Entry {
    uint64_t number;
    uint64_t scan;  // the number of the scan's oldest state
    int state;
    size_t bytes;
    uint64_t used_ms;
    uint64_t owner;
  };

  bool Has(uint64_t number) const {
    return std::ranges::find(entries_, number, &Entry::number) != entries_.end();
  }
  Entry& Get(uint64_t number) { return *std::ranges::find(entries_, number, &Entry::number); }
  void Touch(uint64_t number, uint64_t now_ms, uint64_t owner) {
    const auto entry = std::ranges::find(entries_, number, &Entry::number);
    entry->used_ms = now_ms;
    entry->owner = owner;
    std::rotate(entry, entry + 1, entries_.end());
  }
  // The owner with the most bytes, `more` bytes of the asking one included. Of several the asking
  // one, if it has an entry, else the one with the entry that was used the longest ago.
  uint64_t Greediest(uint64_t asks, size_t more) const {
    std::map<uint64_t, size_t> bytes;
    for (const Entry& entry : entries_) bytes[entry.owner] += entry.bytes;
    if (bytes.contains(asks)) bytes[asks] += more;
    const size_t most = std::ranges::max(std::views::values(bytes));
    if (bytes.contains(asks) && bytes[asks] == most) return asks;
    return std::ranges::find_if(entries_, [&](const Entry& e) { return bytes[e.owner] == most; })
        ->owner;
  }
  void DropOldestOf(uint64_t owner) {
    entries_.erase(std::ranges::find(entries_, owner, &Entry::owner));
  }

  const CursorLimits limits_;
  std::vector<Entry> entries_;
};

// Goal: the table agrees with its contracts after any sequence of calls.
// Method: a small table, so that count, bytes, a client's count and time all evict; a few clients
// that come and go; parents and look-ups are picked among the latest numbers, dropped or not. A
// failure prints its seed.
TEST(CursorTable, AgreesWithModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  SeededRandom random(seed);
  constexpr CursorLimits kLimits{.entries_max = 8, .bytes_max = 100, .owner_entries_max = 4};
  CursorTable<int> table(kLimits, kTtlMs, random);
  Model model(kLimits);
  std::vector<uint64_t> numbers = {0};
  uint64_t now_ms = 1000;
  int found = 0;

  for (int step = 0; step < 50'000; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    now_ms += rng() % 12;
    const uint64_t some =
        numbers[numbers.size() - 1 - rng() % std::min<size_t>(numbers.size(), 12)];
    const uint64_t owner = 1 + rng() % 3;
    switch (rng() % 9) {
      case 0:
      case 1:
      case 2: {
        const size_t bytes = rng() % (rng() % 8 == 0 ? 120 : 20);
        const uint64_t parent = rng() % 3 == 0 ? 0 : some;
        numbers.push_back(table.Put(step, bytes, now_ms, owner, parent));
        ASSERT_GT(numbers.back(), 0u);
        ASSERT_LE(numbers.back(), uint64_t{INT64_MAX});
        model.Put(numbers.back(), step, bytes, now_ms, owner, parent);
        break;
      }
      case 3:
        table.EraseScan(some);
        model.EraseScan(some);
        break;
      case 4:
        table.Expire(now_ms, SIZE_MAX);
        model.Expire(now_ms);
        break;
      case 5:
        table.Leave(owner);
        model.Leave(owner);
        break;
      default: {
        const std::optional<int> state = model.Find(some, now_ms, owner);
        ASSERT_EQ(table.Find(some, now_ms, owner), state);
        found += state.has_value();
      }
    }
    ASSERT_EQ(table.size(), model.size());
    ASSERT_EQ(table.bytes(), model.bytes());
    for (uint64_t one = 1; one <= 3; ++one) {
      ASSERT_LE(model.CountOf(one), kLimits.owner_entries_max);  // C5
    }
  }
  EXPECT_GT(found, 1000);
}

// Goal: a client that begins scans for ever ends no scans but its own.
// Method: some clients have a scan each, of the same size; another one, which came before or after
// them, begins a thousand times as many as there is room for. So does one that comes as a new
// client each time, and leaves.
TEST(CursorTable, GreedCostsOnlyTheGreedy) {
  constexpr uint64_t kOthers = 20;
  constexpr uint64_t kFirstOther = 1'000'000;
  for (const uint64_t first_greedy : {uint64_t{1}, kFirstOther + kOthers}) {
    for (const bool leaves : {false, true}) {
      SeededRandom random(1);
      CursorTable<uint64_t> table(Limits(64, 10'000), kTtlMs, random);
      std::vector<uint64_t> scans;
      for (uint64_t i = 0; i < kOthers; ++i) {
        scans.push_back(table.Put(i, 10, 0, kFirstOther + i));
      }
      for (uint64_t i = 0; i < 64'000; ++i) {
        const uint64_t greedy = first_greedy + (leaves ? i : 0);
        table.Put(0, 10, 0, greedy);
        if (leaves) table.Leave(greedy);
      }
      EXPECT_EQ(table.size(), 64u);
      for (uint64_t i = 0; i < kOthers; ++i) {
        EXPECT_EQ(table.Find(scans[i], 0, kFirstOther + i), i);
      }
    }
  }
}

// Goal: where each of very many clients has one scan, a client that begins another loses its own,
// and a client that has just come keeps its only one.
// Method: as many clients as there is room for, and one more, which came last; each of the others
// begins again and again.
TEST(CursorTable, ManyWithOneEachLeaveANewcomerItsOnlyOne) {
  constexpr uint64_t kRoom = 64;
  SeededRandom random(1);
  CursorTable<uint64_t> table(Limits(kRoom, 10'000), kTtlMs, random);
  for (uint64_t owner = 1; owner <= kRoom; ++owner) table.Put(0, 10, 0, owner);
  const uint64_t scan = table.Put(7, 10, 0, kRoom + 1);
  for (uint64_t round = 0; round < 100; ++round) {
    // The first client has lost its scan to the newcomer.
    for (uint64_t owner = 2; owner <= kRoom; ++owner) table.Put(0, 10, 0, owner);
  }
  EXPECT_EQ(table.Find(scan, 0, kRoom + 1), 7u);
}

// Goal: a client has its limit of entries, however it comes by them.
// Method: entries of many clients that one of them carries on.
TEST(CursorTable, WhoCarriesOnTheScansOfOthersHasNoMoreThanItsLimit) {
  SeededRandom random(1);
  CursorTable<int> table({.entries_max = 100, .bytes_max = 1000, .owner_entries_max = 4}, kTtlMs,
                         random);
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 20; ++i) {
    numbers.push_back(table.Put(i, 1, 0, 2 + static_cast<uint64_t>(i)));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(table.Find(numbers[static_cast<size_t>(i)], 0, kMe), i);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.Find(numbers[0], 0, kMe), std::nullopt);
  EXPECT_EQ(table.Find(numbers[19], 0, kMe), 19);
}

// Goal: a scan whose client has gone, as those of pools do, can be carried on by another client,
// and then belongs to that one.
TEST(CursorTable, AScanMovesToWhoCarriesItOn) {
  SeededRandom random(1);
  CursorTable<int> table(Limits(3, 1000), kTtlMs, random);
  const uint64_t number = table.Put(7, 10, 0, 1);
  table.Leave(1);
  EXPECT_EQ(table.Find(number, 0, 2), 7);
  table.Leave(1);  // a client that has nothing leaves
  for (int i = 0; i < 10; ++i) table.Put(i, 10, 0, 3);
  EXPECT_EQ(table.Find(number, 0, 2), 7);
  for (int i = 0; i < 2; ++i) table.Put(i, 10, 0, 2);
  EXPECT_EQ(table.size(), 3u);
}

// Goal: a client that lost a reply may ask again, and a long scan keeps two states.
// Method: one scan, each step asked for twice, the answer to the first never used.
TEST(CursorTable, ARetriedScanKeepsTwoStates) {
  SeededRandom random(1);
  CursorTable<int> table(Limits(100, 1000), kTtlMs, random);
  uint64_t number = table.Put(0, 1, 0, kMe);
  for (int step = 1; step < 50; ++step) {
    ASSERT_EQ(table.Find(number, 0, kMe), step - 1);
    const uint64_t lost = table.Put(step, 1, 0, kMe, number);
    ASSERT_EQ(table.Find(number, 0, kMe), step - 1);
    const uint64_t next = table.Put(step, 1, 0, kMe, number);
    ASSERT_EQ(table.Find(lost, 0, kMe), std::nullopt);
    ASSERT_EQ(table.size(), 2u);
    number = next;
  }
  table.EraseScan(number);
  EXPECT_EQ(table.size(), 0u);
}

// Goal: threads that read their clocks before they got the lock drop nothing too early.
TEST(CursorTable, ATimeFromThePastChangesNothing) {
  SeededRandom random(1);
  CursorTable<int> table(Limits(100, 1000), kTtlMs, random);
  const uint64_t number = table.Put(7, 1, 500, kMe);
  EXPECT_EQ(table.Find(number, 450, kMe), 7);
  table.Put(8, 1, 400, kMe);
  EXPECT_EQ(table.Expire(300, 100), 0u);
  EXPECT_EQ(table.Find(number, 500 + kTtlMs - 1, kMe), 7);
}

// Goal: clean-up drops no more entries than it was asked to.
TEST(CursorTable, ExpireIsBounded) {
  SeededRandom random(1);
  CursorTable<int> table(Limits(100, 1000), kTtlMs, random);
  for (int i = 0; i < 10; ++i) table.Put(i, 1, 5, kMe);
  EXPECT_EQ(table.Expire(kTtlMs + 4, 100), 0u);
  EXPECT_EQ(table.Expire(kTtlMs + 5, 4), 4u);
  EXPECT_EQ(table.Expire(0, 4), 4u);
  EXPECT_EQ(table.Expire(kTtlMs + 5, 4), 2u);
  EXPECT_EQ(table.bytes(), 0u);
}

// Goal: a state is destroyed outside the lock, so its destruction may take long, or call the table.
// Method: states whose destruction asks for the table's size; under the lock that would never end.
TEST(CursorTable, StatesAreDestroyedOutsideTheLock) {
  SeededRandom random(1);
  CursorTable<std::shared_ptr<void>> table(Limits(2, 1000), kTtlMs, random);
  int destroyed = 0;
  const auto state = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) { destroyed += table.size() <= 2 ? 1 : 0; });
  };
  uint64_t number = 0;
  for (int i = 0; i < 4; ++i) number = table.Put(state(), 1, 0, kMe, number);  // chain, then count
  EXPECT_EQ(destroyed, 2);
  table.EraseScan(number);
  EXPECT_EQ(destroyed, 4);
  table.Put(state(), 1, 0, kMe);
  EXPECT_EQ(table.Find(number, kTtlMs, kMe), std::nullopt);
  EXPECT_EQ(destroyed, 5);
  table.Put(state(), 1, kTtlMs, kMe);
  table.Expire(2 * kTtlMs, 1);
  EXPECT_EQ(destroyed, 6);
}

// Goal: threads may share a table; scans that fit are not disturbed by each other.
// Method: each thread carries its own scans on and checks every state it gets back; for TSan.
TEST(CursorTable, ThreadsShareIt) {
  SeededRandom random(1);
  CursorTable<uint64_t> table(Limits(64, 10'000), kTtlMs, random);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t scan = 0; scan < 50; ++scan) {
        uint64_t number = 0;
        for (uint64_t step = 0; step < 20; ++step) {
          const uint64_t state = thread << 32 | scan << 16 | step;
          number = table.Put(state, 10, 0, thread + 1, number);
          if (table.Find(number, 0, thread + 1) != state) ++wrong;
          table.Expire(1, 1);
        }
        table.EraseScan(number);
        if (scan % 8 == 0) table.Leave(thread + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace skep

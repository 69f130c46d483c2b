#include "server/cursor_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace skep {
namespace {

constexpr uint64_t kTtlMs = 100;

// The contracts of the header over a plain list, the entry used least recently first.
class Model {
 public:
  Model(size_t entries_max, size_t bytes_max) : entries_max_(entries_max), bytes_max_(bytes_max) {}

  void Put(uint64_t number, int state, size_t bytes, uint64_t now_ms, uint64_t parent) {
    Expire(now_ms);
    const bool has_parent = Has(parent);
    if (has_parent) {
      const uint64_t scan = Get(parent).scan;
      std::erase_if(entries_, [&](const Entry& e) { return e.scan == scan && e.number != parent; });
      Touch(parent, now_ms);
    }
    while (!entries_.empty() &&
           (entries_.size() >= entries_max_ || this->bytes() + bytes > bytes_max_)) {
      entries_.erase(entries_.begin());
    }
    const uint64_t scan = Has(parent) ? Get(parent).scan : number;
    entries_.push_back({number, scan, state, bytes, now_ms});
  }

  std::optional<int> Find(uint64_t number, uint64_t now_ms) {
    Expire(now_ms);
    if (!Has(number)) return std::nullopt;
    Touch(number, now_ms);
    return entries_.back().state;
  }

  void EraseScan(uint64_t number) {
    if (!Has(number)) return;
    const uint64_t scan = Get(number).scan;
    std::erase_if(entries_, [&](const Entry& e) { return e.scan == scan; });
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

 private:
  struct Entry {
    uint64_t number;
    uint64_t scan;  // the number of the scan's oldest state
    int state;
    size_t bytes;
    uint64_t used_ms;
  };

  bool Has(uint64_t number) const {
    return std::ranges::find(entries_, number, &Entry::number) != entries_.end();
  }
  Entry& Get(uint64_t number) { return *std::ranges::find(entries_, number, &Entry::number); }
  void Touch(uint64_t number, uint64_t now_ms) {
    const auto entry = std::ranges::find(entries_, number, &Entry::number);
    entry->used_ms = now_ms;
    std::rotate(entry, entry + 1, entries_.end());
  }

  size_t entries_max_;
  size_t bytes_max_;
  std::vector<Entry> entries_;
};

// Goal: the table agrees with its contracts after any sequence of calls.
// Method: a small table, so that count, bytes and time all evict; parents and look-ups are picked
// among the latest numbers, dropped or not. A failure prints its seed.
TEST(CursorTable, AgreesWithModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  SeededRandom random(seed);
  CursorTable<int> table(8, 100, kTtlMs, random);
  Model model(8, 100);
  std::vector<uint64_t> numbers = {0};
  uint64_t now_ms = 1000;
  int found = 0;

  for (int step = 0; step < 50'000; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    now_ms += rng() % 12;
    const uint64_t some =
        numbers[numbers.size() - 1 - rng() % std::min<size_t>(numbers.size(), 12)];
    switch (rng() % 8) {
      case 0:
      case 1:
      case 2: {
        const size_t bytes = rng() % (rng() % 8 == 0 ? 120 : 20);
        const uint64_t parent = rng() % 3 == 0 ? 0 : some;
        numbers.push_back(table.Put(step, bytes, now_ms, parent));
        ASSERT_GT(numbers.back(), 0u);
        ASSERT_LE(numbers.back(), uint64_t{INT64_MAX});
        model.Put(numbers.back(), step, bytes, now_ms, parent);
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
      default: {
        const std::optional<int> state = model.Find(some, now_ms);
        ASSERT_EQ(table.Find(some, now_ms), state);
        found += state.has_value();
      }
    }
    ASSERT_EQ(table.size(), model.size());
    ASSERT_EQ(table.bytes(), model.bytes());
  }
  EXPECT_GT(found, 1000);
}

// Goal: a client that lost a reply may ask again, and a long scan keeps two states.
// Method: one scan, each step asked for twice, the answer to the first never used.
TEST(CursorTable, ARetriedScanKeepsTwoStates) {
  SeededRandom random(1);
  CursorTable<int> table(100, 1000, kTtlMs, random);
  uint64_t number = table.Put(0, 1, 0);
  for (int step = 1; step < 50; ++step) {
    ASSERT_EQ(table.Find(number, 0), step - 1);
    const uint64_t lost = table.Put(step, 1, 0, number);
    ASSERT_EQ(table.Find(number, 0), step - 1);
    const uint64_t next = table.Put(step, 1, 0, number);
    ASSERT_EQ(table.Find(lost, 0), std::nullopt);
    ASSERT_EQ(table.size(), 2u);
    number = next;
  }
  table.EraseScan(number);
  EXPECT_EQ(table.size(), 0u);
}

// Goal: threads that read their clocks before they got the lock drop nothing too early.
TEST(CursorTable, ATimeFromThePastChangesNothing) {
  SeededRandom random(1);
  CursorTable<int> table(100, 1000, kTtlMs, random);
  const uint64_t number = table.Put(7, 1, 500);
  EXPECT_EQ(table.Find(number, 450), 7);
  table.Put(8, 1, 400);
  EXPECT_EQ(table.Expire(300, 100), 0u);
  EXPECT_EQ(table.Find(number, 500 + kTtlMs - 1), 7);
}

// Goal: clean-up is bounded by what it is asked for.
TEST(CursorTable, ExpireIsBounded) {
  SeededRandom random(1);
  CursorTable<int> table(100, 1000, kTtlMs, random);
  for (int i = 0; i < 10; ++i) table.Put(i, 1, 5);
  EXPECT_EQ(table.Expire(kTtlMs + 4, 100), 0u);
  EXPECT_EQ(table.Expire(kTtlMs + 5, 4), 4u);
  EXPECT_EQ(table.Expire(0, 4), 4u);
  EXPECT_EQ(table.Expire(kTtlMs + 5, 4), 2u);
  EXPECT_EQ(table.bytes(), 0u);
}

// Goal: a state may take its time to go, or call the table: it is destroyed outside the lock.
// Method: states whose destruction asks for the table's size; under the lock that would never end.
TEST(CursorTable, StatesAreDestroyedOutsideTheLock) {
  SeededRandom random(1);
  CursorTable<std::shared_ptr<void>> table(2, 1000, kTtlMs, random);
  int destroyed = 0;
  const auto state = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) { destroyed += table.size() <= 2 ? 1 : 0; });
  };
  uint64_t number = 0;
  for (int i = 0; i < 4; ++i) number = table.Put(state(), 1, 0, number);  // chain, then count
  EXPECT_EQ(destroyed, 2);
  table.EraseScan(number);
  EXPECT_EQ(destroyed, 4);
  table.Put(state(), 1, 0);
  EXPECT_EQ(table.Find(number, kTtlMs), std::nullopt);
  EXPECT_EQ(destroyed, 5);
  table.Put(state(), 1, kTtlMs);
  table.Expire(2 * kTtlMs, 1);
  EXPECT_EQ(destroyed, 6);
}

// Goal: threads may share a table; scans that fit are not disturbed by each other.
// Method: each thread carries its own scans on and checks every state it gets back; for TSan.
TEST(CursorTable, ThreadsShareIt) {
  SeededRandom random(1);
  CursorTable<uint64_t> table(64, 10'000, kTtlMs, random);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t scan = 0; scan < 50; ++scan) {
        uint64_t number = 0;
        for (uint64_t step = 0; step < 20; ++step) {
          const uint64_t state = thread << 32 | scan << 16 | step;
          number = table.Put(state, 10, 0, number);
          if (table.Find(number, 0) != state) ++wrong;
          table.Expire(1, 1);
        }
        table.EraseScan(number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace skep

#include "skep/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "skep/store.h"
#include "store/batch_wait.h"

namespace skep {
namespace {

constexpr uint64_t kUs = 1000;

TEST(BatchWait, WaitsForWhatWillMakeItLarge) {
  BatchWait wait(100, 50 * kUs);
  EXPECT_EQ(wait.WaitNs(1, 0), 0u);  // nothing is known
  uint64_t now_ns = 0;
  // An operation in 200 ns: 100 of them take 20 us.
  for (int i = 0; i < 60; ++i) wait.Left(10, now_ns += 10 * 200);
  EXPECT_NEAR(wait.gap_ns(), 200, 1);
  EXPECT_NEAR(static_cast<double>(wait.WaitNs(50, 0)), 50 * 200, 100);
  EXPECT_EQ(wait.WaitNs(100, 0), 0u);  // large enough
  EXPECT_EQ(wait.WaitNs(8192, 0), 0u);
  // A batch does not wait longer than the longest wait since its first operation.
  EXPECT_NEAR(static_cast<double>(wait.WaitNs(50, 39 * kUs)), 50 * 200, 100);
  EXPECT_EQ(wait.WaitNs(50, 41 * kUs), 0u);
  EXPECT_EQ(wait.WaitNs(50, 60 * kUs), 0u);
}

TEST(BatchWait, DoesNotWaitForFew) {
  BatchWait wait(100, 50 * kUs);
  uint64_t now_ns = 0;
  // An operation in 2 us: 25 of them come in the longest wait.
  for (int i = 0; i < 40; ++i) wait.Left(5, now_ns += 10 * kUs);
  EXPECT_EQ(wait.WaitNs(1, 0), 0u);
  EXPECT_GT(wait.WaitNs(90, 0), 0u);
}

TEST(BatchWait, FindsThePaceAgainAfterASilence) {
  BatchWait wait(100, 50 * kUs);
  uint64_t now_ns = 0;
  for (int i = 0; i < 40; ++i) wait.Left(50, now_ns += 50 * 100);
  EXPECT_GT(wait.WaitNs(1, 0), 0u);
  now_ns += 3'600'000'000'000;
  wait.Left(1, now_ns);
  EXPECT_EQ(wait.WaitNs(1, 0), 0u);
  int batches = 0;
  for (; wait.WaitNs(1, 0) == 0; ++batches) {
    ASSERT_LT(batches, 20);
    wait.Left(50, now_ns += 50 * 100);
  }
}

// Goal: threads that wait for an answer before their next operation are not kept waiting for
// operations that do not come: ever fewer batches wait.
TEST(BatchWait, GivesUpWhereNobodyComes) {
  BatchWait wait(256, 50 * kUs);
  uint64_t now_ns = 0;
  int waits = 0;
  constexpr int kBatches = 1000;
  // 64 threads, each with one operation at a time, which takes 15 us.
  for (int i = 0; i < kBatches; ++i) {
    const uint64_t ns = wait.WaitNs(64, 0);
    waits += ns > 0 ? 1 : 0;
    wait.Left(64, now_ns += 15 * kUs + ns);
  }
  EXPECT_GT(waits, 0);
  EXPECT_LT(waits, kBatches / 20);
  // Others that do come are waited for again.
  waits = 0;
  for (int i = 0; i < kBatches; ++i) {
    const uint64_t ns = wait.WaitNs(64, 0);
    waits += ns > 0 ? 1 : 0;
    wait.Left(ns > 0 ? 256 : 64, now_ns += 15 * kUs + ns);
  }
  EXPECT_GT(waits, kBatches / 2);
}

TEST(BatchWait, OfNoTimeNeverWaits) {
  BatchWait wait(100, 0);
  uint64_t now_ns = 0;
  for (int i = 0; i < 40; ++i) wait.Left(50, now_ns += 1);
  EXPECT_EQ(wait.WaitNs(1, 0), 0u);
}

class BatcherTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string Key(uint64_t number) {
    std::string key(8, '\0');
    for (size_t i = 0; i < 8; ++i) key[7 - i] = static_cast<char>(number >> 8 * i);
    return key;
  }

  std::unique_ptr<Store> store_ = *Store::Open({.engine = GetParam()});
};

// Goal: each operation does what the store's call does, and its outcome comes once. Bytes that are
// gone when the call has returned do no harm.
TEST_P(BatcherTest, DoesWhatTheStoreDoes) {
  auto batcher = *Batcher::Make(*store_, {});
  std::vector<std::string> seen;
  const auto note = [&](const Batch& batch, uint32_t slot) {
    const Outcome& outcome = batch.outcome(slot);
    seen.push_back(std::to_string(static_cast<int>(outcome.verdict)) + std::string(outcome.value));
  };
  const auto verdict = [](Verdict v) { return std::to_string(static_cast<int>(v)); };
  batcher->Update(std::string(Key(1)), std::string("12345678"), note);
  batcher->Put(std::string(Key(1)), std::string("12345678"), note);
  batcher->Get(std::string(Key(1)), note);
  batcher->Insert(std::string(Key(1)), std::string("abcdefgh"), note);
  batcher->Apply(std::string(Key(1)), functions::kAddDecimal, "1", note);
  batcher->Get(std::string(Key(1)), note);
  batcher->Delete(std::string(Key(1)), note);
  batcher->Get(std::string(Key(1)), note);
  batcher->Drain();
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(seen[0], verdict(Verdict::kAbsent));
  EXPECT_EQ(seen[1], verdict(Verdict::kDone));
  EXPECT_EQ(seen[2], verdict(Verdict::kDone) + "12345678");
  EXPECT_EQ(seen[3], verdict(Verdict::kExists));
  EXPECT_EQ(seen[5], verdict(Verdict::kDone) + "12345679");
  EXPECT_EQ(seen[6], verdict(Verdict::kDone));
  EXPECT_EQ(seen[7], verdict(Verdict::kAbsent));
  EXPECT_EQ(batcher->statistics().operations, 8u);

  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(store_->Put(Key(i), std::to_string(10'000'000 + i)).ok());
  }
  uint64_t items = 0;
  batcher->Scan(Range::From(std::string(Key(4))), {.limit = 3},
                [&](const Batch& batch, uint32_t slot) {
                  for (const Item& item : batch.items(slot)) {
                    EXPECT_EQ(item.key, Key(4 + items++));
                  }
                });
  batcher->Drain();
  EXPECT_EQ(items, 3u);
}

// Goal: threads that submit at once lose nothing, and what one of them does to one key happens in
// its order, through batches that are full, that wait, and that do not. Method: each thread writes
// a number and reads it, again and again.
TEST_P(BatcherTest, KeepsTheOrderOfAThread) {
  for (const BatcherOptions options : {BatcherOptions{.operations_max = 4, .operations_wanted = 2},
                                       BatcherOptions{.operations_wanted = 64, .wait_us_max = 200},
                                       BatcherOptions{.wait_us_max = 0}}) {
    auto batcher = *Batcher::Make(*store_, options);
    constexpr int kThreads = 3;
    constexpr uint64_t kRounds = 1000;
    constexpr uint64_t kKeys = 5;
    std::atomic<uint64_t> right{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (uint64_t round = 0; round < kRounds; ++round) {
            const std::string key = Key(static_cast<uint64_t>(t) * 100 + round % kKeys);
            const std::string value = Key(round);
            batcher->Put(key, value, [](const Batch&, uint32_t) {});
            batcher->Get(key, [&right, value](const Batch& batch, uint32_t slot) {
              right += batch.outcome(slot).value == value ? 1 : 0;
            });
          }
        });
      }
    }
    batcher->Drain();
    EXPECT_EQ(right, kThreads * kRounds);
    EXPECT_EQ(batcher->statistics().operations, 2 * kThreads * kRounds);
    EXPECT_LE(batcher->statistics().batches, 2 * kThreads * kRounds);
  }
}

// Goal: functions of elements, of threads that count with one operation at a time.
TEST_P(BatcherTest, Counts) {
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kCounts = 500;
  auto batcher = *Batcher::Make(*store_, {});
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
  std::atomic<uint64_t> sum{0};
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const std::string one = {1, 0, 0, 0, 0, 0, 0, 0};
        for (uint64_t i = 0; i < kCounts; ++i) {
          batcher->UpdateElements(
              Key(1), add, one, {.returns = UpdateOptions::Returns::kOld, .create = 1},
              [&](const Batch& batch, uint32_t slot) {
                uint64_t before = 0;
                std::memcpy(&before, batch.outcome(slot).value.data(), sizeof(before));
                sum += before;
              });
        }
      });
    }
  }
  batcher->Drain();
  // Each number was there once.
  EXPECT_EQ(sum, kThreads * kCounts * (kThreads * kCounts - 1) / 2);
}

// Goal: a `done` may go on with operations, also where the batch is full; and what was submitted is
// executed when the batcher is gone.
TEST_P(BatcherTest, GoesOnFromDone) {
  std::atomic<uint64_t> chains{0};
  {
    auto batcher = *Batcher::Make(*store_, {.operations_max = 2, .operations_wanted = 1});
    struct Chain {
      Batcher& batcher;
      std::atomic<uint64_t>& chains;
      void Step(uint64_t left) {
        batcher.Put(Key(left), "12345678", [this, left](const Batch& batch, uint32_t slot) {
          EXPECT_EQ(batch.outcome(slot).verdict, Verdict::kDone);
          if (left == 0) {
            ++chains;
          } else {
            Step(left - 1);
          }
        });
      }
    } chain{*batcher, chains};
    for (int i = 0; i < 20; ++i) chain.Step(10);
    while (chains < 20) std::this_thread::yield();
    batcher->Put(Key(77), "87654321", [](const Batch&, uint32_t) {});
  }
  EXPECT_EQ(*store_->Get(Key(77)), "87654321");
}

// Goal: what is submitted while a batch is executed becomes one batch. Method: a `done`, which
// never waits for room, submits a hundred operations.
TEST_P(BatcherTest, GathersOneBatch) {
  auto batcher = *Batcher::Make(*store_, {});
  batcher->Put(Key(1), "12345678", [&](const Batch&, uint32_t) {
    for (uint64_t i = 0; i < 100; ++i) {
      batcher->Put(Key(i), "12345678",
                   [](const Batch& batch, uint32_t) { EXPECT_EQ(batch.size(), 100u); });
    }
  });
  batcher->Drain();
  while (batcher->statistics().operations < 101) std::this_thread::yield();
  EXPECT_EQ(batcher->statistics().batches, 2u);
}

// Goal: while a batch is executed the next one is gathered: the pipeline has two. Method: a `done`
// that does not return until operations of others were submitted.
TEST_P(BatcherTest, GathersWhileItExecutes) {
  auto batcher = *Batcher::Make(*store_, {});
  std::latch executing(1);
  std::latch submitted(1);
  batcher->Put(Key(1), "12345678", [&](const Batch&, uint32_t) {
    executing.count_down();
    submitted.wait();
  });
  executing.wait();
  for (uint64_t i = 0; i < 100; ++i)
    batcher->Put(Key(i), "12345678", [](const Batch&, uint32_t) {});
  submitted.count_down();
  batcher->Drain();
  EXPECT_EQ(batcher->statistics().operations, 101u);
  EXPECT_EQ(batcher->statistics().batches, 2u);
}

// Goal: batchers whose operations go on in each other do not wait for each other, however full they
// are.
TEST_P(BatcherTest, GoesOnInAnother) {
  const BatcherOptions options{.operations_max = 2, .operations_wanted = 1};
  std::atomic<uint64_t> done{0};
  constexpr uint64_t kRounds = 500;
  {
    auto one = *Batcher::Make(*store_, options);
    auto other = *Batcher::Make(*store_, options);
    const auto count = [&](const Batch&, uint32_t) { ++done; };
    const auto go_on = [&](Batcher& from, Batcher& in) {
      for (uint64_t i = 0; i < kRounds; ++i) {
        from.Get(Key(i), [&](const Batch&, uint32_t) {
          in.Get(Key(1), count);
          in.Get(Key(2), count);
        });
      }
    };
    std::jthread thread([&] { go_on(*one, *other); });
    go_on(*other, *one);
    thread.join();
    while (done < 4 * kRounds) std::this_thread::yield();
  }
  EXPECT_EQ(done, 4 * kRounds);
}

TEST_P(BatcherTest, NobodyNeedsToKnow) {
  auto batcher = *Batcher::Make(*store_, {});
  batcher->Put(Key(1), "12345678", {});
  batcher->Drain();
  EXPECT_EQ(*store_->Get(Key(1)), "12345678");
}

// Goal: a batch is bounded in bytes too, so that what others submit makes none too large.
TEST(Batcher, BatchesHaveFewBytes) {
  const auto store = *Store::Open({});
  auto batcher = *Batcher::Make(*store, {});
  constexpr uint64_t kValues = 50;
  std::atomic<uint64_t> stored{0};
  // A large one does not join what has too much already; one above all limits goes alone.
  for (const size_t kib : {64u, 300u, 900u}) {
    const size_t most = std::max<size_t>(512 / kib, 1);
    const std::string value(kib * 1024, 'v');
    for (uint64_t i = 0; i < kValues; ++i) {
      batcher->Put("key" + std::to_string(i), value, [&, most](const Batch& batch, uint32_t slot) {
        EXPECT_LE(batch.size(), most);
        stored += batch.outcome(slot).verdict == Verdict::kDone ? 1 : 0;
      });
    }
    batcher->Drain();
  }
  EXPECT_EQ(stored, 3 * kValues);
}

TEST_P(BatcherTest, SaysWhatIsWrong) {
  for (const BatcherOptions& options :
       {BatcherOptions{.operations_max = 0}, BatcherOptions{.operations_max = 65537},
        BatcherOptions{.operations_wanted = 0},
        BatcherOptions{.operations_max = 8, .operations_wanted = 9},
        BatcherOptions{.wait_us_max = 1001}, BatcherOptions{.keyspace = 1000}}) {
    const auto batcher = Batcher::Make(*store_, options);
    ASSERT_FALSE(batcher.has_value());
    EXPECT_EQ(batcher.error().code(), Code::kInvalidArgument);
  }
  auto batcher = *Batcher::Make(*store_, {});
  batcher->Put(std::string(100'000, 'k'), "12345678", [](const Batch& batch, uint32_t slot) {
    EXPECT_EQ(batch.outcome(slot).status.code(), Code::kTooLarge);
  });
  batcher->Drain();
}

INSTANTIATE_TEST_SUITE_P(Engines, BatcherTest, testing::Values("btree", "hashleaf"));

}  // namespace
}  // namespace skep

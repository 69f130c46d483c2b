// Tests that every engine must pass: several threads at once, also under ThreadSanitizer.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <ranges>
#include <thread>

#include "base/sanitized.h"
#include "engine/plain_gets.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

constexpr uint32_t kThreads = 4;

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class ThreadConformance : public EngineConformance {
 protected:
  // Runs `body(i)` in kThreads threads while one more maintains the engine.
  template <typename Body>
  void Together(Body body) {
    std::atomic<bool> done = false;
    std::thread maintainer([&] {
      while (!done) {
        engine_.Maintain(now_ms_);
        std::this_thread::yield();
      }
    });
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { body(i); });
    }
    done = true;
    maintainer.join();
  }

  // Executes the batch and waits for its ticket. False if an atomic batch was not applied.
  bool Run(Batch& batch) {
    batch.set_now_ms(now_ms_);
    engine_.gate().Wait(engine_.Execute(batch));
    return batch.applied();
  }

  static void LetOthersIn() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

  // False if another thread has changed the counter meanwhile.
  bool IncrementIfUnchanged(const std::string& key) {
    const auto watch = engine_.Watch(key, now_ms_);
    EXPECT_TRUE(watch.has_value());
    Batch read;
    read.Get(key);
    Run(read);
    LetOthersIn();
    Batch write(Batch::Kind::kAtomic);
    write.RequireUnchanged(key, *watch);
    write.Put(key, write.scratch().Copy(std::to_string(NumberIn(read.outcome(0).value) + 1)));
    const bool applied = Run(write);
    engine_.Unwatch(*watch);
    return applied;
  }

  // Fills, expires and deletes keys around those from "m" to `last`, some with long keys and
  // values.
  void Trample(const std::string& last) {
    const std::string long_text(kLongBytes, 'y');
    for (int i = 0; i < Rounds(300); ++i) {
      Batch batch;
      for (int j = 0; j < 20; ++j) {
        std::string key = j % 2 == 0 ? "left" : last;
        key += std::to_string(i * j % 97);
        if (j % 5 == 0) key += long_text;
        batch.Add({.op = Op::kPut,
                   .key = batch.scratch().Copy(key),
                   .value = j % 3 == 0 ? std::string_view(long_text) : "1",
                   .other = {},
                   .deadline_ms = traits_.expiry && j % 4 == 0 ? now_ms_ + 1 : 0});
      }
      Run(batch);
      ++now_ms_;
      if (i % 4 != 0) continue;
      Batch deletes(i % 8 == 0 && traits_.atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      if (traits_.ordered) {
        deletes.DeleteRange(Range::Between("", "m"));
        deletes.DeleteRange(Range::From(KeyAfter(last, deletes.scratch())));
      }
      Run(deletes);
    }
  }

  // Gives the lock back, by a delete or by letting it expire.
  void GiveBack(std::string_view owner, int turn) {
    Batch give(Batch::Kind::kAtomic);
    give.RequireValue("lock", owner);
    if (turn % 2 == 0 || !traits_.expiry) {
      give.Delete("lock");
    } else {
      give.Expire("lock", now_ms_ + 1);
    }
    EXPECT_TRUE(Run(give));
    ++now_ms_;
  }

  // In no order with other memory: engines must cope with any now.
  std::atomic<uint64_t> now_ms_ = Subject::kStartMs;
};

std::string_view AccountKey(Batch& batch, uint64_t account) {
  return batch.scratch().Copy("account:" + std::to_string(account));
}

// Accounts whose sum stays the same in every transfer.
class Bank {
 public:
  static constexpr uint64_t kAccounts = 8;
  static constexpr int64_t kTotal = 100 * kAccounts;

  explicit Bank(Engine& engine) : engine_(engine) {
    Batch batch;
    for (uint64_t i = 0; i < kAccounts; ++i) batch.Put(AccountKey(batch, i), "100");
    engine_.gate().Wait(engine_.Execute(batch));
  }

  // Moves some of one account to another in one atomic batch, if neither changed since it was read.
  // An account at zero is deleted, so that keys come and go too.
  bool Transfer(std::mt19937_64& rng) {
    const uint64_t from = rng() % kAccounts;
    const uint64_t to = (from + 1 + rng() % (kAccounts - 1)) % kAccounts;
    Batch reads(Batch::Kind::kAtomic);
    reads.Get(AccountKey(reads, from));
    reads.Get(AccountKey(reads, to));
    engine_.gate().Wait(engine_.Execute(reads));
    const int64_t balance = NumberIn(reads.outcome(0).value);
    const int64_t amount = static_cast<int64_t>(rng() % 60);
    if (amount > balance) return false;
    Batch moves(Batch::Kind::kAtomic);
    Change(moves, from, reads.outcome(0), -amount);
    Change(moves, to, reads.outcome(1), amount);
    engine_.gate().Wait(engine_.Execute(moves));
    return moves.applied();
  }

  // The sum as a scan sees it, at a snapshot or now.
  int64_t SumByScan(Batch::Kind kind, SnapshotRef at = {}) {
    Batch batch(kind);
    batch.set_snapshot(at);
    batch.Scan(PrefixRange("account:", batch.scratch()));
    engine_.gate().Wait(engine_.Execute(batch));
    int64_t sum = 0;
    for (const Item& item : batch.items(0)) sum += NumberIn(item.value);
    return sum;
  }

  // The sum as the gets of one atomic batch see it.
  int64_t SumByGets() {
    Batch batch(Batch::Kind::kAtomic);
    for (uint64_t i = 0; i < kAccounts; ++i) batch.Get(AccountKey(batch, i));
    engine_.gate().Wait(engine_.Execute(batch));
    int64_t sum = 0;
    for (uint32_t i = 0; i < kAccounts; ++i) sum += NumberIn(batch.outcome(i).value);
    return sum;
  }

 private:
  static void Change(Batch& batch, uint64_t account, const Outcome& now, int64_t by) {
    const std::string_view key = AccountKey(batch, account);
    if (now.verdict == Verdict::kDone) {
      batch.RequireValue(key, now.value);
    } else {
      batch.RequireAbsent(key);
    }
    const int64_t balance = NumberIn(now.value) + by;
    if (balance == 0) {
      batch.Delete(key);
    } else {
      batch.Put(key, batch.scratch().Copy(std::to_string(balance)));
    }
  }

  Engine& engine_;
};

// Goal: atomic batches are all or nothing for every reader: none sees money between accounts.
// Method: every thread transfers, and sums up now and then by gets, by scan, and twice at one
// snapshot; an engine that does not show batches whole is summed up only at the end.
TEST_P(ThreadConformance, TransfersKeepTheSum) {
  SKEP_NEEDS(atomic);
  const unsigned seed = PrintedSeed();
  Bank bank(engine_);
  std::atomic<int> transfers = 0;
  Together([&](uint32_t thread) {
    std::mt19937_64 rng(seed + thread);
    for (int i = 0; i < Rounds(2000); ++i) {
      transfers += bank.Transfer(rng) ? 1 : 0;
      if (i % 4 != 0 || !traits_.whole_batches) continue;
      EXPECT_EQ(bank.SumByGets(), Bank::kTotal);
      if (!traits_.ordered) continue;
      EXPECT_EQ(bank.SumByScan(Batch::Kind::kUnordered), Bank::kTotal);
      EXPECT_EQ(bank.SumByScan(Batch::Kind::kAtomic), Bank::kTotal);
      if (!traits_.snapshots) continue;
      const auto snapshot = engine_.OpenSnapshot(Subject::kStartMs);
      ASSERT_TRUE(snapshot.has_value());
      EXPECT_EQ(bank.SumByScan(Batch::Kind::kUnordered, *snapshot), Bank::kTotal);
      EXPECT_EQ(bank.SumByScan(Batch::Kind::kUnordered, *snapshot), Bank::kTotal);
      engine_.CloseSnapshot(*snapshot);
    }
  });
  EXPECT_GT(transfers, Rounds(100));
  EXPECT_EQ(bank.SumByGets(), Bank::kTotal);
  subject_.ExpectNoOldVersions();
}

// Goal: no addition is lost, in unordered and in atomic batches, and tickets are released.
TEST_P(ThreadConformance, AdditionsAddUp) {
  SKEP_NEEDS(functions);
  constexpr int kBatches = Rounds(2000);
  Together([&](uint32_t) {
    Version released = 0;
    for (int i = 0; i < kBatches; ++i) {
      const bool is_atomic = i % 2 == 0 && traits_.atomic;
      Batch batch(is_atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      batch.Apply("x", functions::kAddDecimal, "1");
      batch.Apply("y", functions::kAddDecimal, "2");
      batch.Apply("x", functions::kAddDecimal, "1");
      Run(batch);
      EXPECT_EQ(batch.outcome(2).integer > batch.outcome(0).integer, true);
      EXPECT_GE(engine_.gate().released(), released);
      released = engine_.gate().released();
    }
  });
  Batch batch;
  batch.Get("x");
  batch.Get("y");
  Run(batch);
  EXPECT_EQ(NumberIn(batch.outcome(0).value), 2 * kBatches * kThreads);
  EXPECT_EQ(NumberIn(batch.outcome(1).value), 2 * kBatches * kThreads);
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: threads that share the index but no key see only their own writes, in order.
// Method: each thread has a prefix, a map of its own as oracle, and random batches of points, many
// on one key; its ranges must show exactly its map though the neighbours change.
TEST_P(ThreadConformance, EachThreadSeesItsOwnPrefix) {
  const unsigned seed = PrintedSeed();
  Together([&](uint32_t thread) {
    std::mt19937_64 rng(seed + thread);
    std::map<std::string, std::string> mine;
    const std::string prefix = std::string(1, static_cast<char>('a' + thread)) + ":";
    for (int i = 0; i < Rounds(1500); ++i) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " thread " << thread << " batch " << i);
      Batch batch;
      std::vector<std::optional<std::string>> expected;  // what each slot's key was before
      for (uint64_t left = 1 + rng() % 8; left > 0; --left) {
        const std::string key = prefix + std::to_string(rng() % 12);
        const auto at = mine.find(key);
        expected.push_back(at == mine.end() ? std::nullopt : std::optional(at->second));
        const std::string_view view = batch.scratch().Copy(key);
        switch (rng() % 3) {
          case 0:
            batch.Get(view);
            break;
          case 1:
            batch.Delete(view, Request::kReturnPrevious);
            mine.erase(key);
            break;
          default:
            mine[key] = std::to_string(rng() % 1'000'000'000);
            batch.Put(view, batch.scratch().Copy(mine[key]), Request::kReturnPrevious);
        }
      }
      Run(batch);
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        ASSERT_EQ(batch.outcome(slot).value, expected[slot].value_or("")) << "slot " << slot;
        ASSERT_EQ(batch.outcome(slot).present, expected[slot].has_value()) << "slot " << slot;
      }
      if (!traits_.ordered) continue;
      Batch ranges;
      const Range range = PrefixRange(prefix, ranges.scratch());
      ranges.Scan(range);
      ranges.Scan(range, {.reverse = true});
      ranges.Count(range);
      Run(ranges);
      ASSERT_EQ(ranges.outcome(2).integer, static_cast<int64_t>(mine.size()));
      const auto same = [](const Item& item, const auto& pair) {
        return item.key == pair.first && item.value == pair.second;
      };
      ASSERT_TRUE(std::ranges::equal(ranges.items(0), mine, same));
      ASSERT_TRUE(std::ranges::equal(ranges.items(1), mine | std::views::reverse, same));
      if (i % 50 == 49) {
        Batch deletes;
        deletes.DeleteRange(range);
        Run(deletes);
        ASSERT_EQ(deletes.outcome(0).integer, static_cast<int64_t>(mine.size()));
        mine.clear();
      }
    }
  });
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: gets without a batch see the newest state: of two keys that one thread writes in turn, the
// one that is written first is never seen behind the other, and neither ever goes back.
// Method: one thread writes the numbers from 1 on to both, one fills and deletes their
// surroundings, so that leaves and buckets are replaced, and the others read them, in turn one at a
// time and each in a window of gets.
TEST_P(ThreadConformance, GetsWithoutABatchSeeTheNewest) {
  PlainGets* const gets = PlainGetsOf(engine_);
  if (gets == nullptr) GTEST_SKIP() << traits_.name << " has no plain gets";
  const auto get = [&](std::string_view key, bool in_window) {
    if (in_window) {
      const std::string_view keys[] = {"a", key, "z"};
      GetAnswer answers[3];
      Scratch values;
      engine_.AwaitRelease(gets->GetManyPlain(keys, answers, values));
      if (answers[1].verdict == Verdict::kDone) return NumberIn(answers[1].value());
      if (answers[1].verdict == Verdict::kAbsent) return int64_t{0};
    }
    std::optional<std::string> value;
    const auto ticket = gets->GetPlain(key, &value);
    EXPECT_TRUE(ticket.has_value());
    engine_.AwaitRelease(ticket.value_or(0));
    return value ? NumberIn(*value) : 0;
  };
  const std::string first_key = "m:first";
  const std::string second_key = "m:second";
  std::atomic<bool> is_written = false;
  Together([&](uint32_t thread) {
    if (thread == 0) {
      for (int64_t n = 1; n <= Rounds(2000); ++n) {
        const std::string number = std::to_string(n);
        for (const std::string& key : {first_key, second_key}) {
          Batch batch;
          batch.Put(key, number);
          Run(batch);
        }
      }
      is_written = true;
      return;
    }
    if (thread == 1) return Trample(second_key);
    int64_t last = 0;
    for (uint32_t turn = 0; !is_written; ++turn) {
      const int64_t second = get(second_key, turn % 2 == 0);
      const int64_t first = get(first_key, turn % 3 == 0);
      ASSERT_GE(second, last);
      ASSERT_GE(first, second);
      last = first - 1;  // the writer may have written `first` and not yet `second`
    }
  });
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: a scan of an unordered batch sees one state of the keyspace: two keys to which each atomic
// batch writes one value never have different values.
TEST_P(ThreadConformance, ScansSeeWholeBatches) {
  SKEP_NEEDS(atomic);
  SKEP_NEEDS(ordered);
  SKEP_NEEDS(whole_ranges);
  Together([&](uint32_t thread) {
    for (int i = 0; i < Rounds(1500); ++i) {
      if (thread % 2 == 0) {
        Batch batch(Batch::Kind::kAtomic);
        const std::string_view value =
            batch.scratch().Copy(std::to_string(thread) + ":" + std::to_string(i));
        for (const std::string_view key : {"a", "m", "z"}) {
          i % 10 == 9 ? batch.Delete(key) : batch.Put(key, value);
        }
        Run(batch);
        continue;
      }
      Batch batch;
      batch.Scan(Range::All());
      batch.Scan(Range::All(), {.reverse = true});
      batch.Count(Range::All());
      Run(batch);
      for (const uint32_t slot : {0u, 1u}) {
        const auto items = batch.items(slot);
        ASSERT_TRUE(items.empty() || items.size() == 3) << items.size();
        for (const Item& item : items) ASSERT_EQ(item.value, items.front().value);
      }
      ASSERT_TRUE(batch.outcome(2).integer == 0 || batch.outcome(2).integer == 3);
    }
  });
}

// Goal: an update of a vector is one operation: no reader sees a part of it, and none is lost.
// Method: threads add 1 to each element and get the result; one adds another number to each, and
// subtracts it again. In every vector that is read all elements are equal.
TEST_P(ThreadConformance, VectorUpdatesAreWhole) {
  SKEP_NEEDS(functions);
  constexpr int kUpdates = Rounds(500);
  constexpr uint32_t kCount = 100;
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
  const auto elements_of = [](std::string_view bytes) {
    std::vector<int64_t> elements(bytes.size() / sizeof(int64_t));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  };
  Together([&](uint32_t thread) {
    for (int i = 0; i < kUpdates; ++i) {
      Batch batch;
      for (const int64_t number : {1, i % 2 == 0 ? 1000 : -1000}) {
        if (number != 1 && thread > 0) continue;
        const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof(number));
        batch.UpdateElements("v", add, bytes,
                             {.returns = UpdateOptions::Returns::kNew, .create = kCount});
      }
      batch.Get("v");
      Run(batch);
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        const auto elements = elements_of(batch.outcome(slot).value);
        ASSERT_EQ(elements.size(), kCount);
        for (const int64_t element : elements) ASSERT_EQ(element, elements[0]);
      }
    }
  });
  Batch batch;
  batch.Get("v");
  Run(batch);
  EXPECT_EQ(elements_of(batch.outcome(0).value)[0], int64_t{kUpdates} * kThreads);
}

// Goal: no optimistic increment is lost, whatever else is written meanwhile.
// Method: threads watch a counter, read it, and put its successor if it is unchanged, else try
// again; some with short keys, some with long ones, so that counters lie in every place. Meanwhile
// the neighbours of the counters come, go and expire, by points and by ranges. Each counter ends as
// the number of its increments; that some tries failed shows that the threads met.
TEST_P(ThreadConformance, OptimisticIncrementsAddUp) {
  SKEP_NEEDS(atomic);
  constexpr int kIncrements = Rounds(400);
  const std::string keys[] = {"m", Long("m")};
  std::atomic<int> retries = 0;
  Together([&](uint32_t thread) {
    if (thread == kThreads - 1) return Trample(keys[1]);
    for (int i = 0; i < kIncrements; ++i) {
      const std::string& key = keys[static_cast<size_t>(i) % std::size(keys)];
      while (!IncrementIfUnchanged(key)) ++retries;
    }
  });
  Batch batch;
  for (const std::string& key : keys) batch.Get(key);
  Run(batch);
  for (const uint32_t slot : {0u, 1u}) {
    EXPECT_EQ(NumberIn(batch.outcome(slot).value), kIncrements / 2 * (kThreads - 1));
  }
  std::printf("%d retries\n", retries.load());
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: a lock that is built on watches excludes: a thread that has seen it free and taken it
// unchanged is alone, until it gives it back.
// Method: a key is the lock: present while it is held. Holders write an unguarded variable in two
// steps, and count the times; a second holder would see or leave a half step. The lock is given
// back by a delete, or by a deadline that then passes.
TEST_P(ThreadConformance, AWatchedLockExcludes) {
  SKEP_NEEDS(atomic);
  constexpr int kTurns = Rounds(200);
  int before = 0;  // both are guarded by the key "lock"
  int after = 0;
  std::atomic<int> holders = 0;
  Together([&](uint32_t thread) {
    const std::string owner = "owner " + std::to_string(thread);
    for (int turn = 0; turn < kTurns;) {
      const auto watch = engine_.Watch("lock", now_ms_);
      ASSERT_TRUE(watch.has_value());
      Batch look;
      look.Get("lock");
      Run(look);
      LetOthersIn();
      Batch take(Batch::Kind::kAtomic);
      take.RequireUnchanged("lock", *watch);
      take.Put("lock", owner);
      const bool taken = look.outcome(0).verdict == Verdict::kAbsent && Run(take);
      engine_.Unwatch(*watch);
      if (!taken) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(holders.fetch_add(1), 0);
      ASSERT_EQ(before, after);
      ++before;
      LetOthersIn();
      ++after;
      ASSERT_EQ(holders.fetch_sub(1), 1);
      GiveBack(owner, turn);
      ++turn;
    }
  });
  EXPECT_EQ(before, kTurns * static_cast<int>(kThreads));
  EXPECT_EQ(after, before);
}

// Goal: everything at once, for the sanitizers: no crash, no race, no broken invariant.
// Method: random batches of all kinds on the same few keys, which expire all the while, with
// snapshots, watches and statistics.
TEST_P(ThreadConformance, RandomBatchesOnSharedKeys) {
  const unsigned seed = PrintedSeed();
  Together([&](uint32_t thread) {
    RandomBatch random(seed + thread);
    for (int i = 0; i < Rounds(1500); ++i) {
      Batch batch(i % 2 == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
      if (thread == 0 && i % 2 == 0) ++now_ms_;
      batch.set_now_ms(now_ms_);
      const std::string watched(random.Key(batch));
      const auto watch = engine_.Watch(watched, now_ms_);
      if (watch) random.set_watched({{.watch = *watch, .key = watched}});
      random.Fill(batch);
      Run(batch);
      if (watch) engine_.Unwatch(*watch);
      EXPECT_GE(engine_.Statistics().bytes, 0u);
      if (!traits_.snapshots || i % 8 != 0) continue;
      const auto snapshot = engine_.OpenSnapshot(now_ms_);
      ASSERT_TRUE(snapshot.has_value());
      Batch reads;
      reads.set_snapshot(*snapshot);
      random.FillWithReads(reads);
      Run(reads);
      engine_.CloseSnapshot(*snapshot);
    }
  });
  subject_.ExpectNoOldVersions();
}

INSTANTIATE_TEST_SUITE_P(Engines, ThreadConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

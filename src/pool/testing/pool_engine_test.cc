// A whole pool in this process: what a batch does, what its round trips are, what becomes of it
// when a server dies.
#include "pool/pool_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

template <typename World>
class PoolEngineTest : public testing::Test {
 protected:
  Outcome Run(const Request& request) {
    batch_.Clear();
    batch_.Add(request);
    engine_->Execute(batch_);
    return batch_.outcome(0);
  }
  std::string Get(std::string_view key) {
    const Outcome outcome = Run({.op = Op::kGet, .key = key});
    return outcome.verdict == Verdict::kDone ? std::string(outcome.value)
                                             : std::string(outcome.status.what());
  }
  Verdict Put(std::string_view key, std::string_view value) {
    return Run({.op = Op::kPut, .key = key, .value = value}).verdict;
  }

  World world_;
  LocalPool pool_{world_.fabric, PoolOptionsOf(world_)};
  std::unique_ptr<PoolEngine> engine_ = pool_.OpenEngine(kPatientEngine);
  Batch batch_;
};

TYPED_TEST_SUITE(PoolEngineTest, OwnWorlds<testing::Types>);

TYPED_TEST(PoolEngineTest, FindsWhatWasPut) {
  EXPECT_EQ(this->Run({.op = Op::kGet, .key = "a"}).verdict, Verdict::kAbsent);
  EXPECT_EQ(this->Put("a", "1"), Verdict::kDone);
  EXPECT_EQ(this->Get("a"), "1");
  EXPECT_EQ(this->Put("a", std::string(1 << 20, 'x')), Verdict::kDone);
  EXPECT_TRUE(this->Get("a") == std::string(1 << 20, 'x'));
  EXPECT_EQ(this->Run({.op = Op::kDelete, .key = "a"}).verdict, Verdict::kDone);
  EXPECT_EQ(this->Run({.op = Op::kDelete, .key = "a"}).verdict, Verdict::kAbsent);
  EXPECT_EQ(this->Run({.op = Op::kGet, .key = "a"}).verdict, Verdict::kAbsent);
}

TYPED_TEST(PoolEngineTest, ScansWhatWasPut) {
  Batch batch;
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) keys.push_back("key" + std::to_string(10'000 + i));
  for (const std::string& key : keys) batch.Put(key, key);
  this->engine_->Execute(batch);
  for (uint32_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(batch.outcome(i).verdict, Verdict::kDone) << batch.outcome(i).status.ToString();
  }
  batch.Clear();
  batch.Scan(Range::All());
  batch.Count(Range::Between("key10100", "key10200"));
  batch.Scan(Range::All(), {.limit = 2, .reverse = true});
  this->engine_->Execute(batch);
  ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  ASSERT_EQ(batch.outcome(0).item_count, keys.size());
  size_t i = 0;
  for (const Item& item : batch.items(0)) {
    EXPECT_EQ(item.key, keys[i]);
    EXPECT_EQ(item.value, keys[i++]);
  }
  EXPECT_EQ(batch.outcome(1).integer, 100);
  ASSERT_EQ(batch.outcome(2).item_count, 2u);
  EXPECT_EQ((*batch.items(2).begin()).key, keys.back());
  EXPECT_TRUE(batch.outcome(2).more);
}

TYPED_TEST(PoolEngineTest, RoundTripsAreThese) {
  // No lease has to be renewed meanwhile.
  const PoolTimes times = {.read_ns_max = 1'000'000'000'000, .lease_ns = 1'000'000'000'000};
  TypeParam world;
  LocalPool pool(world.fabric, PoolOptionsOf(world, times));
  this->engine_ = pool.OpenEngine(kPatientEngine);
  this->Put("key", "value");
  const auto count = [this](const Request& request) {
    const ClientStatistics before = this->engine_->statistics();
    this->Run(request);
    const ClientStatistics after = this->engine_->statistics();
    return std::pair(after.rounds - before.rounds, after.calls - before.calls);
  };
  using Counts = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(count({.op = Op::kGet, .key = "key"}), Counts(2, 1)) << "with a first lease";
  EXPECT_EQ(count({.op = Op::kGet, .key = "key"}), Counts(1, 0)) << "cached";
  EXPECT_EQ(count({.op = Op::kPut, .key = "key", .value = "other"}), Counts(1, 1));
  EXPECT_EQ(count({.op = Op::kGet, .key = "key"}), Counts(1, 0)) << "what it has written itself";
  EXPECT_EQ(count({.op = Op::kPut, .key = "new", .value = "value"}), Counts(1, 1));
  EXPECT_EQ(count({.op = Op::kGet, .key = "new"}), Counts(1, 0));
  EXPECT_EQ(count({.op = Op::kDelete, .key = "new"}), Counts(0, 1));
  EXPECT_EQ(count({.op = Op::kGet, .key = "new"}), Counts(1, 0)) << "its bucket is empty";
  EXPECT_EQ(count({.op = Op::kScan, .flags = Request::kNoUpperBound}), Counts(1, 1));
  this->engine_.reset();
}

// Goal: a batch of GETs alone finds what is there and what is not, a key that comes twice too, and
// over a fabric whose rounds are messages there and back, many GETs share one.
// Method: by windows of 64 it would be 18 rounds at least.
TYPED_TEST(PoolEngineTest, GetsAloneShareRounds) {
  constexpr uint32_t kKeys = 1100;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < kKeys; ++i) keys.push_back("key" + std::to_string(i));
  Batch batch;
  for (uint32_t i = 0; i < kKeys; i += 2) batch.Put(keys[i], keys[i]);
  this->engine_->Execute(batch);
  batch.Clear();
  for (const std::string& key : keys) batch.Get(key);
  batch.Get(keys[0]);
  this->engine_->Execute(batch);
  const uint64_t before = this->engine_->statistics().rounds;
  this->engine_->Execute(batch);
  const uint64_t rounds = this->engine_->statistics().rounds - before;
  for (uint32_t i = 0; i <= kKeys; ++i) {
    const Outcome& outcome = batch.outcome(i);
    ASSERT_EQ(outcome.verdict, i % 2 == 0 ? Verdict::kDone : Verdict::kAbsent) << i;
    if (i % 2 == 0) {
      EXPECT_EQ(outcome.value, keys[i % kKeys]);
    }
  }
  EXPECT_GT(rounds, 0u);
  if (std::is_same_v<TypeParam, TcpWorld>) {
    EXPECT_LT(rounds, 18u);
  }
}

// Goal: writes that read nothing share a commit, as many as one takes, or as their values allow;
// what comes with them does not change what they do.
TYPED_TEST(PoolEngineTest, PlainWritesShareACommit) {
  ASSERT_EQ(this->Put("first", "value"), Verdict::kDone);
  this->Run({.op = Op::kGet, .key = "first"});
  std::vector<std::string> keys;
  for (int i = 0; i < 1100; ++i) keys.push_back("key" + std::to_string(i));
  // A split of a bucket, or a busy machine, makes the engine try again. Such a batch says nothing
  // about sharing, so it is sent once more. The GET takes a round more if the writes have pushed
  // its key out of the cache, which the seed of the pool's hashes decides.
  const auto disturbances = [&] {
    const ClientStatistics s = this->engine_->statistics();
    return s.retries_torn + s.retries_late + s.retries_lost + s.retries_slow + s.retries_contended +
           s.retries_redirected + s.joins + s.renewals;
  };
  const auto put_all = [&](const std::string& value) {
    Batch batch;
    for (const std::string& key : keys) batch.Put(key, value);
    batch.Get("first");
    uint64_t rounds = 0;
    for (uint64_t tries = 0, disturbed = UINT64_MAX; tries < 20 && disturbed != 0; ++tries) {
      const ClientStatistics before = this->engine_->statistics();
      const uint64_t disturbed_before = disturbances();
      this->engine_->Execute(batch);
      const ClientStatistics after = this->engine_->statistics();
      rounds = after.rounds - before.rounds - (after.cache_misses - before.cache_misses);
      disturbed = disturbances() - disturbed_before;
      for (uint32_t i = 0; i <= keys.size(); ++i) {
        EXPECT_EQ(batch.outcome(i).verdict, Verdict::kDone) << i;
      }
    }
    return rounds;
  };
  EXPECT_EQ(put_all("short"), 4u) << "512, 512, 76, and the GET";
  keys.resize(200);
  EXPECT_EQ(put_all(std::string(40'000, 'v')), 3u) << "104, 96, and the GET";
}

// Goal: the items of a scan are read side by side, or one after the other where that is asked for,
// with the same answer. One item more is one round more then.
TYPED_TEST(PoolEngineTest, AScanReadsAsManyItemsSideBySideAsItMay) {
  constexpr uint32_t kKeys = 20;
  Batch puts;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < kKeys; ++i) keys.push_back("key" + std::to_string(100 + i));
  for (const std::string& key : keys) puts.Put(key, key);
  this->engine_->Execute(puts);
  const auto rounds_of = [&](uint32_t window) {
    PoolEngineOptions options = kPatientEngine;
    options.scan_window = window;
    const auto engine = this->pool_.OpenEngine(options);
    Batch batch;
    batch.Scan(Range::All(), {.limit = 100});
    engine->Execute(batch);  // makes the connections
    const uint64_t before = engine->statistics().rounds;
    engine->Execute(batch);
    EXPECT_EQ(batch.outcome(0).item_count, kKeys);
    return engine->statistics().rounds - before;
  };
  const uint64_t side_by_side = rounds_of(1024);
  EXPECT_LE(side_by_side, 3u) << "the applied word may be read once more";
  EXPECT_GE(rounds_of(1), kKeys);
  EXPECT_LT(rounds_of(7), kKeys);
}

// Goal: a connection is not asked for more in one round than it can bring in time.
// Method: the first 64 bytes of 16 values of half a MiB say how long these are; the values then
// come in two rounds, of 4 MiB each.
TYPED_TEST(PoolEngineTest, LongValuesComeInSeveralRounds) {
  const PoolTimes times = {.read_ns_max = 1'000'000'000'000, .lease_ns = 1'000'000'000'000};
  TypeParam world;
  LocalPool pool(world.fabric, PoolOptionsOf(world, times));
  this->engine_ = pool.OpenEngine(kPatientEngine);
  std::vector<std::string> keys;
  for (char c = 'a'; c < 'a' + 16; ++c) keys.emplace_back(1, c);
  const auto value = [](const std::string& key) { return std::string(size_t{512} << 10, key[0]); };
  for (const std::string& key : keys) ASSERT_EQ(this->Put(key, value(key)), Verdict::kDone);
  Batch batch;
  for (const std::string& key : keys) batch.Get(key);
  this->engine_->Execute(batch);
  const uint64_t before = this->engine_->statistics().rounds;
  this->engine_->Execute(batch);
  EXPECT_GE(this->engine_->statistics().rounds - before, 3u);
  for (uint32_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(batch.outcome(i).value == value(keys[i]));
  this->engine_.reset();
}

TYPED_TEST(PoolEngineTest, IncrementsOfThreadsAddUp) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      Batch batch;
      for (int i = 0; i < kAdds; ++i) {
        batch.Clear();
        batch.Apply("counter", functions::kAddDecimal, "1");
        this->engine_->Execute(batch);
        ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone) << batch.outcome(0).status.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->Get("counter"), std::to_string(kThreads * kAdds));
}

// H2, H3: what was replaced makes room, after a while: a client that writes several times as much
// as the pool holds is told now and then that the pool is full, and gets on.
TYPED_TEST(PoolEngineTest, WhatWasReplacedMakesRoom) {
  constexpr uint32_t kChunks = 3;
  const std::string value(300'000, 'v');
  TypeParam world;
  LocalPoolOptions options = PoolOptionsOf(world);
  options.times.read_ns_max = 20'000'000;
  options.chunks = kChunks;
  LocalPool pool(world.fabric, options);
  this->engine_ = pool.OpenEngine(kPatientEngine);
  int refused = 0;
  for (int written = 0; written < 60;) {
    const Outcome outcome = this->Run({.op = Op::kPut, .key = "key", .value = value});
    if (outcome.verdict == Verdict::kDone) {
      ++written;
      continue;
    }
    ASSERT_EQ(outcome.status.code(), Code::kOutOfMemory) << outcome.status.ToString();
    ASSERT_LT(++refused, 10'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(this->Get("key") == value);
  this->engine_.reset();
}

// A pool that is kept more than half full is overwritten several times: cleaners make the room, and
// that of the other index server goes on when the hash server is lost. No write is refused.
TYPED_TEST(PoolEngineTest, CleanersKeepRoomForOverwrites) {
  constexpr uint64_t kKeys = 180;
  TypeParam world;
  LocalPoolOptions options = PoolOptionsOf(world);
  options.times.read_ns_max = 20'000'000;
  options.chunks = 16;  // of 20 items each
  options.has_agents = true;
  LocalPool pool(world.fabric, options);
  this->engine_ = pool.OpenEngine(kPatientEngine);
  SeededRandom random(1);
  std::map<std::string, std::string> items;
  for (int i = 0; i < 1200; ++i) {
    if (i == 800) pool.KillIndexServer(1);
    const std::string key = std::to_string(random.Below(kKeys));
    std::string& value = items[key];
    value = std::to_string(i) + std::string(100'000, 'v');
    const Outcome outcome = this->Run({.op = Op::kPut, .key = key, .value = value});
    ASSERT_EQ(outcome.verdict, Verdict::kDone) << i << ": " << outcome.status.ToString();
  }
  uint64_t moved = 0;
  this->engine_->Describe(0, [&](std::string_view name, uint64_t figure) {
    if (name == "pool_items_moved") moved = figure;
  });
  EXPECT_GT(moved, 0u) << "by the second one";
  for (const auto& [key, value] : items) EXPECT_TRUE(this->Get(key) == value) << key;
  this->engine_.reset();
}

TYPED_TEST(PoolEngineTest, GoesOnWithoutTheHashServer) {
  for (int i = 0; i < 100; ++i) this->Put("key" + std::to_string(i), "value");
  this->pool_.KillIndexServer(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(this->Get("key" + std::to_string(i)), "value");
  EXPECT_EQ(this->Put("key1", "new"), Verdict::kDone);
  EXPECT_EQ(this->Get("key1"), "new");
  EXPECT_EQ(this->Run({.op = Op::kCount, .flags = Request::kNoUpperBound}).integer, 100);
}

TYPED_TEST(PoolEngineTest, GoesOnWithoutTheSortedServer) {
  for (int i = 0; i < 100; ++i) this->Put("key" + std::to_string(i), "value");
  this->pool_.KillIndexServer(2);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(this->Get("key" + std::to_string(i)), "value");
  EXPECT_EQ(this->Put("key1", "new"), Verdict::kDone);
  EXPECT_EQ(this->Run({.op = Op::kCount, .flags = Request::kNoUpperBound}).integer, 100);
}

// A thread with keys of its own: it knows what the pool has of them.
class OwnKeys {
 public:
  OwnKeys(PoolEngine& engine, int thread)
      : engine_(engine),
        prefix_("thread" + std::to_string(thread) + "-"),
        end_("thread" + std::to_string(thread) + "."),
        random_(thread) {}

  // Puts, deletes, a GET and a scan, each of which shows what was acknowledged before.
  void Round() {
    batch_.Clear();
    values_.clear();
    for (int i = 0; i < 20; ++i) {
      const std::string& key =
          *keys_.insert(prefix_ + std::to_string(1000 + random_.Below(500))).first;
      if (random_.Chance(1, 3)) {
        batch_.Delete(key);
        items_.erase(key);
      } else {
        items_[key] = values_.emplace_back(std::to_string(random_.Next()));
        batch_.Put(key, values_.back());
      }
    }
    batch_.Scan(Range::Between(prefix_, end_));
    engine_.Execute(batch_);
    ASSERT_EQ(batch_.outcome(20).verdict, Verdict::kDone) << batch_.outcome(20).status.ToString();
    std::map<std::string, std::string> found;
    for (const Item& item : batch_.items(20)) found.emplace(item.key, item.value);
    ASSERT_EQ(found, items_);
    if (items_.empty()) return;
    const auto& [key, value] = *items_.begin();
    batch_.Clear();
    batch_.Get(key);
    engine_.Execute(batch_);
    ASSERT_EQ(batch_.outcome(0).verdict, Verdict::kDone) << batch_.outcome(0).status.ToString();
    ASSERT_EQ(batch_.outcome(0).value, value);
    ++rounds;
  }

  std::atomic<int> rounds{0};

 private:
  PoolEngine& engine_;
  const std::string prefix_;
  const std::string end_;  // of the keys with this prefix
  SeededRandom random_;
  std::set<std::string> keys_;      // whose bytes stay
  std::deque<std::string> values_;  // of a round
  std::map<std::string, std::string> items_;
  Batch batch_;
};

// The pool loses its hash server again and again, and each time a newcomer is given the state of
// the one that is left, while clients put, delete, get and scan.
TYPED_TEST(PoolEngineTest, NewcomersTakeOverWhileClientsGoOn) {
  constexpr int kThreads = 3;
  TypeParam world;
  PoolTimes times = kPatientTimes;
  times.lease_ns = 500'000'000;
  LocalPoolOptions options = PoolOptionsOf(world, times);
  // A newcomer takes StateSender::kUnackedMax pieces within a lease, also under TSan on a processor
  // that others use: else it is given up and the transfer begins anew, again and again.
  options.adjust = [](IndexServerOptions& index) { index.keys_per_piece = 64; };
  LocalPool pool(world.fabric, options);
  this->engine_ = pool.OpenEngine(kPatientEngine);
  Batch batch;
  std::vector<std::string> keys;
  for (int i = 0; i < 10'000; ++i) keys.push_back("key" + std::to_string(i));
  for (const std::string& key : keys) batch.Put(key, key);
  this->engine_->Execute(batch);

  std::atomic<bool> stops{false};
  std::deque<OwnKeys> own;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) own.emplace_back(*this->engine_, t);
  for (OwnKeys& at : own) {
    threads.emplace_back([&] {
      while (!stops && !testing::Test::HasFatalFailure()) at.Round();
    });
  }
  const auto await_rounds = [&](int more) {
    std::vector<int> ends;
    for (const OwnKeys& at : own) ends.push_back(at.rounds + more);
    for (int t = 0; t < kThreads; ++t) {
      while (own[t].rounds < ends[t] && !testing::Test::HasFatalFailure())
        std::this_thread::yield();
    }
  };
  for (uint32_t id = 1; id <= 3; ++id) {
    await_rounds(2);
    pool.KillIndexServer(id);
    if (id == 3) break;
    pool.AddIndexServer(id + 2);
    while (!pool.GrantWantedRoles()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  await_rounds(2);
  stops = true;
  for (std::thread& thread : threads) thread.join();
  for (const std::string& key : keys) ASSERT_EQ(this->Get(key), key);
  this->engine_.reset();
}

}  // namespace
}  // namespace skep::pool

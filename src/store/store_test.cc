// The library's calls (skep/store.h), on every engine.
#include "skep/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "keyspace/factory.h"
#include "keyspace/keyspaces.h"

namespace skep {
namespace {

std::unique_ptr<Store> OpenStore(const std::string& engine, uint64_t memory_bytes_max = 0) {
  auto store = Store::Open({.engine = engine, .memory_bytes_max = memory_bytes_max});
  EXPECT_TRUE(store.has_value());
  return std::move(*store);
}

class StoreTest : public testing::TestWithParam<std::string> {
 protected:
  // Whether the engine has a feature: the tests of others pass over it.
  bool Has(bool EngineTraits::* feature) const {
    MemoryBudget budget;
    return FindEngine(GetParam())->make({.budget = &budget})->traits().*feature;
  }

  std::unique_ptr<Store> store_ = OpenStore(GetParam());
};

// Enough for several chunks of a scanner.
constexpr int kMany = 1000;

std::string NumberedKey(int i) {
  std::string digits = std::to_string(i);
  return "key" + std::string(6 - digits.size(), '0') + digits;
}

using Map = std::map<std::string, std::string>;

Map FillMany(Store& store) {
  Map map;
  for (int i = 0; i < kMany; ++i) {
    map[NumberedKey(i)] = std::to_string(i);
    EXPECT_TRUE(store.Put(NumberedKey(i), std::to_string(i)).ok());
  }
  return map;
}

TEST(StoreOpen, RefusesBadOptions) {
  EXPECT_EQ(Store::Open({.engine = "nonesuch"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Store::Open({.keyspaces = 0}).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(EngineNames().empty());
}

// Goal: a number that options.h does not allow is refused, and the refusal names it; those at the
// limits are not.
TEST(StoreOpen, RefusesBadBtreeOptions) {
  const struct {
    BtreeOptions options;
    const char* says;  // null: allowed
    uint64_t detail = 0;
  } cases[] = {
      {{.node_bytes = 2048, .log_bytes = 0}, nullptr},
      {{.node_bytes = 2048, .log_bytes = 512}, nullptr},
      {{.node_bytes = 32768, .log_bytes = 8192}, nullptr},
      {{.node_bytes = 2048}, nullptr},  // whose quarter is less than the default log
      {{.log_bytes = UINT32_MAX}, nullptr},
      {{.multi_version = false}, nullptr},
      {{.node_bytes = 0, .log_bytes = 0}, "node bytes", 0},
      {{.node_bytes = 1024, .log_bytes = 0}, "node bytes", 1024},
      {{.node_bytes = 65536}, "node bytes", 65536},
      {{.node_bytes = 6000}, "node bytes", 6000},
  };
  for (const auto& c : cases) {
    const auto store = Store::Open({.btree = c.options});
    EXPECT_EQ(store.has_value(), c.says == nullptr) << c.options.node_bytes;
    if (store.has_value() || c.says == nullptr) continue;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(store.error().what()).find(c.says), std::string::npos);
    EXPECT_EQ(store.error().detail(), c.detail);
  }
}

// Goal: bad options of a hash table are refused, and the refusal names the number.
TEST(StoreOpen, RefusesBadHashOptions) {
  const struct {
    HashOptions options;
    const char* says;  // null: allowed
    uint64_t detail = 0;
  } cases[] = {
      {{.inline_bytes_max = 0, .fill_slots = 1}, nullptr},
      {{.inline_bytes_max = 50, .fill_slots = 40}, nullptr},
      {{.inline_bytes_max = 51}, "inline", 51},
      {{.fill_slots = 0}, "fill slots", 0},
      {{.fill_slots = 41}, "fill slots", 41},
  };
  for (const auto& c : cases) {
    const auto store = Store::Open({.engine = "hash", .hash = c.options});
    EXPECT_EQ(store.has_value(), c.says == nullptr) << c.detail;
    if (store.has_value() || c.says == nullptr) continue;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(store.error().what()).find(c.says), std::string::npos);
    EXPECT_EQ(store.error().detail(), c.detail);
  }
}

// Goal: what a store is told reaches its engines.
// Method: an engine that remembers what it was told when it was made.
TEST(StoreOpen, TellsItsEngines) {
  static EngineOptions told;
  static constexpr EngineInfo kRemembers{
      "remembers", "", [](const EngineOptions& options) -> std::unique_ptr<Engine> {
        told = options;
        return AllEngines()[0].make(options);
      }};
  const Options options{.memory_bytes_max = 1 << 20,
                        .snapshot_age_ms_max = 7,
                        .btree = {.node_bytes = 4096, .log_bytes = 0, .multi_version = false},
                        .hash = {.inline_bytes_max = 7, .fill_slots = 3}};
  const auto keyspaces = Keyspaces::Make(options, &kRemembers);
  ASSERT_TRUE(keyspaces.has_value());
  (*keyspaces)->at(0);
  EXPECT_EQ(told.budget, &(*keyspaces)->budget());
  EXPECT_EQ(told.budget->limit(), options.memory_bytes_max);
  EXPECT_EQ(told.snapshot_age_ms_max, options.snapshot_age_ms_max);
  EXPECT_EQ(told.index.btree, options.btree);
  EXPECT_EQ(told.index.hash, options.hash);
}

// Goal: each point call says whether it happened.
TEST_P(StoreTest, Points) {
  EXPECT_EQ(*store_->Get("a"), std::nullopt);
  EXPECT_FALSE(*store_->Update("a", "1"));
  EXPECT_FALSE(*store_->Delete("a"));
  EXPECT_FALSE(*store_->CompareAndSet("a", "", "1"));
  EXPECT_TRUE(*store_->Insert("a", "1"));
  EXPECT_FALSE(*store_->Insert("a", "2"));
  EXPECT_EQ(*store_->Get("a"), "1");
  EXPECT_TRUE(*store_->Update("a", "2"));
  EXPECT_FALSE(*store_->CompareAndSet("a", "1", "3"));
  EXPECT_TRUE(*store_->CompareAndSet("a", "2", ""));
  EXPECT_EQ(*store_->Get("a"), "");
  EXPECT_TRUE(store_->Put("a", "4").ok());
  EXPECT_TRUE(*store_->Delete("a"));
  EXPECT_EQ(*store_->Get("a"), std::nullopt);
}

// Goal: a call that an engine refuses says why, and in a batch the slot does.
TEST_P(StoreTest, Errors) {
  const std::string long_key(64 * 1024 + 1, 'k');
  EXPECT_EQ(store_->Get(long_key).error().code(), Code::kTooLarge);
  EXPECT_EQ(store_->Put(long_key, "1").code(), Code::kTooLarge);
  EXPECT_EQ(store_->Insert(long_key, "1").error().code(), Code::kTooLarge);
  EXPECT_EQ(store_->Delete(long_key).error().code(), Code::kTooLarge);
  Batch batch;
  batch.Put(long_key, "1");
  batch.Put("a", "1");
  EXPECT_TRUE(store_->Execute(batch).ok());
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kTooLarge);
  EXPECT_EQ(*store_->Get("a"), "1");
}

TEST_P(StoreTest, AtomicBatches) {
  if (!Has(&EngineTraits::atomic)) GTEST_SKIP();
  Batch batch(Batch::Kind::kAtomic);
  batch.RequireAbsent("a");
  batch.Put("a", "1");
  batch.Put("b", "1");
  EXPECT_TRUE(store_->Execute(batch).ok());
  EXPECT_TRUE(store_->Execute(batch).ok());
  EXPECT_FALSE(batch.applied());
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kExists);
  EXPECT_EQ(*store_->Get("b"), "1");
}

// Goal: a condition that does not hold is no error of the call, and nothing is applied.
// Method: each kind of condition, before a write that would show.
TEST_P(StoreTest, AnUnmetConditionIsNoError) {
  if (!Has(&EngineTraits::atomic)) GTEST_SKIP();
  EXPECT_TRUE(store_->Put("a", "1").ok());
  const std::vector<std::pair<std::function<void(Batch&)>, Verdict>> conditions = {
      {[](Batch& b) { b.RequireAbsent("a"); }, Verdict::kExists},
      {[](Batch& b) { b.RequirePresent("c"); }, Verdict::kAbsent},
      {[](Batch& b) { b.RequireValue("a", "2"); }, Verdict::kMismatch},
      {[](Batch& b) { b.RequireDigest("a", DigestOf("2")); }, Verdict::kMismatch}};
  for (const auto& [require, verdict] : conditions) {
    Batch batch(Batch::Kind::kAtomic);
    batch.Put("b", "1");
    require(batch);
    EXPECT_TRUE(store_->Execute(batch).ok());
    EXPECT_FALSE(batch.applied());
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kAborted);
    EXPECT_EQ(batch.outcome(1).verdict, verdict);
    EXPECT_EQ(*store_->Get("b"), std::nullopt);
  }
}

// Goal: deadlines are given, told, changed, taken away and kept; what has passed is gone at once.
TEST_P(StoreTest, Deadlines) {
  using std::chrono::hours;
  const Deadline later = DeadlineAfter(hours(1));
  EXPECT_EQ(*store_->DeadlineOf("a"), std::nullopt);
  EXPECT_FALSE(*store_->Expire("a", later));
  EXPECT_TRUE(store_->PutUntil("a", "1", later).ok());
  EXPECT_EQ(*store_->DeadlineOf("a"), later);
  EXPECT_EQ(*store_->Get("a"), "1");
  EXPECT_TRUE(*store_->Expire("a", later + hours(1)));
  EXPECT_EQ(*store_->DeadlineOf("a"), later + hours(1));
  EXPECT_TRUE(*store_->Expire("a", kNever));
  EXPECT_EQ(*store_->DeadlineOf("a"), kNever);
  EXPECT_TRUE(store_->PutUntil("a", "2", later).ok());
  EXPECT_TRUE(store_->Put("a", "3").ok());
  EXPECT_EQ(*store_->DeadlineOf("a"), kNever);
  EXPECT_TRUE(store_->PutUntil("a", "4", kNever).ok());
  EXPECT_EQ(*store_->DeadlineOf("a"), kNever);
  for (const Deadline passed : {DeadlineAfter(-hours(1)), Deadline(), Deadline::min()}) {
    EXPECT_TRUE(store_->PutUntil("a", "5", passed).ok());
    EXPECT_EQ(*store_->Get("a"), std::nullopt);
    EXPECT_TRUE(store_->Put("a", "6").ok());
    EXPECT_TRUE(*store_->Expire("a", passed));
    EXPECT_EQ(*store_->Get("a"), std::nullopt);
  }
  const Deadline latest{std::chrono::milliseconds(kDeadlineMax)};
  EXPECT_TRUE(store_->PutUntil("a", "7", latest).ok());
  EXPECT_EQ(*store_->DeadlineOf("a"), latest);
  const Deadline too_late = latest + std::chrono::milliseconds(1);
  EXPECT_EQ(store_->PutUntil("a", "8", too_late).code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Expire("a", too_late).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(*store_->Get("a"), "7");
}

// Goal: keys expire by the system's clock, for points, counts and scans; then Maintain() frees
// them.
TEST_P(StoreTest, KeysExpireAndAreFreed) {
  for (int i = 0; i < kMany; ++i) {
    const Deadline deadline = i % 2 == 0 ? DeadlineAfter(std::chrono::milliseconds(5)) : kNever;
    EXPECT_TRUE(store_->PutUntil(NumberedKey(i), "1", deadline).ok());
  }
  while (store_->Get(NumberedKey(kMany - 2))->has_value()) std::this_thread::yield();
  EXPECT_EQ(*store_->Get(NumberedKey(0)), std::nullopt);
  EXPECT_EQ(*store_->Get(NumberedKey(1)), "1");
  if (Has(&EngineTraits::ordered) && Has(&EngineTraits::snapshots)) {
    EXPECT_EQ(*store_->Count(Range::All()), static_cast<uint64_t>(kMany / 2));
    int items = 0;
    for (Scanner scan = store_->Scan(Range::All()); scan.Next();) ++items;
    EXPECT_EQ(items, kMany / 2);
  }
  // Some time after the deadline.
  const auto items = [&] { return store_->Statistics().keyspaces[0].items; };
  while (items() > uint64_t{kMany / 2}) store_->Maintain();
  EXPECT_EQ(items(), uint64_t{kMany / 2});
}

// Goal: a transaction is applied if what it has read is unchanged, and is not otherwise; a dropped
// watch is none.
TEST_P(StoreTest, Watches) {
  if (!Has(&EngineTraits::atomic)) GTEST_SKIP() << "no atomic batches";
  EXPECT_TRUE(store_->Put("a", "1").ok());
  Watch moved;
  EXPECT_FALSE(moved.valid());
  {
    auto watch = store_->WatchKey("a");
    ASSERT_TRUE(watch.has_value());
    moved = std::move(*watch);
    EXPECT_FALSE(watch->valid());
  }
  const auto verdict_of = [&](uint64_t id) {
    Batch batch(Batch::Kind::kAtomic);
    batch.RequireUnchanged("a", id);
    batch.Get("a");
    EXPECT_TRUE(store_->Execute(batch).ok());
    return batch.outcome(0).verdict;
  };
  EXPECT_EQ(verdict_of(moved.id()), Verdict::kDone);
  EXPECT_TRUE(store_->Put("a", "1").ok());
  EXPECT_EQ(verdict_of(moved.id()), Verdict::kMismatch);
  const uint64_t dropped = moved.id();
  moved = Watch();
  EXPECT_EQ(verdict_of(dropped), Verdict::kRefused);
  // In the keyspace it was asked for.
  const auto elsewhere = store_->WatchKey("a", 1);
  const auto here = store_->WatchKey("a");
  ASSERT_TRUE(elsewhere.has_value() && here.has_value());
  EXPECT_TRUE(store_->Put("a", "2", 1).ok());
  EXPECT_EQ(verdict_of(here->id()), Verdict::kDone);
  EXPECT_EQ(store_->WatchKey(std::string(64 * 1024 + 1, 'k')).error().code(), Code::kTooLarge);
}

// Goal: keyspaces are apart; one that does not exist is refused by every call.
TEST_P(StoreTest, Keyspaces) {
  EXPECT_TRUE(store_->Put("a", "0").ok());
  EXPECT_TRUE(store_->Put("a", "3", 3).ok());
  EXPECT_EQ(*store_->Get("a"), "0");
  EXPECT_EQ(*store_->Get("a", 3), "3");
  EXPECT_EQ(*store_->Get("a", 15), std::nullopt);
  const Code refused = Code::kInvalidArgument;
  EXPECT_EQ(store_->Get("a", 16).error().code(), refused);
  EXPECT_EQ(store_->Put("a", "1", 16).code(), refused);
  EXPECT_EQ(store_->Insert("a", "1", 16).error().code(), refused);
  EXPECT_EQ(store_->Update("a", "1", 16).error().code(), refused);
  EXPECT_EQ(store_->Delete("a", 16).error().code(), refused);
  EXPECT_EQ(store_->CompareAndSet("a", "1", "2", 16).error().code(), refused);
  EXPECT_EQ(store_->PutUntil("a", "1", kNever, 16).code(), refused);
  EXPECT_EQ(store_->Expire("a", kNever, 16).error().code(), refused);
  EXPECT_EQ(store_->DeadlineOf("a", 16).error().code(), refused);
  EXPECT_EQ(store_->WatchKey("a", 16).error().code(), refused);
  EXPECT_EQ(store_->Count(Range::All(), 16).error().code(), refused);
  EXPECT_EQ(store_->DeleteRange(Range::All(), kNoLimit, 16).error().code(), refused);
  EXPECT_EQ(store_->TakeSnapshot(16).error().code(), refused);
  Batch batch;
  EXPECT_EQ(store_->Execute(batch, 16).code(), refused);
  Scanner scan = store_->Scan(Range::All(), {}, 16);
  EXPECT_FALSE(scan.Next());
  EXPECT_EQ(scan.status().code(), refused);
}

// Goal: a scan of several chunks gives each item once, in order, forward and back, within its
// range and limit.
TEST_P(StoreTest, ScansOverChunks) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  const Map map = FillMany(*store_);
  const std::string lo = NumberedKey(10);
  const std::string hi = NumberedKey(990);
  for (const bool reverse : {false, true}) {
    for (const uint32_t limit : {1u, 255u, 256u, 257u, 700u, kNoLimit}) {
      SCOPED_TRACE(testing::Message() << "reverse " << reverse << " limit " << limit);
      std::vector<std::string> expected;
      for (int i = 10; i < 990; ++i) expected.push_back(NumberedKey(i));
      if (reverse) std::ranges::reverse(expected);
      if (expected.size() > limit) expected.resize(limit);
      std::vector<std::string> keys;
      Scanner scan = store_->Scan(Range::Between(lo, hi), {.limit = limit, .reverse = reverse});
      while (scan.Next()) {
        EXPECT_EQ(map.at(std::string(scan.key())), scan.value());
        keys.emplace_back(scan.key());
      }
      EXPECT_TRUE(scan.status().ok());
      EXPECT_EQ(keys, expected);
      EXPECT_FALSE(scan.Next());
    }
  }
}

TEST_P(StoreTest, ScansFromTheFloorAndWithoutValues) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  FillMany(*store_);
  Scanner scan =
      store_->Scan(Range::From(NumberedKey(5) + "x"), {.keys_only = true, .seek_floor = true});
  for (int i = 5; i < kMany; ++i) {
    ASSERT_TRUE(scan.Next());
    ASSERT_EQ(scan.key(), NumberedKey(i));
    ASSERT_EQ(scan.value(), "");
  }
  EXPECT_FALSE(scan.Next());
}

// Goal: a pass over several chunks, and a count, are of one version however the range changes.
// Method: writers delete, overwrite and add behind and ahead of the pass all the while.
TEST_P(StoreTest, ScansAreOfOneVersionWhileWritersChangeTheRange) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  const Map map = FillMany(*store_);
  const auto pinned = store_->TakeSnapshot();
  ASSERT_TRUE(pinned.has_value());
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; !done; i = (i + 7) % kMany) {
      EXPECT_TRUE(store_->Put(NumberedKey(i), "changed").ok());
      EXPECT_TRUE(store_->Delete(NumberedKey((i * 13) % kMany)).has_value());
      EXPECT_TRUE(store_->Put(NumberedKey(i) + "new", "new").ok());
    }
  });
  for (int pass = 0; pass < 10; ++pass) {
    Map seen;
    Scanner scan = store_->Scan(Range::All(), {.reverse = pass % 2 == 1}, 0, &*pinned);
    while (scan.Next()) seen.emplace(scan.key(), scan.value());
    EXPECT_TRUE(scan.status().ok());
    EXPECT_EQ(seen, map);
    EXPECT_EQ(*store_->Count(Range::All(), 0, &*pinned), map.size());
  }
  done = true;
}

// Goal: a scanner without a snapshot takes its own at the first Next(), and gives it back.
TEST_P(StoreTest, AScannerPinsTheStateOfItsFirstNext) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  FillMany(*store_);
  {
    Scanner scan = store_->Scan(Range::All());
    EXPECT_TRUE(store_->Put("a", "before").ok());
    ASSERT_TRUE(scan.Next());
    EXPECT_EQ(scan.key(), "a");
    EXPECT_EQ(store_->Statistics().keyspaces[0].snapshots, 1u);
    EXPECT_EQ(*store_->DeleteRange(Range::All()), kMany + 1u);
    int items = 1;
    while (scan.Next()) ++items;
    EXPECT_EQ(items, kMany + 1);
  }
  EXPECT_EQ(store_->Statistics().keyspaces[0].snapshots, 0u);
}

TEST_P(StoreTest, SnapshotsMoveAndEnd) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  EXPECT_TRUE(store_->Put("a", "1").ok());
  Snapshot moved;
  EXPECT_FALSE(moved.valid());
  {
    auto taken = store_->TakeSnapshot();
    ASSERT_TRUE(taken.has_value());
    moved = std::move(*taken);
    EXPECT_FALSE(taken->valid());
  }
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(store_->Put("a", "2").ok());
  EXPECT_GT(store_->Statistics().keyspaces[0].old_versions, 0u);
  Batch batch;
  batch.set_snapshot(moved.ref());
  batch.Get("a");
  EXPECT_TRUE(store_->Execute(batch).ok());
  EXPECT_EQ(batch.outcome(0).value, "1");
  moved = Snapshot();
  EXPECT_EQ(store_->Statistics().keyspaces[0].snapshots, 0u);
}

// Goal: a snapshot is refused by every keyspace but its own, also by that of another store.
// Method: the others hold as many keys, so that reading them would not show in the numbers.
TEST_P(StoreTest, ASnapshotReadsItsOwnKeyspaceOnly) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  const auto other = OpenStore(GetParam());
  EXPECT_TRUE(store_->Put("a", "0").ok());
  EXPECT_TRUE(store_->Put("a", "1", 1).ok());
  EXPECT_TRUE(other->Put("a", "2").ok());
  const auto snapshot = store_->TakeSnapshot();
  const auto foreign = other->TakeSnapshot();
  ASSERT_TRUE(snapshot.has_value() && foreign.has_value());
  const auto expect_refused = [&](const Snapshot& at, uint32_t keyspace) {
    SCOPED_TRACE(testing::Message() << "keyspace " << keyspace);
    const auto count = store_->Count(Range::All(), keyspace, &at);
    ASSERT_FALSE(count.has_value());
    EXPECT_EQ(count.error().code(), Code::kInvalidArgument);
    Scanner scan = store_->Scan(Range::All(), {}, keyspace, &at);
    EXPECT_FALSE(scan.Next());
    EXPECT_EQ(scan.status().code(), Code::kInvalidArgument);
  };
  for (const uint32_t keyspace : {1u, 2u, 16u}) expect_refused(*snapshot, keyspace);
  expect_refused(*foreign, 0);
  EXPECT_EQ(*store_->Count(Range::All(), 0, &*snapshot), 1u);
}

TEST_P(StoreTest, CountsAndDeletesRanges) {
  if (!Has(&EngineTraits::ordered) || !Has(&EngineTraits::snapshots)) GTEST_SKIP();
  FillMany(*store_);
  EXPECT_EQ(*store_->Count(Range::All()), static_cast<uint64_t>(kMany));
  EXPECT_EQ(*store_->Count(Range::Between(NumberedKey(3), NumberedKey(8))), 5u);
  EXPECT_EQ(*store_->DeleteRange(Range::From(NumberedKey(100)), 50), 50u);
  EXPECT_EQ(*store_->Get(NumberedKey(149)), std::nullopt);
  EXPECT_TRUE(store_->Get(NumberedKey(150))->has_value());
  EXPECT_EQ(*store_->Count(Range::All()), kMany - 50u);
}

// Goal: the limit is the whole store's; over it, what stores is refused and deletes work.
// Method: two keyspaces fill it, a third finds no room in it for more than what an engine may have
// kept back. One that has to make a delete at the limit, or to begin, may exceed it a little.
TEST_P(StoreTest, TheMemoryLimitIsShared) {
  constexpr uint64_t kLimit = 16 << 20;
  constexpr uint64_t kExcessMax = 1 << 20;
  const auto store = OpenStore(GetParam(), kLimit);
  const std::string value(10'000, 'v');
  Status status;
  int i = 0;
  for (; status.ok() && i < 10'000; ++i) {
    status = store->Put(NumberedKey(i), value, static_cast<uint32_t>(i % 2));
  }
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.detail(), kLimit);
  EXPECT_EQ(store->Put("x", std::string(kExcessMax, 'v'), 2).code(), Code::kOutOfMemory);
  EXPECT_TRUE(*store->Delete(NumberedKey(0), 0));
  const StoreStatistics statistics = store->Statistics();
  EXPECT_EQ(statistics.memory_bytes_max, kLimit);
  EXPECT_LE(statistics.memory_bytes, kLimit + kExcessMax);
  uint64_t items = 0;
  for (const auto& keyspace : statistics.keyspaces) items += keyspace.items;
  EXPECT_EQ(items, static_cast<uint64_t>(i) - 2);
}

// Goal: an engine's own statistics reach the library's user, under names that a program can use:
// each once, in snake_case, the same ones for every keyspace.
TEST_P(StoreTest, StatisticsHaveTheEnginesDetails) {
  EXPECT_TRUE(store_->Put("a", "1", 0).ok());
  EXPECT_TRUE(store_->Put("b", "2", 3).ok());
  const StoreStatistics statistics = store_->Statistics();
  ASSERT_EQ(statistics.keyspaces.size(), 2u);
  std::vector<std::map<std::string, uint64_t>> details(2);
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& [name, value] : statistics.keyspaces[i].details) {
      EXPECT_TRUE(details[i].emplace(name, value).second) << name;
      EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    }
  }
  EXPECT_TRUE(std::ranges::equal(details[0], details[1], {},
                                 &std::pair<const std::string, uint64_t>::first,
                                 &std::pair<const std::string, uint64_t>::first));
  if (GetParam() != "btree") return;
  EXPECT_EQ(details[0].at("leaves"), 1u);
  EXPECT_EQ(details[1].at("items"), 1u);
}

// The engines of this process that take pairs of any size; hashleaf_store_test.cc has the other
// one.
std::vector<std::string> EnginesOfAnyPairs() {
  std::vector<std::string> names = EngineNames();
  std::erase_if(names, [](const std::string& name) { return FindEngine(name)->external; });
  std::erase(names, "hashleaf");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreTest, testing::ValuesIn(EnginesOfAnyPairs()),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace skep

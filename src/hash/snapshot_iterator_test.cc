#include "hash/snapshot_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "hash/hash_engine.h"
#include "hash/walk_test.h"

namespace skep::hash {
namespace {

constexpr uint64_t kStartMs = 1'000'000;

// An engine and the pairs that it must hold. Nothing else runs.
class Checked {
 public:
  struct Value {
    std::string bytes;
    uint64_t deadline_ms = 0;
    friend bool operator==(const Value&, const Value&) = default;
  };
  using Model = std::map<std::string, Value>;

  Checked() : engine_(HashEngine::Make({.budget = &budget_}, {.partitions = 4, .table = {}})) {}

  void Put(Batch& batch, const std::string& key, const std::string& value, uint64_t deadline_ms) {
    batch.Add({.op = Op::kPut,
               .key = batch.scratch().Copy(key),
               .value = batch.scratch().Copy(value),
               .other = {},
               .deadline_ms = deadline_ms});
    model_[key] = {value, deadline_ms};
  }
  void Delete(Batch& batch, const std::string& key) {
    batch.Delete(batch.scratch().Copy(key));
    model_.erase(key);
  }
  void Expire(Batch& batch, const std::string& key, uint64_t deadline_ms) {
    batch.Expire(batch.scratch().Copy(key), deadline_ms);
    const auto at = model_.find(key);
    if (at != model_.end()) at->second.deadline_ms = deadline_ms;
  }
  void DeleteAll(Batch& batch) {
    batch.DeleteAll();
    model_.clear();
  }
  void Run(Batch& batch) {
    batch.set_now_ms(now_ms_);
    engine_->Execute(batch);
    ASSERT_TRUE(batch.applied());
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      ASSERT_NE(batch.outcome(slot).verdict, Verdict::kRefused)
          << batch.outcome(slot).status.ToString();
    }
  }
  void Pass(uint64_t ms) {
    now_ms_ += ms;
    std::erase_if(model_, [&](const auto& pair) {
      return pair.second.deadline_ms != 0 && pair.second.deadline_ms <= now_ms_;
    });
    while (engine_->Maintain(now_ms_)) {
    }
  }

  std::unique_ptr<PairIterator> Open() {
    auto iterator = engine_->OpenPairIterator(now_ms_);
    EXPECT_TRUE(iterator.has_value());
    return iterator ? std::move(*iterator) : nullptr;
  }

  HashEngine& engine() { return *engine_; }
  MemoryBudget& budget() { return budget_; }
  const Model& model() const { return model_; }
  uint64_t now_ms() const { return now_ms_; }
  // Returns what is charged beside what the engine says it holds.
  uint64_t extra_bytes() const { return budget_.used() - engine_->Statistics().bytes; }

 private:
  MemoryBudget budget_;
  std::unique_ptr<HashEngine> engine_;
  Model model_;
  uint64_t now_ms_ = kStartMs;
};

// Collects all pairs that the iterator gives; each step is followed by between().
template <typename Between>
Checked::Model Collect(PairIterator& iterator, Between between) {
  Checked::Model pairs;
  for (;;) {
    const auto next = iterator.Next();
    EXPECT_TRUE(next.has_value());
    if (!next || next->empty()) return pairs;
    for (const Pair& pair : *next) {
      const Checked::Value value = {std::string(pair.value), pair.deadline_ms};
      EXPECT_TRUE(pairs.emplace(pair.key, value).second) << "twice: " << pair.key;
    }
    between();
    if (testing::Test::HasFailure()) return pairs;
  }
}

void ExpectSame(const Checked::Model& seen, const Checked::Model& wanted) {
  for (const auto& [key, value] : wanted) {
    const auto at = seen.find(key);
    ASSERT_NE(at, seen.end()) << key << " is missing";
    ASSERT_EQ(at->second.bytes, value.bytes) << key;
    ASSERT_EQ(at->second.deadline_ms, value.deadline_ms) << key;
  }
  for (const auto& [key, value] : seen) ASSERT_TRUE(wanted.contains(key)) << key << " is too much";
}

class RandomWrites {
 public:
  RandomWrites(Checked& checked, uint64_t seed) : checked_(checked), rng_(seed) {
    alike_ = KeysOfOneHash(200);
  }

  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  // Runs a batch of `operations` operations over `keys` keys; `erases` of ten of them delete.
  void Run(size_t operations, uint64_t keys, uint64_t erases) {
    Batch batch(Below(2) == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
    for (size_t i = 0; i < operations; ++i) {
      const std::string key = Below(30) == 0 ? alike_[Below(alike_.size())] : Key(Below(keys));
      if (Below(10) < erases) {
        checked_.Delete(batch, key);
      } else if (Below(12) == 0) {
        checked_.Expire(batch, key, Deadline());
      } else {
        checked_.Put(batch, key, Value(), Below(10) == 0 ? Deadline() : 0);
      }
    }
    checked_.Run(batch);
  }
  // Deletes everything, by either kind of batch.
  void DeleteAll() {
    Batch batch(Below(2) == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
    checked_.DeleteAll(batch);
    checked_.Run(batch);
  }

 private:
  static std::string Key(uint64_t i) { return std::to_string(i) + "key"; }
  std::string Value() {
    constexpr size_t kMost[] = {1, 8, 20, 40, 130, 600, 3000};
    return std::string(Below(kMost[Below(Below(20) == 0 ? 7 : 4)]),
                       static_cast<char>('a' + Below(26)));
  }
  uint64_t Deadline() { return checked_.now_ms() + 1 + Below(3000); }

  Checked& checked_;
  std::mt19937_64 rng_;
  std::vector<std::string> alike_;
};

// Goal: a chain that was merged of walked, saved and other positions is saved as far as it is
// neither walked nor saved.
// Method: one table. For each number of chains: the iterator takes so many; then keys are erased,
// the walked ones and some others, so that the table shrinks to few buckets; the rest is replaced,
// or everything erased, and the iterator goes on to its end.
TEST(BeforeImages, ChainsThatHaveMerged) {
  enum class Then { kReplace, kEraseAll, kClear };
  constexpr int kKeys = 300;
  std::mt19937_64 rng(7);
  size_t straddled = 0;
  for (const Then then : {Then::kReplace, Then::kEraseAll, Then::kClear}) {
    for (int taken = 0; taken < 80; ++taken) {
      SCOPED_TRACE(testing::Message() << taken << " taken, then " << static_cast<int>(then));
      MemoryBudget budget;
      Arena arena({.budget = &budget, .pages = Pages::kPlain});
      Table table(arena, budget, {});
      ASSERT_TRUE(table.Reserve());
      SnapshotIteratorState state(budget);
      BeforeImages images(state);
      const auto store = [&](int i, std::string_view value) {
        const std::string key = std::to_string(i) + "key";
        ASSERT_TRUE(table.Store(KeyOf(key), value, 0, Arena::Limit::kObey));
      };
      for (int i = 0; i < kKeys; ++i) store(i, "old");
      table.set_before_images(&images);
      size_t pairs = 0;
      std::map<std::string, std::string> seen;
      const auto take = [&] {
        images.Take(table, [&](const Pair& pair) {
          ++pairs;
          seen.emplace(pair.key, pair.value);
        });
      };
      for (int i = 0; i < taken && images.done() < kPositionEnd; ++i) take();
      const Position done = images.done();
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = std::to_string(i) + "key";
        const bool is_walked = PositionOf(HashOf(key)) < done;
        if (is_walked ? rng() % 10 != 0 : rng() % 4 != 0) table.Erase(KeyOf(key));
      }
      if (done < kPositionEnd && table.ChainAt(done).begin < done) ++straddled;
      if (then == Then::kEraseAll) table.EraseAll();
      if (then == Then::kClear) table.Clear();
      for (int i = 0; i < 2 * kKeys; ++i) store(i, "new");
      while (images.done() < kPositionEnd) take();
      ASSERT_EQ(pairs, size_t{kKeys});
      ASSERT_EQ(seen.size(), size_t{kKeys});
      for (const auto& [key, value] : seen) ASSERT_EQ(value, "old") << key;
      table.set_before_images(nullptr);
    }
  }
  EXPECT_GT(straddled, 20u);
}

// Goal: an iterator gives exactly the pairs of its opening, each once, whatever is written
// meanwhile, and leaves no memory behind.
// Method: a model; between the steps batches of both kinds store, delete, give deadlines and let
// them pass, over keys of which 200 have one position. In the middle of an iteration the table
// grows from some thousand pairs to 10^5, shrinks, or loses everything.
TEST(SnapshotIterator, GivesThePairsOfItsOpening) {
  struct Round {
    size_t fill;            // operations before the iterator
    uint64_t keys;          // the number of keys the operations choose from
    size_t operations;      // after each step of the iterator
    uint64_t erases;        // of ten operations
    uint64_t clears_after;  // steps of the iterator
  };
  constexpr Round kRounds[] = {
      {.fill = 100, .keys = 100, .operations = 500, .erases = 3, .clears_after = 0},
      {.fill = 15'000, .keys = 150'000, .operations = 15'000, .erases = 0, .clears_after = 0},
      {.fill = 0, .keys = 150'000, .operations = 4000, .erases = 9, .clears_after = 0},
      {.fill = 50'000, .keys = 100'000, .operations = 1000, .erases = 3, .clears_after = 5},
      {.fill = 5000, .keys = 5000, .operations = 1000, .erases = 5, .clears_after = 2},
  };
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Checked checked;
  RandomWrites writes(checked, seed);
  std::vector<size_t> sizes;  // after each round
  for (const Round& round : kRounds) {
    SCOPED_TRACE(testing::Message() << "round " << sizes.size());
    writes.Run(round.fill, round.keys, 0);
    const auto iterator = checked.Open();
    const Checked::Model opened = checked.model();
    uint64_t steps = 0;
    uint64_t extra_bytes = 0;
    const Checked::Model seen = Collect(*iterator, [&] {
      if (++steps == round.clears_after) writes.DeleteAll();
      writes.Run(round.operations, round.keys, round.erases);
      if (writes.Below(4) == 0) checked.Pass(writes.Below(500));
      extra_bytes = std::max(extra_bytes, checked.extra_bytes());
    });
    if (testing::Test::HasFailure()) return;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(seen, opened));
    ASSERT_STREQ(checked.engine().Verify(), nullptr);
    EXPECT_EQ(checked.extra_bytes(), 0u);
    if (opened.size() > 10'000) {
      EXPECT_GT(extra_bytes, 100'000u);
    }
    sizes.push_back(checked.model().size());
  }
  EXPECT_GT(sizes[1], 100'000u);
  EXPECT_LT(sizes[2], 50'000u);
}

// Goal: saved pairs are freed as well when the iterator ends early.
TEST(SnapshotIterator, MayEndEarly) {
  Checked checked;
  RandomWrites writes(checked, 1);
  writes.Run(5000, 5000, 0);
  {
    const auto iterator = checked.Open();
    ASSERT_TRUE(iterator->Next().has_value());
    writes.Run(5000, 5000, 5);
    EXPECT_GT(checked.extra_bytes(), 10'000u);
  }
  EXPECT_EQ(checked.extra_bytes(), 0u);
  writes.Run(5000, 5000, 5);
  EXPECT_EQ(checked.extra_bytes(), 0u);
}

// Goal: pairs that had expired at the opening and pairs that expire later are given with their
// deadline, also if they are reclaimed meanwhile.
TEST(SnapshotIterator, NoTimePassesInIt) {
  Checked checked;
  Batch batch;
  checked.Put(batch, "soon", "1", kStartMs + 10);
  checked.Put(batch, "later", "2", kStartMs + 100);
  checked.Put(batch, "never", "3", 0);
  checked.Run(batch);
  const Checked::Model wanted = checked.model();
  // The expired pair is not reclaimed yet.
  Batch look;
  look.set_now_ms(kStartMs + 20);
  look.Get("soon");
  checked.engine().Execute(look);
  EXPECT_EQ(look.outcome(0).verdict, Verdict::kAbsent);
  const auto iterator = checked.engine().OpenPairIterator(kStartMs + 20);
  ASSERT_TRUE(iterator.has_value());
  checked.Pass(1000);
  ASSERT_EQ(checked.engine().Statistics().items, 1u);
  EXPECT_EQ(Collect(**iterator, [] {}), wanted);
}

TEST(SnapshotIterator, OneAtATime) {
  Checked checked;
  Batch batch;
  checked.Put(batch, "a", "1", 0);
  checked.Run(batch);
  auto first = checked.Open();
  const auto second = checked.engine().OpenPairIterator(kStartMs);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  // The refused opening has not ended the first iterator.
  Batch change;
  checked.Put(change, "a", "2", 0);
  checked.Run(change);
  const Checked::Model wanted = {{"a", {"1", 0}}};
  EXPECT_EQ(Collect(*first, [] {}), wanted);
  EXPECT_FALSE(checked.engine().OpenPairIterator(kStartMs).has_value());
  first.reset();
  EXPECT_EQ(Collect(*checked.Open(), [] {}).at("a").bytes, "2");
}

// Goal: without memory for what writers change, the iterator ends with an error and frees its
// memory, and no writer is refused.
// Method: values are replaced by others of their size, which takes no memory, until the iterator's
// memory is used up.
TEST(SnapshotIterator, EndsWhenThereIsNoMemoryForIt) {
  Checked checked;
  constexpr int kKeys = 5000;
  constexpr uint64_t kRoom = 300'000;
  const auto write_all = [&](char value) {
    for (int i = 0; i < kKeys; i += 100) {
      Batch batch;
      for (int j = i; j < i + 100; ++j) {
        checked.Put(batch, std::to_string(j) + "key", std::string(200, value), 0);
      }
      checked.Run(batch);
    }
  };
  write_all('a');
  const auto iterator = checked.Open();
  ASSERT_TRUE(iterator->Next().has_value());
  checked.budget().set_limit(checked.budget().used() + kRoom);
  write_all('b');
  EXPECT_LE(checked.budget().used(), checked.budget().limit());
  for (int i = 0; i < 2; ++i) {
    const auto next = iterator->Next();
    ASSERT_FALSE(next.has_value());
    EXPECT_EQ(next.error().code(), Code::kSnapshotTooOld);
  }
  // The partitions that were written have freed their saved pairs.
  write_all('c');
  EXPECT_EQ(checked.extra_bytes(), 0u);
  ASSERT_STREQ(checked.engine().Verify(), nullptr);
}

// Goal: writes come before an iterator: upkeep gives up the saved pairs when memory is short.
TEST(SnapshotIterator, GivesWayToThoseWhoStore) {
  Checked checked;
  RandomWrites writes(checked, 2);
  writes.Run(20'000, 20'000, 0);
  const auto iterator = checked.Open();
  writes.Run(20'000, 20'000, 9);
  ASSERT_GT(checked.extra_bytes(), 100'000u);
  checked.budget().set_limit(checked.budget().used() - 1);
  Batch store;
  store.Put("new", "1");
  checked.engine().Execute(store);
  EXPECT_EQ(store.outcome(0).status.code(), Code::kOutOfMemory);
  while (checked.engine().Maintain(checked.now_ms())) {
  }
  EXPECT_EQ(checked.extra_bytes(), 0u);
  checked.engine().Execute(store);
  EXPECT_EQ(store.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(iterator->Next().error().code(), Code::kSnapshotTooOld);
}

// Goal: a step copies a bounded number of bytes, also where one chain now has the pairs of many.
// Method: everything is deleted, so that each table is one empty chain and all its pairs are saved.
TEST(SnapshotIterator, StepsAreBounded) {
  Checked checked;
  constexpr int kKeys = 30'000;
  for (int i = 0; i < kKeys; i += 500) {
    Batch batch;
    for (int j = i; j < i + 500; ++j) checked.Put(batch, std::to_string(j) + "key", "v", 0);
    checked.Run(batch);
  }
  const auto iterator = checked.Open();
  Batch batch;
  checked.DeleteAll(batch);
  checked.Run(batch);
  size_t pairs = 0;
  for (;;) {
    const auto next = iterator->Next();
    ASSERT_TRUE(next.has_value());
    if (next->empty()) break;
    ASSERT_LE(next->size(), 1200u);
    pairs += next->size();
  }
  EXPECT_EQ(pairs, size_t{kKeys});
}

}  // namespace
}  // namespace skep::hash

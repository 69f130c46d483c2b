#include "hash/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace skep::hash {
namespace {

constexpr auto kObey = Arena::Limit::kObey;

// A table and the pairs that it must hold.
class Checked {
 public:
  struct Value {
    std::string bytes;
    uint64_t deadline_ms = 0;
  };

  explicit Checked(const TableOptions& options = {})
      : arena_({.budget = &budget_, .pages = Pages::kPlain}), table_(arena_, budget_, options) {
    EXPECT_TRUE(table_.Reserve());
  }

  // Stores a pair, in one of two ways if the key is absent.
  bool Store(const std::string& key, const std::string& value, uint64_t deadline_ms = 0) {
    if (deadline_ms == 0 && !model_.contains(key) && ++added_ % 2 == 0) {
      if (table_.AddAbsent(KeyOf(key), value)) {
        if (added_ % 10 == 0) table_.Grow();
        model_[key] = {value, 0};
        return true;
      }
    }
    if (!table_.Store(KeyOf(key), value, deadline_ms, kObey)) return false;
    model_[key] = {value, deadline_ms};
    return true;
  }
  void SetDeadline(const std::string& key, uint64_t deadline_ms) {
    ASSERT_TRUE(table_.SetDeadline(KeyOf(key), deadline_ms, kObey));
    if (const auto at = model_.find(key); at != model_.end()) at->second.deadline_ms = deadline_ms;
  }
  void Erase(const std::string& key) {
    ASSERT_EQ(table_.Erase(KeyOf(key)), model_.erase(key) == 1) << key;
  }
  void EraseDue(uint64_t due_ms) {
    size_t erased = 0;
    for (const auto* first = table_.deadlines().First();
         first != nullptr && first->deadline_ms <= due_ms; first = table_.deadlines().First()) {
      const size_t count = table_.EraseDue(first->hash, due_ms);
      ASSERT_GT(count, 0u);
      erased += count;
    }
    ASSERT_EQ(erased, std::erase_if(model_, [&](const auto& pair) {
                return pair.second.deadline_ms != 0 && pair.second.deadline_ms <= due_ms;
              }));
  }
  void Clear() {
    table_.Clear();
    model_.clear();
  }

  void EraseAll() {
    table_.EraseAll();
    model_.clear();
  }

  void ExpectKey(const std::string& key) {
    const Table::Place place = table_.Find(KeyOf(key));
    const auto at = model_.find(key);
    ASSERT_EQ(static_cast<bool>(place), at != model_.end()) << key;
    if (!place) return;
    const Pair pair = table_.Read(place);
    ASSERT_EQ(pair.key, key);
    ASSERT_EQ(pair.value, at->second.bytes);
    ASSERT_EQ(pair.deadline_ms, at->second.deadline_ms);
  }
  // Checks that every key is found, each once.
  void ExpectAll() {
    ASSERT_STREQ(table_.Verify(), nullptr);
    ASSERT_EQ(table_.items(), model_.size());
    size_t seen = 0;
    for (uint64_t i = 0; i < table_.bucket_count(); ++i) {
      table_.ForEachIn(i, [&](const Pair& pair) {
        ++seen;
        const auto at = model_.find(std::string(pair.key));
        ASSERT_NE(at, model_.end());
        ASSERT_EQ(at->second.bytes, pair.value);
        ASSERT_EQ(at->second.deadline_ms, pair.deadline_ms);
      });
    }
    ASSERT_EQ(seen, model_.size());
  }

  Table& table() { return table_; }
  Arena& arena() { return arena_; }
  MemoryBudget& budget() { return budget_; }
  const auto& model() const { return model_; }

 private:
  MemoryBudget budget_;
  Arena arena_;
  Table table_;
  std::unordered_map<std::string, Value> model_;
  uint64_t added_ = 0;  // number of keys that Store() found absent
};

// Returns values of all sizes, so that pairs lie in all places where they may.
std::string RandomValue(std::mt19937_64& rng) {
  constexpr size_t kMost[] = {1, 8, 20, 40, 60, 130, 300, 600, 5000, 60'000};
  return std::string(rng() % kMost[rng() % (rng() % 20 == 0 ? 10 : 8)],
                     static_cast<char>('a' + rng() % 26));
}

std::string ShortKey(uint64_t i) { return std::to_string(i).append("k"); }

std::string KeyNumber(uint64_t i) {
  std::string key = ShortKey(i);
  if (i % 7 == 0) key += std::string(100 + i % 300, 'x');
  return key;
}

// Goal: a table agrees with a map, whatever is stored and erased, as it grows and shrinks.
// Method: phases that mostly store, or mostly erase, over 3000 keys of all sizes, with deadlines on
// one in eight; every step checks its key, every phase everything. Several inline limits and fills.
TEST(Table, AgreesWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (const TableOptions& options :
       {TableOptions{}, TableOptions{.inline_bytes_max = 50, .fill_slots = 9},
        TableOptions{.inline_bytes_max = 0, .fill_slots = 20}}) {
    Checked checked(options);
    uint64_t most_buckets = 0;
    for (int phase = 0; phase < 12; ++phase) {
      const uint64_t erases = phase % 3 == 2 ? 9 : 2;  // of ten
      for (int step = 0; step < 3000; ++step) {
        const std::string key = KeyNumber(rng() % 3000);
        if (rng() % 10 < erases) {
          checked.Erase(key);
        } else if (rng() % 10 == 0) {
          checked.SetDeadline(key, rng() % 2 == 0 ? 0 : 1 + rng() % 1000);
        } else {
          ASSERT_TRUE(checked.Store(key, RandomValue(rng), rng() % 8 == 0 ? 1 + rng() % 1000 : 0));
        }
        checked.ExpectKey(key);
        if (testing::Test::HasFatalFailure()) return;
      }
      most_buckets = std::max(most_buckets, checked.table().bucket_count());
      if (phase % 4 == 3) checked.EraseDue(rng() % 1000);
      if (phase % 5 == 4) checked.table().Trim();
      if (phase % 6 == 1) checked.Clear();
      checked.ExpectAll();
      if (testing::Test::HasFatalFailure()) return;
    }
    for (const auto& [key, value] : std::unordered_map(checked.model())) checked.Erase(key);
    checked.ExpectAll();
    EXPECT_GT(most_buckets, 50u);
    // Each delete gives up one bucket at most, so that a few may be left.
    EXPECT_LT(checked.table().bucket_count(), 16u);
    checked.table().Trim();
    EXPECT_EQ(checked.arena().Statistics().allocated_bytes, 0u);
  }
}

// Returns the path of a key's search, bucket after bucket, to the first record that may be the
// key's.
std::vector<std::pair<SlabAddress, bool>> PathOf(const Table& table, const Key& key) {
  std::vector<std::pair<SlabAddress, bool>> path;
  const Bucket* bucket = &table.FirstBucket(key);
  for (;;) {
    const Table::Lead lead = table.LeadOf(*bucket, key);
    path.emplace_back(lead.at(), lead.is_record());
    if (lead.is_record() || lead.at() == 0) return path;
    bucket = &table.ChainedBucket(lead.at());
  }
}

// Goal: the path of a search stays valid while moves() is the same; and moves() often is.
// Method: each kind of change in turn, at random, on a table of long chains that grows and shrinks;
// the paths of all keys are compared before and after.
TEST(Table, PathsStayWhileNothingMoves) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  constexpr uint64_t kKeys = 300;
  Checked checked({.inline_bytes_max = 20, .fill_slots = 40});
  Table& table = checked.table();
  int quiet_changes = 0;
  for (int step = 0; step < 4000; ++step) {
    std::vector<std::vector<std::pair<SlabAddress, bool>>> paths;
    for (uint64_t i = 0; i < kKeys; ++i) paths.push_back(PathOf(table, KeyOf(ShortKey(i))));
    const uint64_t moves = table.moves();
    const bool shrinks = step / 500 % 2 == 1;
    const std::string key = ShortKey(rng() % kKeys);
    const uint64_t what = rng() % 1000;
    if (what == 0) {
      checked.Clear();
    } else if (what == 1) {
      checked.EraseAll();
    } else if (what < 20) {
      checked.EraseDue(rng() % 1000);
    } else if (what < 40) {
      table.Trim();
    } else if (what < 100) {
      checked.SetDeadline(key, rng() % 2 == 0 ? 0 : 1 + rng() % 1000);
    } else if (what < (shrinks ? 600 : 300)) {
      checked.Erase(key);
    } else {
      ASSERT_TRUE(checked.Store(key, RandomValue(rng), rng() % 8 == 0 ? 1 + rng() % 1000 : 0));
    }
    if (testing::Test::HasFatalFailure()) return;
    if (table.moves() != moves) continue;
    ++quiet_changes;
    for (uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_EQ(PathOf(table, KeyOf(ShortKey(i))), paths[i]) << ShortKey(i) << " at " << step;
    }
  }
  EXPECT_GT(quiet_changes, 100);
  checked.ExpectAll();
}

// Goal: AddAbsent keeps the leads of other keys, also where it makes a chain longer: a search that
// goes on from one finds what a whole search does.
// Method: one index bucket, which never grows, gets pairs of all kinds; after each, the leads that
// all keys had before it are followed.
TEST(Table, LeadsStayWhileAbsentKeysAreAdded) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  constexpr uint64_t kKeys = 120;
  Checked checked({.inline_bytes_max = 30, .fill_slots = 1000});
  Table& table = checked.table();
  uint32_t followed = 0;
  for (uint64_t next = 0; next < kKeys; ++next) {
    std::vector<Table::Lead> leads;
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string name = ShortKey(i);
      const Key key = KeyOf(name);
      leads.push_back(table.LeadOf(table.FirstBucket(key), key));
    }
    ASSERT_TRUE(table.AddAbsent(KeyOf(ShortKey(next)), RandomValue(rng)));
    ASSERT_STREQ(table.Verify(), nullptr);
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (i == next) continue;
      const std::string name = ShortKey(i);
      const Key key = KeyOf(name);
      const Table::Place place = table.Find(key);
      ASSERT_EQ(static_cast<bool>(place), i < next) << name;
      if (leads[i].is_record() || leads[i].at() == 0) {
        const Table::Lead lead = table.LeadOf(table.FirstBucket(key), key);
        ASSERT_TRUE(!leads[i].is_record() || lead.at() == leads[i].at()) << name;
        ASSERT_TRUE(!place || leads[i].is_record() || place.previous == nullptr) << name;
      } else if (!place || place.previous != nullptr) {
        const Table::Place on = table.FindOn(key, leads[i]);
        ASSERT_EQ(on.bucket, place.bucket) << name;
        ASSERT_EQ(on.previous, place.previous) << name;
        ASSERT_EQ(on.item.slot, place.item.slot) << name;
        ++followed;
      }
    }
  }
  EXPECT_GT(followed, kKeys);
  EXPECT_GT(table.chained_buckets(), 10u);
}

// Returns keys whose hashes differ in the partition's bits alone: one bucket, one secondary hash.
std::vector<std::string> CollidingKeys(size_t count, uint32_t index_bits) {
  std::vector<std::string> keys;
  const uint64_t index = IndexOf(HashOf("key")) & LowBits(index_bits);
  for (uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = "collides" + std::to_string(i);
    const uint64_t hash = HashOf(key);
    if (SecondaryOf(hash) == 77 && (IndexOf(hash) & LowBits(index_bits)) == index) {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

// Goal: keys of one bucket and one secondary hash are told apart: each is found with its own value,
// absent ones are not found, and erasing one leaves the others.
// Method: 150 of them, in chains of pointers that all match, stored, replaced by values of other
// sizes and erased in random orders. A table that trusted the secondary hash would lose most.
TEST(Table, KeysThatCollideAreToldApart) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  std::vector<std::string> keys = CollidingKeys(150, 5);
  Checked checked({.inline_bytes_max = 0, .fill_slots = 6});
  for (int round = 0; round < 4; ++round) {
    std::ranges::shuffle(keys, rng);
    for (const std::string& key : keys) ASSERT_TRUE(checked.Store(key, key + RandomValue(rng)));
    checked.ExpectAll();
    EXPECT_GT(checked.table().chained_buckets(), 5u);
    std::ranges::shuffle(keys, rng);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % 4 == 3 && round < 3) continue;
      checked.Erase(keys[i]);
      for (const std::string& key : keys) checked.ExpectKey(key);
      if (testing::Test::HasFatalFailure()) return;
    }
    checked.ExpectAll();
  }
  EXPECT_EQ(checked.table().chained_buckets(), 0u);
}

// Goal: a refused allocation changes nothing, whichever one it is.
// Method: every allocation of a random sequence is refused once, and the operation then done again.
TEST(Table, ARefusedAllocationChangesNothing) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Checked checked;
  int refused = 0;
  for (int step = 0; step < 1500; ++step) {
    const std::string key = KeyNumber(rng() % 200);
    const std::string value = RandomValue(rng);
    const uint64_t deadline_ms = rng() % 5 == 0 ? 1 + rng() % 1000 : 0;
    checked.arena().FailAt(1);
    if (!checked.Store(key, value, deadline_ms)) {
      ++refused;
      checked.ExpectKey(key);
      checked.arena().FailAt(0);
      ASSERT_TRUE(checked.Store(key, value, deadline_ms));
    }
    checked.arena().FailAt(0);
    if (step % 3 == 0) checked.Erase(KeyNumber(rng() % 200));
    if (step % 100 == 0) checked.table().Trim();
    if (step % 10 == 0) checked.ExpectAll();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 10);
}

// Goal: without memory for the index, chains grow instead, and nothing is lost; once there is
// memory, the index catches up.
TEST(Table, ChainsGrowWhereTheIndexCannot) {
  Checked checked;
  int stored = 0;
  // There is room for a span of slabs, and not for the index.
  checked.budget().set_limit(checked.budget().used() + Arena::kSpanBytes + 4096);
  while (checked.Store(ShortKey(stored), "v")) ++stored;
  EXPECT_GT(checked.table().chained_buckets(), 100u);
  checked.ExpectAll();
  checked.budget().set_limit(0);
  for (int i = stored; i < 3 * stored; ++i) ASSERT_TRUE(checked.Store(ShortKey(i), "v"));
  EXPECT_LT(checked.table().chained_buckets(), checked.table().bucket_count() / 4);
  checked.ExpectAll();
}

// Goal: prepared pairs are not found until they are installed, and dropping them gives all memory
// back; installing needs no memory.
// Method: the arena refuses everything between.
TEST(Table, PreparedPairsAreInstalledOrDropped) {
  Checked checked;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(checked.Store(KeyNumber(i), "old"));
  for (const bool installs : {false, true}) {
    std::vector<std::string> keys;
    for (int i = 50; i < 150; ++i) keys.push_back(KeyNumber(i));
    std::vector<Table::Prepared> prepared(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string value(i * 13 % 700, 'n');
      ASSERT_TRUE(checked.table().Prepare(KeyOf(keys[i]), value, 0, kObey, &prepared[i]));
    }
    ASSERT_EQ(checked.table().items(), 100u);
    checked.budget().set_limit(1);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (installs) {
        checked.table().Install(KeyOf(keys[i]), prepared[i]);
      } else {
        checked.table().Drop(prepared[i]);
      }
    }
    checked.budget().set_limit(0);
    ASSERT_STREQ(checked.table().Verify(), nullptr);
    ASSERT_EQ(checked.table().items(), installs ? 150u : 100u);
  }
  for (int i = 0; i < 150; ++i) {
    const Table::Place place = checked.table().Find(KeyOf(KeyNumber(i)));
    ASSERT_TRUE(place);
    const std::string value(static_cast<size_t>(i - 50) * 13 % 700, 'n');
    ASSERT_EQ(checked.table().Read(place).value, i < 50 ? "old" : value);
  }
}

// Goal: the counted lines are those of the pair's place: its chain, and its record.
// Method: tables of one pair; then a chain of records.
TEST(Table, CountsTheLinesOfAPair) {
  struct Case {
    size_t value_bytes;
    uint32_t get, put;
  };
  // The pair is the key and a value of 3 bytes: an inline pair; records of 32, 64, 65 and 512
  // bytes; one with a body.
  for (const Case& c : {Case{5, 1, 2}, Case{27, 2, 3}, Case{59, 2, 3}, Case{60, 3, 5},
                        Case{507, 9, 17}, Case{1021, 18, 35}}) {
    Checked checked;
    ASSERT_TRUE(checked.Store("key", std::string(c.value_bytes, 'v')));
    const Table::Lines lines = checked.table().LinesOf(KeyOf("key"));
    EXPECT_EQ(lines.get, c.get) << c.value_bytes;
    EXPECT_EQ(lines.put, c.put) << c.value_bytes;
    EXPECT_EQ(checked.table().LinesOf(KeyOf("absent")).put, 0u);
  }
  // One chain of two buckets; every record before a key's own has its secondary hash too.
  Checked checked({.inline_bytes_max = 0, .fill_slots = 1000});
  const std::vector<std::string> keys = CollidingKeys(15, 5);
  for (const std::string& key : keys) ASSERT_TRUE(checked.Store(key, "v"));
  ASSERT_EQ(checked.table().chained_buckets(), 1u);
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const Table::Lines lines = checked.table().LinesOf(KeyOf(keys[i]));
    const uint32_t buckets = i < Bucket::kSlots ? 1 : 2;
    EXPECT_EQ(lines.get, buckets + i + 1);
    EXPECT_EQ(lines.put, buckets + i + 2);
  }
}

// Goal: a growing table does a bounded share of the growth at each insert.
// Method: however many keys there are, an insert adds two buckets at most.
TEST(Table, GrowsInSmallSteps) {
  Checked checked;
  uint64_t buckets = checked.table().bucket_count();
  for (uint64_t i = 0; i < 20'000; ++i) {
    const std::string key = ShortKey(i);
    ASSERT_TRUE(checked.table().Store(KeyOf(key), "value", 0, kObey));
    ASSERT_LE(checked.table().bucket_count(), buckets + 2);
    buckets = checked.table().bucket_count();
  }
  EXPECT_GT(buckets, 5000u);
  EXPECT_LT(checked.table().chained_buckets(), buckets / 4);
  ASSERT_STREQ(checked.table().Verify(), nullptr);
  checked.Clear();
  EXPECT_EQ(checked.table().bucket_count(), 1u);
  checked.ExpectAll();
  ASSERT_TRUE(checked.Store("again", "1"));
  checked.ExpectAll();
}

// Goal: pairs that are added together let the table grow once for all of them, by two buckets for
// each at most; a table that is far behind takes no more.
// Method: lots of pairs, with and without a record; the table grows only when it is told to, and is
// then as large as it has to be.
TEST(Table, GrowsOnceForAllThatWereAdded) {
  for (const size_t value_bytes : {5, 100}) {
    Checked checked;
    Table& table = checked.table();
    const std::string value(value_bytes, 'v');
    std::vector<std::string> keys;
    uint64_t number = 0;
    for (int lot = 0; lot < 50; ++lot) {
      const uint64_t buckets = table.bucket_count();
      const uint64_t moves = table.moves();
      uint64_t added = 0;
      for (int i = 0; i < 1000; ++i) {
        std::string key = ShortKey(number++);
        if (!table.AddAbsent(KeyOf(key), value)) continue;
        keys.push_back(std::move(key));
        ++added;
      }
      ASSERT_EQ(table.bucket_count(), buckets);
      ASSERT_EQ(table.moves(), moves + added);
      ASSERT_LE(table.items(), 2 * buckets * table.options().fill_slots + 1);
      ASSERT_GT(added, 0u);
      table.Grow();
      ASSERT_LE(table.bucket_count(), buckets + 2 * added);
      const uint64_t grown = table.bucket_count();
      table.Grow();
      ASSERT_EQ(table.bucket_count(), grown);
    }
    EXPECT_GT(keys.size(), 10'000u);
    EXPECT_EQ(table.items(), keys.size());
    ASSERT_STREQ(table.Verify(), nullptr);
    for (const std::string& key : keys) {
      const Table::Place place = table.Find(KeyOf(key));
      ASSERT_TRUE(place) << key;
      ASSERT_EQ(table.Read(place).value, value);
    }
  }
}

}  // namespace
}  // namespace skep::hash

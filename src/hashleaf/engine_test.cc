// Tests the engine with its own sizes of pairs; conformance_test.cc tests what every engine does,
// with padded pairs.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "base/sanitized.h"
#include "hashleaf/hashleaf_engine.h"

namespace skep::hashleaf {
namespace {

struct Case {
  uint32_t key_bytes;
  uint32_t value_bytes;
  ScanBy scan_by;
  SplitAt split_at = SplitAt::kMidpointOrMedian;
};

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  static constexpr const char* kScans[] = {"cost", "probe", "sweep", "run"};
  return std::to_string(info.param.key_bytes) + "_" + std::to_string(info.param.value_bytes) + "_" +
         kScans[static_cast<size_t>(info.param.scan_by)] +
         (info.param.split_at == SplitAt::kMidpoint ? "_midpoint" : "");
}

// Returns one of the engine's statistics.
uint64_t Told(Engine& engine, std::string_view name) {
  uint64_t told = 0;
  engine.Describe(0, [&](std::string_view its_name, uint64_t number) {
    if (its_name == name) told = number;
  });
  return told;
}

class HashleafEngineTest : public testing::TestWithParam<Case> {
 protected:
  using Model = std::map<std::string, std::string>;

  HashleafEngineTest() : rng_(seed_) { std::printf("seed %u\n", seed_); }

  std::unique_ptr<Engine> Make(bool numbers_writes = false, uint32_t threads = 1) {
    EngineOptions options{.budget = &budget_, .numbers_writes = numbers_writes};
    options.index.hashleaf.key_bytes = GetParam().key_bytes;
    options.index.hashleaf.value_bytes = GetParam().value_bytes;
    return HashleafEngine::Make(options, {.leaf_bytes = 4096,
                                          .scan_by = GetParam().scan_by,
                                          .split_at = GetParam().split_at,
                                          .threads = threads});
  }

  // Returns a key that ends in the number's bytes, high ones first, and begins with `begin`.
  std::string Key(uint64_t number, char begin = '\0') const {
    std::string key(GetParam().key_bytes, begin);
    for (size_t i = 0; i < std::min<size_t>(8, key.size()); ++i) {
      key[key.size() - 1 - i] = static_cast<char>(number >> 8 * i);
    }
    return key;
  }
  std::string Value(uint64_t number) const {
    std::string value(GetParam().value_bytes, 'v');
    std::memcpy(value.data(), &number, std::min<size_t>(8, value.size()));
    return value;
  }

  void Put(Engine& engine, Model& model, const std::vector<std::string>& keys) {
    Batch batch;
    for (const std::string& key : keys) {
      model[key] = Value(rng_());
      batch.Put(key, batch.scratch().Copy(model[key]));
    }
    engine.Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone);
    }
  }

  static void ExpectHolds(Engine& engine, const Model& model) {
    ASSERT_STREQ(engine.Verify(), nullptr);
    ASSERT_EQ(engine.Statistics().items, model.size());
    Batch batch;
    batch.Scan(Range::All());
    batch.Scan(Range::All(), {.reverse = true});
    batch.Count(Range::All());
    for (const auto& [key, value] : model) batch.Get(key);
    engine.Execute(batch);
    ASSERT_EQ(batch.outcome(2).integer, static_cast<int64_t>(model.size()));
    const auto same = [](const Item& item, const auto& pair) {
      return item.key == pair.first && item.value == pair.second;
    };
    ASSERT_TRUE(std::ranges::equal(batch.items(0), model, same));
    ASSERT_TRUE(std::equal(model.rbegin(), model.rend(), batch.items(1).begin(),
                           [&](const auto& pair, const Item& item) { return same(item, pair); }));
    uint32_t slot = 3;
    for (const auto& [key, value] : model) ASSERT_EQ(batch.outcome(slot++).value, value);
  }

  MemoryBudget budget_;
  const unsigned seed_ = std::random_device{}();
  std::mt19937_64 rng_;
};

// Goal: keys in any order come out sorted, and leaves split so that they are all found.
// Method: ascending, descending, at random, with one common beginning, the smallest and largest.
TEST_P(HashleafEngineTest, DegenerateKeys) {
  constexpr uint64_t kKeys = Rounds(6000);
  const auto run = [&](const auto& key_of) {
    const auto engine = Make();
    Model model;
    for (uint64_t i = 0; i < kKeys;) {
      std::vector<std::string> keys;
      for (uint64_t end = i + 1 + rng_() % 200; i < std::min(end, kKeys); ++i) {
        keys.push_back(key_of(i));
      }
      Put(*engine, model, keys);
    }
    ExpectHolds(*engine, model);
  };
  run([&](uint64_t i) { return Key(i); });
  run([&](uint64_t i) { return Key(kKeys - i); });
  run([&](uint64_t) { return Key(rng_()); });
  run([&](uint64_t i) { return Key(i * 77 % 65'521, 'x'); });
  run([&](uint64_t i) { return i % 2 == 0 ? Key(i) : Key(~i, '\xff'); });
  // Most keys are near one end of the range, so the midpoint leaves one side nearly empty.
  run([&](uint64_t i) { return i % 50 == 0 ? Key(~i, '\xff') : Key(i); });
}

// Goal: pairs in ascending order fill their leaves.
TEST_P(HashleafEngineTest, AscendingKeysLeaveFullLeaves) {
  const auto engine = Make();
  Model model;
  const uint64_t empty = engine->Statistics().bytes;
  constexpr uint64_t kKeys = 20'000;
  for (uint64_t i = 0; i < kKeys; i += 100) {
    std::vector<std::string> keys;
    for (uint64_t j = i; j < i + 100; ++j) keys.push_back(Key(j));
    Put(*engine, model, keys);
  }
  ExpectHolds(*engine, model);
  EXPECT_LT(Told(*engine, "slots"), kKeys * 3 / 2) << empty;
}

// Goal: leaves whose pairs are erased become one, and the tables of the others become smaller.
TEST_P(HashleafEngineTest, EmptyLeavesAreMerged) {
  const auto engine = Make();
  Model model;
  constexpr uint64_t kKeys = 5000;
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(Key(i * 7919 % kKeys * 1000));
  Put(*engine, model, keys);
  const uint64_t leaves = Told(*engine, "leaves");
  ASSERT_GT(leaves, 5u);
  Batch erase;
  for (uint64_t i = 10; i < kKeys; ++i) {
    erase.Delete(keys[i]);
    model.erase(keys[i]);
  }
  engine->Execute(erase);
  while (engine->Maintain(0)) {
  }
  EXPECT_EQ(Told(*engine, "leaves"), 1u);
  EXPECT_EQ(Told(*engine, "merges"), leaves - 1);
  ExpectHolds(*engine, model);
}

// Goal: batches of everything agree with a map, while leaves split, merge and shrink.
TEST_P(HashleafEngineTest, AgreesWithModel) {
  const auto engine = Make();
  Model model;
  const auto any_key = [&] { return Key(rng_() % 20'000 * (rng_() % 2 == 0 ? 1 : 100'003)); };
  for (int round = 0; round < Rounds(200); ++round) {
    // In some rounds most keys are deleted.
    const uint64_t deletes = round % 20 >= 15 ? 90 : 10;
    Batch batch;
    std::vector<std::string> keys;
    std::vector<std::optional<std::string>> expected;
    std::vector<std::string> values;
    const uint64_t size = 1 + rng_() % 600;
    keys.reserve(size);
    values.reserve(size);
    for (uint64_t i = 0; i < size; ++i) {
      // Some keys occur several times.
      keys.push_back(i > 0 && rng_() % 8 == 0 ? keys[rng_() % i] : any_key());
      const std::string& key = keys.back();
      const auto at = model.find(key);
      expected.push_back(at == model.end() ? std::nullopt : std::optional(at->second));
      const uint64_t lot = rng_() % 100;
      if (lot < deletes) {
        batch.Delete(key);
        model.erase(key);
      } else if (lot < 60) {
        batch.Get(key);
      } else {
        values.push_back(Value(rng_()));
        lot < 70 ? batch.Insert(key, values.back())
                 : batch.Put(key, values.back(), lot < 80 ? Request::kReturnPrevious : 0);
        if (lot >= 70 || at == model.end()) model[key] = values.back();
      }
    }
    engine->Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Outcome& outcome = batch.outcome(slot);
      ASSERT_EQ(outcome.present, expected[slot].has_value()) << slot;
      if (batch.requests()[slot].op == Op::kGet) {
        ASSERT_EQ(outcome.value, expected[slot].value_or("")) << slot;
      }
    }
    const std::string lo = any_key();
    const std::string hi = any_key();
    Batch ranges;
    const auto limit = static_cast<uint32_t>(1 + rng_() % 300);
    ranges.Scan(Range::Between(lo, hi), {.limit = limit});
    ranges.Scan(Range::Between(lo, hi), {.limit = limit, .reverse = true});
    ranges.Count(Range::Between(lo, hi));
    ranges.Scan(Range::From(lo), {.limit = 3, .seek_floor = true});
    engine->Execute(ranges);
    const auto begin = model.lower_bound(lo);
    const auto end = lo < hi ? model.lower_bound(hi) : begin;
    ASSERT_EQ(ranges.outcome(2).integer, std::distance(begin, end));
    auto at = begin;
    for (const Item& item : ranges.items(0)) {
      ASSERT_EQ(item.key, at->first);
      ASSERT_EQ(item.value, at++->second);
    }
    ASSERT_TRUE(at == end || ranges.items(0).size() == limit);
    at = end;
    for (const Item& item : ranges.items(1)) ASSERT_EQ(item.key, (--at)->first);
    ASSERT_TRUE(at == begin || ranges.items(1).size() == limit);
    auto floor = model.upper_bound(lo);
    if (floor != model.begin()) --floor;
    for (const Item& item : ranges.items(3)) ASSERT_EQ(item.key, floor++->first);
    if (round % 10 == 9) {
      Batch erase;
      erase.DeleteRange(Range::Between(lo, hi), limit);
      engine->Execute(erase);
      auto last = begin;
      for (uint32_t i = 0; i < limit && last != end; ++i) ++last;
      ASSERT_EQ(erase.outcome(0).integer, std::distance(begin, last));
      model.erase(begin, last);
    }
    if (round % 5 == 0) {
      while (engine->Maintain(0)) {
      }
      ExpectHolds(*engine, model);
      if (HasFatalFailure()) return;
    }
  }
}

// Goal: an iterator gives every pair of the instant of its opening, in order, whatever is written,
// split, merged and deleted meanwhile.
TEST_P(HashleafEngineTest, ASnapshotIteratorIsOfOneInstant) {
  const auto engine = Make(true);
  Model model;
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<std::string> keys;
    for (int i = 0; i < 3000; ++i) keys.push_back(Key(rng_() % 10'000 * 3));
    Put(*engine, model, keys);
    auto iterator = engine->OpenPairIterator(0);
    ASSERT_TRUE(iterator.has_value());
    EXPECT_EQ(engine->OpenPairIterator(0).error().code(), Code::kUnavailable);
    EXPECT_EQ((*iterator)->version(), engine->Latest());
    const Model wanted = model;
    Model seen;
    std::string last;
    for (bool more = true; more;) {
      const auto pairs = (*iterator)->Next();
      ASSERT_TRUE(pairs.has_value());
      more = !pairs->empty();
      for (const Pair& pair : *pairs) {
        ASSERT_TRUE(last.empty() || last < pair.key);
        last = pair.key;
        seen.emplace(pair.key, pair.value);
      }
      // The keys lie before, at and behind the iterator's position.
      keys.clear();
      for (int i = 0; i < 100; ++i) keys.push_back(Key(rng_() % 30'000));
      Put(*engine, model, keys);
      Batch batch;
      const std::string lo = Key(rng_() % 30'000);
      const std::string hi = Key(rng_() % 30'000);
      batch.DeleteRange(Range::Between(lo, hi));
      if (rng_() % 20 == 0) batch.DeleteAll();
      engine->Execute(batch);
      if (batch.size() == 2) {
        model.clear();
      } else if (lo < hi) {
        model.erase(model.lower_bound(lo), model.lower_bound(hi));
      }
      engine->Maintain(0);
    }
    ASSERT_EQ(seen, wanted);
    iterator->reset();
    ExpectHolds(*engine, model);
  }
}

// Goal: operations of several threads whose batches run while leaves split and merge all find their
// keys; a scan sees the writes of one atomic batch to several leaves whole.
// Method: each thread has keys of its own, spread over all leaves, and a map of them; all keys of a
// round are written by one atomic batch with one value now and then.
TEST_P(HashleafEngineTest, ThreadsMeetInSplitsAndMerges) {
  constexpr int kThreads = 3;
  const auto engine = Make(true);
  std::atomic<bool> stop{false};
  const auto own = [&](uint64_t thread, uint64_t number) {
    return Key(number * kThreads + thread);
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < kThreads - 1; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937_64 rng(seed_ + thread);
        Model mine;
        for (int round = 0; round < Rounds(300); ++round) {
          const bool empties = round % 30 >= 20;
          Batch batch;
          std::vector<std::string> keys;
          std::vector<std::optional<std::string>> expected;
          const std::string value = Value(rng());
          const uint64_t size = 1 + rng() % 200;
          keys.reserve(size);
          for (uint64_t i = 0; i < size; ++i) {
            keys.push_back(own(thread, rng() % 3000));
            const auto at = mine.find(keys.back());
            expected.push_back(at == mine.end() ? std::nullopt : std::optional(at->second));
            if (rng() % 3 == 0) {
              batch.Get(keys.back());
            } else if (empties) {
              batch.Delete(keys.back());
              mine.erase(keys.back());
            } else {
              batch.Put(keys.back(), value);
              mine[keys.back()] = value;
            }
          }
          engine->Execute(batch);
          for (uint32_t slot = 0; slot < batch.size(); ++slot) {
            ASSERT_EQ(batch.outcome(slot).present, expected[slot].has_value());
            if (batch.requests()[slot].op == Op::kGet) {
              ASSERT_EQ(batch.outcome(slot).value, expected[slot].value_or(""));
            }
          }
          if (round % 8 == 0) engine->Maintain(0);
        }
      });
    }
    std::jthread whole([&] {
      std::mt19937_64 rng(seed_ + kThreads);
      std::vector<std::string> keys;
      for (uint64_t i = 0; i < 8; ++i) keys.push_back(own(kThreads - 1, i * 400));
      while (!stop) {
        Batch write(Batch::Kind::kAtomic);
        const std::string value = Value(rng());
        for (const std::string& key : keys) write.Put(key, value);
        engine->Execute(write);
      }
    });
    std::jthread reader([&] {
      while (!stop) {
        Batch scans;
        scans.Scan(Range::All());
        scans.Scan(Range::All(), {.reverse = true});
        engine->Execute(scans);
        for (const uint32_t slot : {0u, 1u}) {
          std::optional<std::string> seen;
          std::string last;
          for (const Item& item : scans.items(slot)) {
            ASSERT_TRUE(last.empty() || (slot == 0 ? last < item.key : last > item.key));
            last = item.key;
            bool is_whole = false;
            for (uint64_t i = 0; i < 8; ++i) {
              is_whole = is_whole || item.key == own(kThreads - 1, i * 400);
            }
            if (!is_whole) continue;
            if (!seen) seen = std::string(item.value);
            ASSERT_EQ(item.value, *seen);
          }
        }
      }
    });
    threads.clear();
    stop = true;
  }
  EXPECT_STREQ(engine->Verify(), nullptr);
}

// Goal: a batch does the same with several threads as with one: operations on one key keep their
// order, no write is lost, a later write of a key has the higher number.
// Method: two callers at once with keys of their own, many of them several times in a batch; few
// keys, so that leaves split and empty within a batch.
TEST_P(HashleafEngineTest, SharedBatches) {
  constexpr uint64_t kCallers = 2;
  const auto engine = Make(true, 3);
  std::vector<std::jthread> callers;
  for (uint64_t caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937_64 rng(seed_ + caller);
      Model mine;
      std::map<std::string, Version> numbers;
      for (int round = 0; round < Rounds(40); ++round) {
        const uint64_t keys = round % 4 == 3 ? 50 : 20'000;
        Batch batch;
        std::vector<std::optional<std::string>> expected;
        std::vector<std::string> names;
        for (uint64_t size = 2048 + rng() % 4000; size > 0; --size) {
          names.push_back(Key(rng() % keys * kCallers + caller));
          const std::string& key = names.back();
          const auto at = mine.find(key);
          expected.push_back(at == mine.end() ? std::nullopt : std::optional(at->second));
          const std::string_view view = batch.scratch().Copy(key);
          const uint64_t lot = rng() % 10;
          if (lot < 3) {
            batch.Get(view);
          } else if (lot < (round % 8 >= 6 ? 9u : 5u)) {
            batch.Delete(view);
            mine.erase(key);
          } else {
            mine[key] = Value(rng());
            batch.Put(view, batch.scratch().Copy(mine[key]));
          }
        }
        const Version ticket = engine->Execute(batch);
        for (uint32_t slot = 0; slot < batch.size(); ++slot) {
          const Outcome& outcome = batch.outcome(slot);
          ASSERT_EQ(outcome.present, expected[slot].has_value()) << slot;
          if (batch.requests()[slot].op == Op::kGet) {
            ASSERT_EQ(outcome.value, expected[slot].value_or("")) << slot;
          } else if (outcome.verdict == Verdict::kDone) {
            ASSERT_LE(outcome.version, ticket);
            ASSERT_GE(outcome.version, numbers[names[slot]]);
            numbers[names[slot]] = outcome.version;
          }
        }
        if (round % 4 == 0) engine->Maintain(0);
      }
    });
  }
  callers.clear();
  EXPECT_STREQ(engine->Verify(), nullptr);
}

// Goal: a leaf that a batch reads very often is read by several threads at a time, and they read
// the current pairs, whatever others write to it and however it is split meanwhile.
// Method: values that name their key and grow; batches that only read few keys, each several times.
TEST_P(HashleafEngineTest, SharedReads) {
  const auto engine = Make(true, 3);
  constexpr uint64_t kHot = 40;
  const auto value_of = [&](uint64_t round) { return Value(round); };
  {
    Batch batch;
    for (uint64_t i = 0; i < kHot; ++i) {
      batch.Put(batch.scratch().Copy(Key(i * 1000)), batch.scratch().Copy(value_of(1)));
    }
    engine->Execute(batch);
  }
  std::jthread writer([&](const std::stop_token& stop) {
    for (uint64_t round = 2; !stop.stop_requested(); ++round) {
      Batch batch;
      for (uint64_t i = 0; i < kHot; ++i) {
        batch.Put(batch.scratch().Copy(Key(i * 1000)), batch.scratch().Copy(value_of(round)));
      }
      // Other keys come and go between them, so that leaves split and merge.
      for (uint64_t i = 0; i < 3000; ++i) {
        const std::string_view key = batch.scratch().Copy(Key(i * 10 + 3));
        if (round % 2 == 0) {
          batch.Insert(key, batch.scratch().Copy(value_of(round)));
        } else {
          batch.Delete(key);
        }
      }
      engine->Execute(batch);
      engine->Maintain(0);
    }
  });
  const auto number_of = [](std::string_view value) {
    uint64_t number = 0;
    std::memcpy(&number, value.data(), std::min<size_t>(8, value.size()));
    return number & 0xffffffff;
  };
  std::vector<uint64_t> seen(kHot, 1);
  for (int round = 0; round < Rounds(200); ++round) {
    Batch batch;
    for (uint64_t i = 0; i < 3000; ++i) {
      const bool is_there = i % 8 != 7;
      batch.Get(batch.scratch().Copy(Key(i % kHot * 1000 + (is_there ? 0 : 5))));
    }
    const Version ticket = engine->Execute(batch);
    std::vector<uint64_t> last = seen;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Outcome& outcome = batch.outcome(slot);
      ASSERT_LE(outcome.version, ticket);
      if (slot % 8 == 7) {
        ASSERT_EQ(outcome.verdict, Verdict::kAbsent);
        continue;
      }
      ASSERT_EQ(outcome.verdict, Verdict::kDone);
      const uint64_t number = number_of(outcome.value);
      ASSERT_GE(number, seen[slot % kHot]);
      last[slot % kHot] = std::max(last[slot % kHot], number);
    }
    seen = last;
  }
  writer.request_stop();
  writer.join();
  EXPECT_STREQ(engine->Verify(), nullptr);
  // Whether a leaf was shared until now depends on the splits. One key is always in one leaf.
  const uint64_t before = Told(*engine, "shared_reads");
  Batch batch;
  for (uint64_t i = 0; i < 3000; ++i) batch.Get(batch.scratch().Copy(Key(0)));
  engine->Execute(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    ASSERT_GE(number_of(batch.outcome(slot).value), seen[0]) << slot;
  }
  EXPECT_EQ(Told(*engine, "shared_reads"), before + 1);
}

// Goal: requests that do not fit the keyspace change nothing; the refusal names what does fit.
TEST_P(HashleafEngineTest, RefusesOtherSizesAndDeadlines) {
  const auto engine = Make();
  const std::string key = Key(1);
  const std::string value = Value(1);
  Batch batch;
  batch.Put(key + "x", value);
  batch.Put(std::string_view(key).substr(1), value);
  const std::string long_value = value + "x";
  batch.Put(key, long_value);
  batch.Put(key, std::string_view(value).substr(1));
  batch.Get("");
  batch.Expire(key, 5);
  batch.Add({.op = Op::kPut, .key = key, .value = value, .other = {}, .deadline_ms = 5});
  batch.Add(
      {.op = Op::kPut, .key = key, .value = value, .other = {}, .deadline_ms = kKeepDeadline});
  engine->Execute(batch);
  const Code codes[] = {
      Code::kTooLarge,        Code::kInvalidArgument, Code::kTooLarge,     Code::kInvalidArgument,
      Code::kInvalidArgument, Code::kNotSupported,    Code::kNotSupported, Code::kOk};
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).status.code(), codes[slot]) << slot;
  }
  EXPECT_EQ(batch.outcome(1).status.detail(), GetParam().key_bytes);
  EXPECT_EQ(batch.outcome(3).status.detail(), GetParam().value_bytes);
  EXPECT_EQ(engine->Statistics().items, 1u);
  EXPECT_EQ(engine->OpenSnapshot(0).error().code(), Code::kNotSupported);
  EXPECT_EQ(engine->Watch("", 0).error().code(), Code::kInvalidArgument);
}

// Goal: functions act on values of the keyspace's size; a result of another size is refused.
TEST_P(HashleafEngineTest, Functions) {
  const auto engine = Make();
  const std::string key = Key(1);
  const std::string zero(GetParam().value_bytes, '\0');
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kU32);
  const uint32_t two = 2;
  const std::string_view operand(reinterpret_cast<const char*>(&two), sizeof(two));
  Batch batch;
  batch.Put(key, zero);
  batch.UpdateElements(key, add, operand);
  batch.UpdateElements(key, add, operand, {.returns = UpdateOptions::Returns::kNew});
  batch.ReduceElements(key, FindFunction(FunctionKind::kReduce, "sum", Element::kU32));
  batch.Apply(key, functions::kAppend, "x");
  engine->Execute(batch);
  const uint32_t elements = GetParam().value_bytes / 4;
  EXPECT_EQ(batch.outcome(1).integer, elements);
  uint32_t first = 0;
  ASSERT_EQ(batch.outcome(2).value.size(), GetParam().value_bytes);
  std::memcpy(&first, batch.outcome(2).value.data(), sizeof(first));
  EXPECT_EQ(first, 4u);
  EXPECT_EQ(batch.outcome(3).integer, 4 * elements);
  EXPECT_EQ(batch.outcome(4).status.code(), Code::kTooLarge);
}

INSTANTIATE_TEST_SUITE_P(Sizes, HashleafEngineTest,
                         testing::Values(Case{4, 4, ScanBy::kCost}, Case{4, 16, ScanBy::kProbe},
                                         Case{4, 8, ScanBy::kSweep}, Case{8, 8, ScanBy::kCost},
                                         Case{8, 4, ScanBy::kRun}, Case{8, 16, ScanBy::kSweep},
                                         Case{16, 16, ScanBy::kCost}, Case{16, 4, ScanBy::kRun},
                                         Case{16, 8, ScanBy::kSweep},
                                         Case{8, 8, ScanBy::kCost, SplitAt::kMidpoint}),
                         NameOf);

}  // namespace
}  // namespace skep::hashleaf

// Tests of walks for every engine that has them; the others must refuse them. Counts of everything.
#include <map>
#include <set>

#include "engine/batch_writer.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

using Pairs = std::map<std::string, std::string>;

class WalkConformance : public EngineConformance {
 protected:
  static std::string KeyNumber(std::string_view name, uint64_t i) {
    return std::string(name) + std::to_string(i);
  }

  // Does a whole walk, step by step in the batch `step`, whose settings apply. Fails if a key comes
  // twice.
  template <typename BetweenSteps>
  Pairs WalkAll(const WalkOptions& options, Batch& step, BetweenSteps between_steps) {
    Pairs pairs;
    uint64_t cursor = 0;
    do {
      step.Walk(cursor, options);
      step.set_now_ms(subject_.now_ms());
      engine_.AwaitRelease(engine_.Execute(step));
      const Outcome& out = step.outcome(0);
      EXPECT_EQ(out.verdict, Verdict::kDone);
      for (const Item& item : step.items(0)) {
        EXPECT_TRUE(pairs.emplace(item.key, item.value).second) << item.key;
      }
      const auto next = static_cast<uint64_t>(out.integer);
      EXPECT_TRUE(next == 0 || next > cursor);
      EXPECT_LT(next, uint64_t{1} << 56);
      cursor = next;
      ++steps_;
      between_steps(step);
    } while (cursor != 0 && !testing::Test::HasFailure());
    return pairs;
  }

  // Stores many keys in few batches, which the oracle does not see.
  void Fill(std::string_view name, uint64_t begin, uint64_t end, std::string_view value) {
    constexpr uint64_t kBatch = 500;
    for (uint64_t i = begin; i < end;) {
      Batch batch;
      batch.set_now_ms(subject_.now_ms());
      for (const uint64_t stop = std::min(i + kBatch, end); i < stop; ++i) {
        batch.Put(batch.scratch().Copy(KeyNumber(name, i)), value);
      }
      engine_.Execute(batch);
    }
  }
  void Erase(std::string_view name, uint64_t begin, uint64_t end) {
    Batch batch;
    batch.set_now_ms(subject_.now_ms());
    for (uint64_t i = begin; i < end; ++i) batch.Delete(batch.scratch().Copy(KeyNumber(name, i)));
    engine_.Execute(batch);
  }

  void Expire(std::string_view name, uint64_t begin, uint64_t end, uint64_t deadline_ms) {
    Batch batch;
    batch.set_now_ms(subject_.now_ms());
    for (uint64_t i = begin; i < end; ++i) {
      batch.Expire(batch.scratch().Copy(KeyNumber(name, i)), deadline_ms);
    }
    engine_.Execute(batch);
  }

  uint64_t steps_ = 0;
};

// Goal: a walk in steps of any size returns each key and its value once, and no expired key.
TEST_P(WalkConformance, EveryKeyOnceWhateverTheSteps) {
  SKEP_NEEDS(walks);
  Pairs wanted;
  for (uint64_t i = 0; i < 300; ++i) {
    const std::string key = KeyNumber("key", i);
    const std::string value = i % 7 == 0 ? Long(std::to_string(i)) : std::to_string(i);
    const uint64_t lifetime = i % 10 == 1 ? 50 : i % 10 == 2 ? 5000 : 0;
    Put(key, value, lifetime == 0 ? 0 : subject_.now_ms() + lifetime);
    if (lifetime != 50) wanted.emplace(key, value);
  }
  Put("", "of the empty key");
  wanted.emplace("", "of the empty key");
  subject_.Pass(100);
  for (const uint32_t limit : {0u, 1u, 2u, 10u, 1000u, kNoLimit}) {
    steps_ = 0;
    Batch step;
    const Pairs pairs = WalkAll({.limit = limit}, step, [&](Batch& batch) {
      EXPECT_LE(batch.items(0).size(), std::max(limit, 1u));
      batch.Clear();
    });
    EXPECT_EQ(pairs, wanted);
    EXPECT_GE(steps_, wanted.size() / std::max(limit, 1u));
    EXPECT_LE(steps_, wanted.size() + 1);
  }
  Batch step;
  const Pairs keys = WalkAll({.keys_only = true}, step, [](Batch& batch) { batch.Clear(); });
  EXPECT_EQ(keys.size(), wanted.size());
  for (const auto& [key, value] : keys) EXPECT_EQ(value, "") << key;
}

// Goal: bytes and visits bound a step, also one that finds nothing, and the walk gets on all the
// same.
TEST_P(WalkConformance, BytesAndVisitsBoundAStep) {
  SKEP_NEEDS(walks);
  constexpr uint64_t kKeys = 20'000;
  constexpr uint64_t kValueBytes = 90;
  Fill("key", 0, kKeys, std::string(kValueBytes, 'v'));
  for (const size_t bytes_max : {size_t{0}, size_t{1000}}) {
    Batch step;
    step.set_scan_bytes_max(bytes_max);
    const Pairs pairs = WalkAll({}, step, [&](Batch& batch) {
      EXPECT_LE(batch.items(0).size(), bytes_max / kValueBytes + 1);
      batch.Clear();
      batch.set_scan_bytes_max(bytes_max);
    });
    EXPECT_EQ(pairs.size(), kKeys);
  }
  constexpr uint32_t kVisits = 100;
  Batch step;
  step.set_scan_visits_max(kVisits);
  steps_ = 0;
  const auto bound = [&](Batch& batch) {
    EXPECT_LE(batch.items(0).size(), 2 * kVisits);
    batch.Clear();
    batch.set_scan_visits_max(kVisits);
  };
  EXPECT_EQ(WalkAll({}, step, bound).size(), kKeys);
  EXPECT_GE(steps_, kKeys / (2 * kVisits));
  // The cost of a walk: it visits each key once, and some buckets.
  EXPECT_LE(steps_, 3 * kKeys / kVisits);
  // All keys but one have expired, and are still in the engine.
  for (uint64_t i = 0; i < kKeys; i += 500) Expire("key", i, i + 500, subject_.now_ms() + 1);
  Fill("stays", 0, 1, "v");
  subject_.set_now_ms(subject_.now_ms() + 2);
  steps_ = 0;
  EXPECT_EQ(WalkAll({}, step, bound).size(), 1u);
  EXPECT_GE(steps_, kKeys / (2 * kVisits));
}

// Goal: a key that stays comes exactly once and none comes twice, whatever else is written, as the
// keyspace grows from a few keys to many and shrinks again in the middle of a walk.
// Method: 500 keys stay; 200 are deleted and stored again all the time; up to 30'000 come and go,
// more and less of them between the steps. Several walks, from several states.
TEST_P(WalkConformance, WhatStaysComesOnceWhateverComesAndGoes) {
  SKEP_NEEDS(walks);
  const unsigned seed = PrintedSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomBatch random(seed);
  constexpr uint64_t kStaying = 500;
  constexpr uint64_t kRestless = 200;
  constexpr uint64_t kComingMax = 30'000;
  Fill("stays", 0, kStaying, "s");
  uint64_t coming = 0;
  uint64_t most = 0;
  for (int walk = 0; walk < 6; ++walk) {
    bool grows = walk % 2 == 0;
    Batch step;
    const auto limit = static_cast<uint32_t>(1 + random.Below(40));
    const Pairs pairs = WalkAll({.limit = limit}, step, [&](Batch& batch) {
      batch.Clear();
      Fill("restless", 0, kRestless, "r");
      if (random.Below(2) == 0) Erase("restless", 0, kRestless);
      const uint64_t lot = random.Below(3000);
      if (grows) {
        Fill("comes", coming, coming + lot, "c");
        coming += lot;
        grows = coming < kComingMax;
      } else {
        const uint64_t gone = std::min(coming, lot);
        Erase("comes", coming - gone, coming);
        coming -= gone;
        grows = coming == 0 && random.Below(8) == 0;
      }
      most = std::max(most, coming);
    });
    for (uint64_t i = 0; i < kStaying; ++i) {
      ASSERT_TRUE(pairs.contains(KeyNumber("stays", i))) << i << " in walk " << walk;
    }
  }
  EXPECT_GT(most, kComingMax / 2);
  EXPECT_STREQ(engine_.Verify(), nullptr);
}

// Goal: an engine without walks refuses them and does the other requests; one with walks refuses
// them where there is one instant, and cursors that no walk gives.
TEST_P(WalkConformance, WhatIsRefused) {
  Put("a", "1");
  Batch batch;
  batch.Walk(0);
  batch.Get("a");
  subject_.Run(batch);  // the oracle knows the traits
  const Code refused = traits_.walks ? Code::kOk : Code::kNotSupported;
  EXPECT_EQ(batch.outcome(0).status.code(), refused);
  EXPECT_EQ(batch.outcome(1).verdict, Verdict::kDone);

  if (traits_.atomic) {
    Batch atomic(Batch::Kind::kAtomic);
    atomic.Put("b", "2");
    atomic.Walk(0);
    subject_.Run(atomic);
    EXPECT_FALSE(atomic.applied());
    EXPECT_EQ(atomic.outcome(1).status.code(),
              traits_.walks ? Code::kInvalidArgument : Code::kNotSupported);
    EXPECT_EQ(Get("b"), std::nullopt);
  }
  if (!traits_.walks) return;
  for (const uint64_t cursor : {uint64_t{1} << 56, UINT64_MAX}) {
    Batch wrong;
    wrong.Walk(cursor);
    engine_.Execute(wrong);
    EXPECT_EQ(wrong.outcome(0).status.code(), Code::kInvalidArgument);
    EXPECT_EQ(wrong.outcome(0).item_count, 0u);
  }
}

// Goal: every engine counts all keys, in the middle of an atomic batch too, and only live ones.
// Method: the oracle.
TEST_P(WalkConformance, CountsOfEverything) {
  for (uint64_t i = 0; i < 50; ++i) {
    Put(KeyNumber("key", i), "v", i % 5 == 0 ? subject_.now_ms() + 10 : 0);
  }
  subject_.Pass(20);
  Batch count;
  count.Count(Range::All());
  subject_.Run(count);
  EXPECT_EQ(count.outcome(0).integer, 40);
  if (!traits_.atomic) return;
  Batch atomic(Batch::Kind::kAtomic);
  atomic.Delete("key1");
  atomic.Put("key0", "back");
  atomic.Put("key2", "other");
  atomic.Put("new", "1");
  atomic.Count(Range::All());
  atomic.DeleteAll();
  atomic.Put("last", "1");
  atomic.Count(Range::All());
  subject_.Run(atomic);
  EXPECT_EQ(atomic.outcome(4).integer, 41);
  EXPECT_EQ(atomic.outcome(7).integer, 1);
}

INSTANTIATE_TEST_SUITE_P(Engines, WalkConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

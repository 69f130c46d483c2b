// Tests that every engine must pass: keys that have expired are reclaimed, in the order of their
// deadlines, in bounded pieces, with all their memory.
#include <algorithm>

#include "base/sanitized.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

class ReclaimConformance : public EngineConformance {
 protected:
  void SetUp() override { SKEP_NEEDS(expiry); }

  static constexpr uint64_t kStart = Subject::kStartMs;

  // Puts `count` keys, numbered from 0, in batches, each with the deadline that DeadlineOf gives
  // it.
  template <typename DeadlineOf>
  void PutMany(Engine& engine, std::string_view prefix, int count, std::string_view value,
               DeadlineOf deadline_of) {
    constexpr int kBatch = 256;
    for (int from = 0; from < count; from += kBatch) {
      Batch batch;
      batch.set_now_ms(kStart);
      for (int i = from; i < std::min(from + kBatch, count); ++i) {
        batch.Add({.op = Op::kPut,
                   .key = batch.scratch().Concat(prefix, std::to_string(i)),
                   .value = value,
                   .other = {},
                   .deadline_ms = deadline_of(i)});
      }
      engine.gate().Wait(engine.Execute(batch));
    }
  }
};

// Goal: at each time exactly the keys whose deadline has passed are reclaimed.
// Method: 2000 keys with the deadlines of 1 to 100 ms, in a shuffled order.
TEST_P(ReclaimConformance, ExactlyThoseThatAreDue) {
  constexpr int kKeys = 2000;
  constexpr int kTimes = 100;
  const auto deadline = [](int i) { return kStart + 1 + static_cast<uint64_t>(i * 37 % kTimes); };
  PutMany(engine_, "key", kKeys, "v", deadline);
  for (int ms = 0; ms <= kTimes; ++ms) {
    while (engine_.Maintain(kStart + static_cast<uint64_t>(ms))) {
    }
    ASSERT_EQ(items(), static_cast<uint64_t>((kTimes - ms) * (kKeys / kTimes))) << ms;
    ASSERT_STREQ(engine_.Verify(), nullptr);
  }
}

// Goal: of the keys that are due, the oldest go first, a bounded piece at each call, and their
// memory comes back.
// Method: the half with the earlier deadlines has nearly all the memory. Once five eighths of the
// keys are gone its memory must be back, or waiting for its turn to be freed; in any other order
// much of it would still be in use. An engine may clean a node for all its keys at once, so the
// halves lie apart.
TEST_P(ReclaimConformance, OldestFirstInPieces) {
  constexpr int kHalf = 16'000;
  constexpr uint64_t kKeptBytesMax = 12 << 20;
  const uint64_t empty = engine_.Statistics().bytes;
  const std::string big(4000, 'b');
  // The second half comes first in the order of the keys' bytes.
  PutMany(engine_, "z", kHalf, big, [](int i) { return kStart + 100 + static_cast<uint64_t>(i); });
  PutMany(engine_, "a", kHalf, "s",
          [](int i) { return kStart + 100 + kHalf + static_cast<uint64_t>(i); });
  ASSERT_GT(engine_.Statistics().bytes, empty + 4 * kKeptBytesMax);
  int pieces = 0;
  bool more = true;
  uint64_t before = items();
  for (; more && items() > 2 * kHalf * 3 / 8; ++pieces) {
    more = engine_.Maintain(kStart + 100'000);
    ASSERT_LE(before - items(), static_cast<uint64_t>(kHalf / 4));
    before = items();
  }
  EXPECT_TRUE(more);
  EXPECT_GT(pieces, 4);
  const EngineStatistics statistics = engine_.Statistics();
  EXPECT_LE(statistics.bytes, empty + kKeptBytesMax + statistics.old_versions * big.size());
  while (engine_.Maintain(kStart + 100'000)) {
  }
  EXPECT_LE(engine_.Statistics().bytes, empty + (2 << 20));
  subject_.set_now_ms(kStart + 100'000);
  subject_.MaintainAll();
  EXPECT_EQ(items(), 0u);
  subject_.ExpectNoOldVersions();
}

// Goal: a deadline that a key no longer has does not reclaim it, nor a key that took its place.
// Method: every way to lose a deadline of 10 ms; then 10 ms pass.
TEST_P(ReclaimConformance, ADeadlineOfThePastDoesNotCount) {
  const std::string long_value = Long("v");
  for (const std::string_view value : {std::string_view("v"), std::string_view(long_value)}) {
    const uint64_t due = subject_.now_ms() + 10;
    const uint64_t later = due + 20;
    for (const std::string_view key : {"put", "later", "persist", "again", "expire", "keep"}) {
      Put(key, value, due);
    }
    Put("put", value);
    Put("later", value, later);
    subject_.RunOne({.op = Op::kExpire, .key = "persist"});
    subject_.RunOne({.op = Op::kDelete, .key = "again"});
    Put("again", value);
    subject_.RunOne({.op = Op::kExpire, .key = "expire", .other = {}, .deadline_ms = later});
    // The key gets a later deadline, and the first one again.
    subject_.RunOne({.op = Op::kExpire, .key = "keep", .other = {}, .deadline_ms = later});
    subject_.RunOne({.op = Op::kExpire, .key = "keep", .other = {}, .deadline_ms = due});
    EXPECT_EQ(items(), 6u);
    subject_.set_now_ms(due);
    subject_.MaintainAll();
    subject_.ExpectReclaimed();
    EXPECT_EQ(items(), 5u);
    EXPECT_EQ(Get("keep"), std::nullopt);
    for (const std::string_view key : {"put", "later", "persist", "again", "expire"}) {
      EXPECT_EQ(Get(key), value) << key;
    }
    subject_.set_now_ms(later);
    subject_.MaintainAll();
    EXPECT_EQ(items(), 3u);
    subject_.RunOne({.op = Op::kDeleteAll});
    subject_.MaintainAll();
  }
}

// Goal: a deadline that a deleted range or keyspace had does not count, with and without a
// snapshot.
TEST_P(ReclaimConformance, ADeadlineOfADeletedRangeDoesNotCount) {
  for (const bool pinned : {false, true}) {
    for (const Op op : {Op::kDeleteAll, Op::kDeleteRange}) {
      if (op == Op::kDeleteRange && !traits_.ordered) continue;
      if (pinned && !traits_.snapshots) continue;
      const uint64_t due = subject_.now_ms() + 10;
      Batch batch;
      for (int i = 0; i < 300; ++i) {
        batch.Add({.op = Op::kPut,
                   .key = batch.scratch().Copy("key" + std::to_string(i)),
                   .value = "1",
                   .other = {},
                   .deadline_ms = due});
      }
      subject_.Run(batch);
      std::vector<SnapshotRef> snapshots;
      if (pinned) subject_.Open(snapshots);
      EXPECT_EQ(subject_.RunOne({.op = op, .flags = Request::kNoUpperBound}).integer, 300);
      Put("key7", "new");
      subject_.set_now_ms(due);
      subject_.MaintainAll();
      subject_.ExpectReclaimed();
      EXPECT_EQ(Get("key7"), "new");
      for (const SnapshotRef snapshot : snapshots) {
        Batch count;
        count.set_snapshot(snapshot);
        count.Get("key7");
        subject_.Run(count);
        EXPECT_EQ(count.outcome(0).value, "1");
        subject_.Close(snapshot);
      }
      subject_.RunOne({.op = Op::kDelete, .key = "key7"});
      subject_.ExpectNoOldVersions();
      EXPECT_EQ(items(), 0u);
    }
  }
}

// Goal: at any size, with values and keys in every place, as keys come, change, expire and are
// reclaimed in pieces, the engine agrees with the oracle; at the end nothing is left.
// Method: batches on 1500 keys, each of which has a deadline within 40 ms or none, one or two
// milliseconds each; one piece of maintenance between them.
TEST_P(ReclaimConformance, ManyKeysComeAndExpire) {
  constexpr uint64_t kKeys = 1500;
  const unsigned seed = PrintedSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  const std::string bytes(2 * kLongBytes, 'x');
  const auto key_of = [&](Batch& batch, uint64_t i) {
    return batch.scratch().Copy("key" + std::to_string(i) + (i % 16 == 0 ? Long(":") : ""));
  };
  for (int step = 0; step < Rounds(300); ++step) {
    Batch batch(step % 4 == 0 && traits_.atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    for (int i = 0; i < 40; ++i) {
      constexpr Op kOps[] = {Op::kPut, Op::kPut, Op::kPut, Op::kExpire, Op::kDelete, Op::kGet};
      Request r{.op = kOps[rng() % std::size(kOps)], .key = key_of(batch, rng() % kKeys)};
      const size_t most = rng() % 8 == 0 ? bytes.size() : 40;
      if (r.op == Op::kPut) r.value = std::string_view(bytes).substr(0, rng() % most);
      if (rng() % 3 != 0 && r.op != Op::kDelete) r.deadline_ms = subject_.now_ms() + rng() % 40;
      batch.Add(r);
    }
    subject_.Run(batch);
    subject_.Pass(rng() % 3);
    subject_.oracle().Advance(subject_.now_ms());
    engine_.Maintain(subject_.now_ms());
    if (traits_.ordered && step % 10 == 0) {
      Batch ranges;
      ranges.Scan(Range::All(), {.reverse = step % 20 == 0});
      ranges.Count(Range::From(key_of(ranges, rng() % kKeys)), 100);
      subject_.Run(ranges);
    }
    if (HasFatalFailure()) return;
  }
  Batch expire;
  for (uint64_t i = 0; i < kKeys; ++i) expire.Expire(key_of(expire, i), subject_.now_ms() + 1);
  subject_.Run(expire);
  subject_.Pass(1);
  subject_.MaintainAll();
  EXPECT_EQ(items(), 0u);
  subject_.ExpectNoOldVersions();
}

INSTANTIATE_TEST_SUITE_P(Engines, ReclaimConformance, testing::ValuesIn(EnginesUnderMemoryTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

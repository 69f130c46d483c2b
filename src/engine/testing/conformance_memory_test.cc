// Tests that every engine must pass: the memory limit, and memory that comes back.
//
// An engine may take memory from the system, and give it back, in pieces of many values: nodes of 8
// KiB, spans of 64 KiB. So the tests store many times that, and delete keys that lie together.
#include <map>

#include "engine/testing/conformance.h"

namespace skep {
namespace {

class MemoryConformance : public EngineConformance {
 protected:
  using Model = std::map<std::string, std::string>;
  // An engine with small pairs gets a smaller limit, so that it is full as soon.
  const bool is_small_ = traits_.value_bytes_max < 4000;
  const uint64_t limit_bytes_ = (is_small_ ? 4 : 32) << 20;
  const size_t value_bytes_ = std::min<size_t>(4000, traits_.value_bytes_max);
  // Bytes that one batch may take beyond the limit: the engine's own, beside the key and value.
  static constexpr uint64_t kSlackBytes = 256 * 1024;
  // Bytes that an engine may keep free, to use them again without asking the system.
  static constexpr uint64_t kKeptBytesMax = 2 << 20;

  // Executes one batch; returns the outcome of its first slot.
  const Outcome& Run(Batch& batch) {
    batch.set_now_ms(Subject::kStartMs);
    engine_.gate().Wait(engine_.Execute(batch));
    EXPECT_STREQ(engine_.Verify(), nullptr);
    return batch.outcome(0);
  }

  // Puts until the engine refuses. Returns the number of the key that was refused.
  int FillUp(Model& model, size_t value_bytes) {
    const std::string value(value_bytes, 'v');
    for (int i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      Batch batch;
      batch.Put(key, value);
      engine_.gate().Wait(engine_.Execute(batch));
      if (batch.outcome(0).verdict == Verdict::kRefused) {
        ExpectOutOfMemory(batch.outcome(0));
        return i;
      }
      model[key] = value;
      if (subject_.budget().used() > limit_bytes_ + kSlackBytes) {
        ADD_FAILURE() << "the engine stores beyond the limit";
        return i;
      }
    }
  }

  void ExpectOutOfMemory(const Outcome& outcome) const {
    EXPECT_EQ(outcome.verdict, Verdict::kRefused);
    EXPECT_EQ(outcome.status.code(), Code::kOutOfMemory);
    EXPECT_EQ(outcome.status.detail(), limit_bytes_);
  }

  void ExpectHolds(const Model& model) {
    EXPECT_EQ(engine_.Statistics().items, model.size());
    Batch batch;
    for (const auto& [key, value] : model) batch.Get(key);
    Run(batch);
    uint32_t slot = 0;
    for (const auto& [key, value] : model) {
      ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone) << key;
      ASSERT_EQ(batch.outcome(slot++).value, value) << key;
    }
  }
};

// Goal: at the limit, writes that store are refused and change nothing; reads and deletes go on;
// after deletes, storing goes on.
// Method: the older half is deleted, key by key, so that its memory lies together.
TEST_P(MemoryConformance, TheLimitRefusesWhatStores) {
  subject_.budget().set_limit(limit_bytes_);
  Model model;
  const int refused = FillUp(model, value_bytes_);
  ASSERT_GT(model.size(), 1000u);
  if (!is_small_) {
    const std::string big(limit_bytes_, 'b');
    Batch batch;
    batch.Put("key0", big);
    batch.Insert("new", big);
    batch.Update("key1", big);
    if (traits_.functions) batch.Apply("key2", functions::kAppend, big);
    Run(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) ExpectOutOfMemory(batch.outcome(slot));
  }
  ExpectHolds(model);

  for (int i = 0; i < refused / 2; ++i) {
    const std::string key = "key" + std::to_string(i);
    Batch deletes;
    deletes.Delete(key);
    engine_.Execute(deletes);
    ASSERT_EQ(deletes.outcome(0).verdict, Verdict::kDone) << key;
    model.erase(key);
  }
  subject_.MaintainAll();
  EXPECT_LE(subject_.budget().used(), limit_bytes_ * 3 / 4);
  Batch again;
  again.Put("key0", "1");
  EXPECT_EQ(Run(again).verdict, Verdict::kDone);
  model["key0"] = "1";
  ExpectHolds(model);
}

// Goal: over the limit nothing is stored, however small, whatever memory the engine has free; reads
// and deletes go on. Once the limit is above the bytes held, storing goes on.
// Method: the limit is lowered below the bytes held, as CONFIG SET does.
TEST_P(MemoryConformance, OverALoweredLimitNothingIsStored) {
  Model model;
  Batch puts;
  const std::string value(value_bytes_, 'v');
  for (int i = 0; i < 4000; ++i) {
    const std::string key = "key" + std::to_string(i);
    puts.Put(puts.scratch().Copy(key), value);
    model[key] = value;
  }
  Run(puts);
  for (const uint64_t limit : {uint64_t{1}, subject_.budget().used() / 2}) {
    subject_.budget().set_limit(limit);
    Batch stores;
    stores.Put("new", "1");
    stores.Insert("new", "1");
    stores.Update("key1", "1");
    stores.CompareAndSet("key1", value, "1");
    if (traits_.functions) stores.Apply("key1", functions::kAppend, "1");
    Run(stores);
    for (uint32_t slot = 0; slot < stores.size(); ++slot) {
      EXPECT_EQ(stores.outcome(slot).status.code(), Code::kOutOfMemory) << slot;
      EXPECT_EQ(stores.outcome(slot).status.detail(), limit) << slot;
    }
    if (traits_.atomic) {
      Batch atomic(Batch::Kind::kAtomic);
      atomic.Delete("key1");
      atomic.Put("new", "1");
      Run(atomic);
      EXPECT_FALSE(atomic.applied());
      EXPECT_EQ(atomic.outcome(1).status.code(), Code::kOutOfMemory);
    }
    ExpectHolds(model);
  }
  subject_.budget().set_limit(1);
  Batch deletes;
  deletes.Delete("key2");
  EXPECT_EQ(Run(deletes).verdict, Verdict::kDone);
  model.erase("key2");
  subject_.budget().set_limit(limit_bytes_);
  Batch again;
  again.Put("key2", "1");
  EXPECT_EQ(Run(again).verdict, Verdict::kDone);
  model["key2"] = "1";
  ExpectHolds(model);
}

// Goal: an atomic batch that does not fit is not half-applied.
TEST_P(MemoryConformance, TheLimitRefusesWholeAtomicBatches) {
  SKEP_NEEDS(atomic);
  subject_.budget().set_limit(limit_bytes_);
  Model model;
  FillUp(model, value_bytes_);
  const int new_keys = is_small_ ? 200'000 : 100;
  const std::string value(std::min<size_t>(20'000, traits_.value_bytes_max), 'w');
  Batch batch(Batch::Kind::kAtomic);
  batch.Delete("key0");
  batch.Put("key1", "small");
  for (int i = 2; i < new_keys; ++i)
    batch.Put(batch.scratch().Copy("new" + std::to_string(i)), value);
  Run(batch);
  EXPECT_FALSE(batch.applied());
  int out_of_memory = 0;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    out_of_memory += batch.outcome(slot).status.code() == Code::kOutOfMemory ? 1 : 0;
  }
  EXPECT_EQ(out_of_memory, 1);
  ExpectHolds(model);
}

// Goal: deleting a range works at the limit and makes room, without waiting for maintenance.
TEST_P(MemoryConformance, DeletingARangeMakesRoom) {
  SKEP_NEEDS(ordered);
  subject_.budget().set_limit(limit_bytes_);
  Model model;
  const int refused = FillUp(model, value_bytes_);
  Batch batch;
  batch.DeleteRange(Range::All());
  EXPECT_EQ(Run(batch).integer, refused);
  Model again;
  EXPECT_GT(FillUp(again, value_bytes_), refused / 2);
}

// Goal: memory of deleted keys is given back, with and without snapshots meanwhile, by points and
// ranges.
// Method: afterwards the engine is near its empty size: less than a twentieth of the bytes is left.
TEST_P(MemoryConformance, ReturnsToNearTheEmptyEngines) {
  const int keys = is_small_ ? 200'000 : 12'000;
  const size_t value_bytes_max = std::min<size_t>(8000, traits_.value_bytes_max);
  const uint64_t empty = subject_.budget().used();
  for (const bool by_range : {false, true}) {
    if (by_range && !traits_.ordered) break;
    SCOPED_TRACE(by_range ? "by range" : "by points");
    Subject fresh(GetParam());
    const uint64_t start = fresh.budget().used();
    std::vector<SnapshotRef> snapshots;
    const std::string value(value_bytes_max, 'v');
    constexpr int kPuts = 50;  // of a batch
    static_assert(200'000 % kPuts == 0 && 12'000 % kPuts == 0);
    Batch batch;
    for (int begin = 0; begin < keys * 3 / 2; begin += kPuts) {
      batch.Clear();
      for (int i = begin; i < begin + kPuts; ++i) {
        batch.Put(batch.scratch().Copy("key" + std::to_string(i % keys)),
                  std::string_view(value).substr(static_cast<size_t>(i) % value_bytes_max));
      }
      if (begin == keys && traits_.snapshots) fresh.Open(snapshots);
      fresh.engine().Execute(batch);
    }
    const uint64_t full = fresh.budget().used();
    EXPECT_GE(full, start + keys * value_bytes_max / 2);
    EXPECT_EQ(fresh.engine().Statistics().items, static_cast<uint64_t>(keys));
    Batch deletes;
    for (int i = 0; i < keys && !by_range; ++i) {
      deletes.Delete(deletes.scratch().Copy("key" + std::to_string(i)));
    }
    if (by_range) deletes.DeleteRange(Range::All());
    fresh.engine().Execute(deletes);
    EXPECT_EQ(fresh.engine().Statistics().items, 0u);
    for (const SnapshotRef snapshot : snapshots) fresh.Close(snapshot);
    fresh.ExpectNoOldVersions();
    EXPECT_LE(fresh.budget().used(), start + (full - start) / 20);
  }
  EXPECT_EQ(subject_.budget().used(), empty);
}

// Goal: a value takes no more memory than it needs, whatever was there before.
// Method: from 16 MiB down to one byte, and to more than a short string holds in itself; by a write
// of a new value and by one that changes the value.
TEST_P(MemoryConformance, ShorterValuesGiveMemoryBack) {
  if (is_small_) GTEST_SKIP() << "no value is large";
  const std::string big(16 << 20, 'b');
  const auto bytes_after = [&](Op op, std::string_view value) {
    Batch batch;
    batch.Add({.op = op, .key = "key", .value = value});
    EXPECT_EQ(Run(batch).verdict, Verdict::kDone);
    subject_.MaintainAll();
    return engine_.Statistics().bytes;
  };
  for (const std::string& shorter : {std::string("s"), std::string(1000, 's')}) {
    for (const Op op : {Op::kPut, Op::kUpdate}) {
      const uint64_t small = bytes_after(Op::kPut, shorter);
      EXPECT_GE(bytes_after(Op::kPut, big) + kKeptBytesMax, small + big.size());
      EXPECT_LE(bytes_after(op, shorter), small + kKeptBytesMax);
    }
  }
}

// Goal: old versions do not keep the store full: at the limit the oldest snapshot is revoked for
// the sake of a write, and no younger one that need not be.
TEST_P(MemoryConformance, TheLimitRevokesTheOldestSnapshot) {
  SKEP_NEEDS(snapshots);
  subject_.budget().set_limit(limit_bytes_);
  Model model;
  FillUp(model, value_bytes_);
  const auto oldest = engine_.OpenSnapshot(Subject::kStartMs);
  Batch deletes;
  for (const auto& [key, value] : model) deletes.Delete(key);
  Run(deletes);
  const auto younger = engine_.OpenSnapshot(Subject::kStartMs);
  ASSERT_TRUE(oldest.has_value() && younger.has_value());
  EXPECT_EQ(engine_.Statistics().items, 0u);
  const auto get_at = [&](SnapshotRef snapshot) {
    Batch batch;
    batch.set_snapshot(snapshot);
    batch.Get("key0");
    return Run(batch);
  };
  ASSERT_EQ(get_at(*oldest).verdict, Verdict::kDone);

  const std::string value(limit_bytes_ / 2, 'v');
  Batch batch;
  batch.Put("key0", value);
  EXPECT_EQ(Run(batch).verdict, Verdict::kDone);
  EXPECT_EQ(get_at(*oldest).verdict, Verdict::kRefused);
  EXPECT_EQ(get_at(*oldest).status.code(), Code::kSnapshotTooOld);
  EXPECT_EQ(get_at(*younger).verdict, Verdict::kAbsent);
  engine_.CloseSnapshot(*oldest);
  engine_.CloseSnapshot(*younger);
  subject_.ExpectNoOldVersions();
}

// Goal: an engine that is destroyed gives back all that it charged to its budget.
TEST_P(MemoryConformance, ADestroyedEngineLeavesNothingCharged) {
  MemoryBudget budget;
  {
    const auto engine = GetParam().Make(budget);
    const unsigned seed = PrintedSeed();
    RandomBatch random(seed);
    for (int i = 0; i < 200; ++i) {
      Batch batch(i % 2 == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
      batch.set_now_ms(Subject::kStartMs + static_cast<uint64_t>(i));
      random.Fill(batch);
      engine->Execute(batch);
      if (i % 50 == 0 && engine->traits().snapshots) {
        EXPECT_TRUE(engine->OpenSnapshot(Subject::kStartMs).has_value());
      }
    }
    EXPECT_EQ(engine->Statistics().bytes, budget.used());
  }
  EXPECT_EQ(budget.used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, MemoryConformance, testing::ValuesIn(EnginesUnderMemoryTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

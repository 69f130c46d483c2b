// What every engine must pass: the memory limit, and memory that comes back.
#include <map>

#include "engine/conformance.h"

namespace skep {
namespace {

class MemoryConformance : public EngineConformance {
 protected:
  using Model = std::map<std::string, std::string>;
  static constexpr uint64_t kLimitBytes = 4 << 20;
  // What one batch may store beyond the limit: the engine's own bytes beside the key and value.
  static constexpr uint64_t kSlackBytes = 64 * 1024;

  // One batch; its outcome.
  const Outcome& Run(Batch& batch) {
    batch.set_now_ms(Subject::kStartMs);
    engine_.gate().Wait(engine_.Execute(batch));
    EXPECT_STREQ(engine_.Verify(), nullptr);
    return batch.outcome(0);
  }

  // Puts until the engine refuses. The number of the key that was refused.
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
      if (subject_.budget().used() > kLimitBytes + kSlackBytes) {
        ADD_FAILURE() << "the engine stores beyond the limit";
        return i;
      }
    }
  }

  static void ExpectOutOfMemory(const Outcome& outcome) {
    EXPECT_EQ(outcome.verdict, Verdict::kRefused);
    EXPECT_EQ(outcome.status.code(), Code::kOutOfMemory);
    EXPECT_EQ(outcome.status.detail(), kLimitBytes);
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

// Goal: at the limit, what stores is refused and changes nothing; reads and deletes go on; after
// deletes, storing goes on.
TEST_P(MemoryConformance, TheLimitRefusesWhatStores) {
  subject_.budget().set_limit(kLimitBytes);
  Model model;
  const int refused = FillUp(model, 4000);
  ASSERT_GT(model.size(), 100u);
  const std::string big(kLimitBytes, 'b');
  Batch batch;
  batch.Put("key0", big);
  batch.Insert("new", big);
  batch.Update("key1", big);
  if (traits_.functions) batch.Apply("key2", functions::kAppend, big);
  Run(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) ExpectOutOfMemory(batch.outcome(slot));
  ExpectHolds(model);

  for (int i = 0; i < refused; i += 2) {
    Batch deletes;
    deletes.Delete(deletes.scratch().Copy("key" + std::to_string(i)));
    EXPECT_EQ(Run(deletes).verdict, Verdict::kDone);
    model.erase("key" + std::to_string(i));
  }
  subject_.MaintainAll();
  Batch again;
  again.Put("key0", "1");
  EXPECT_EQ(Run(again).verdict, Verdict::kDone);
  model["key0"] = "1";
  ExpectHolds(model);
}

// Goal: an atomic batch that does not fit is not half-applied.
TEST_P(MemoryConformance, TheLimitRefusesWholeAtomicBatches) {
  SKEP_NEEDS(atomic);
  subject_.budget().set_limit(kLimitBytes);
  Model model;
  FillUp(model, 4000);
  const std::string value(20'000, 'w');
  Batch batch(Batch::Kind::kAtomic);
  batch.Delete("key0");
  batch.Put("key1", "small");
  for (int i = 2; i < 20; ++i) batch.Put(batch.scratch().Copy("new" + std::to_string(i)), value);
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
  subject_.budget().set_limit(kLimitBytes);
  Model model;
  const int refused = FillUp(model, 1000);
  Batch batch;
  batch.DeleteRange(Range::All());
  EXPECT_EQ(Run(batch).integer, refused);
  Model again;
  EXPECT_GT(FillUp(again, 1000), refused / 2);
}

// Goal: what is deleted is given back, with and without snapshots meanwhile, by points and ranges.
// Method: near the empty engine's bytes: what stays is under a twentieth of what was there.
TEST_P(MemoryConformance, ReturnsToNearTheEmptyEngines) {
  const uint64_t empty = subject_.budget().used();
  for (const bool by_range : {false, true}) {
    if (by_range && !traits_.ordered) break;
    Subject fresh(*GetParam());
    const uint64_t start = fresh.budget().used();
    std::vector<SnapshotRef> snapshots;
    for (int i = 0; i < 3000; ++i) {
      Batch batch;
      batch.Put(batch.scratch().Copy("key" + std::to_string(i % 2000)),
                batch.scratch().Copy(std::string(static_cast<size_t>(i % 1000), 'v')));
      if (i == 2000 && traits_.snapshots) fresh.Open(snapshots);
      fresh.engine().Execute(batch);
    }
    const uint64_t full = fresh.budget().used();
    EXPECT_GE(full, start + 500'000);
    EXPECT_EQ(fresh.engine().Statistics().items, 2000u);
    Batch deletes;
    for (int i = 0; i < 2000 && !by_range; ++i) {
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

// Goal: a value keeps no more memory than it needs, whatever was there before.
// Method: from one MiB down to one byte, and to more than a short string holds in itself; by a
// write of a new value and by one that changes the value.
TEST_P(MemoryConformance, ShorterValuesGiveMemoryBack) {
  const std::string big(1 << 20, 'b');
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
      EXPECT_GE(bytes_after(Op::kPut, big), small + big.size() / 2);
      EXPECT_LE(bytes_after(op, shorter), small + kSlackBytes);
    }
  }
}

// Goal: old versions do not keep the store full: at the limit the oldest snapshot is given up for
// what is to be stored, and no younger one that need not be.
TEST_P(MemoryConformance, TheLimitRevokesTheOldestSnapshot) {
  SKEP_NEEDS(snapshots);
  subject_.budget().set_limit(kLimitBytes);
  Model model;
  FillUp(model, 4000);
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

  const std::string value(kLimitBytes / 2, 'v');
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

// Goal: an engine gives its budget back all it charged.
TEST_P(MemoryConformance, ADestroyedEngineLeavesNothingCharged) {
  MemoryBudget budget;
  {
    const auto engine = GetParam()->make({.budget = &budget});
    const unsigned seed = PrintedSeed();
    RandomBatch random(seed);
    for (int i = 0; i < 200; ++i) {
      Batch batch;
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

INSTANTIATE_TEST_SUITE_P(Engines, MemoryConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

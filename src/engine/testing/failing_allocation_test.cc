// Goal: if the process has no memory, a call of an engine may throw std::bad_alloc. Then nothing is
// held: no lock, version, epoch or gate. Each operation of an unordered batch is done or not, an
// atomic batch as a whole; every invariant holds, and the engine goes on.
// Method: every call of every engine is made while the n-th operator new fails, until none does:
// for every n up to 60 and about every eighth behind it, drawn at random, as most allocations of a
// long call are of few kinds; SKEP_FAULTS=all asks for every n. Each call has a thread of its own,
// so that everything thread-local is made anew; the same thread then uses, checks and empties the
// engine, and would hang if a lock was left.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/failing_new_test.h"
#include "base/memory_budget.h"
#include "base/wanted_faults_test.h"
#include "engine/watches.h"
#include "keyspace/factory.h"
#include "skep/function.h"

namespace skep {
namespace {

constexpr uint64_t kNow = 1'000'000;
constexpr uint32_t kKeys = 60;
constexpr size_t kFixedBytes = 8;  // of keys and values of engines that take no others

using State = std::map<std::string, std::string>;

// The differences between engines.
struct Subject {
  const char* name;
  const char* engine;
  EngineOptions options;
  bool fixed = false;
  uint32_t keys_max = 60 * kKeys;  // of a batch of many puts; enough to build every kind of node
};

std::vector<Subject> Subjects() {
  BtreeOptions small{.node_bytes = 2048};
  BtreeOptions paper{.node_bytes = 2048, .layout = NodeLayout::kPaper};
  return {{"Btree", "btree", {.index = {.btree = small}}, false, 12 * kKeys},
          {"BtreePaper", "btree", {.index = {.btree = paper}}, false, 12 * kKeys},
          {"Hash", "hash", {.numbers_writes = false}},
          {"HashNumbered", "hash", {.numbers_writes = true}},
          {"Hashleaf", "hashleaf", {.index = {.hashleaf = {.leaf_bytes = 32 * 1024}}}, true},
          {"HashleafThreads",
           "hashleaf",
           {.index = {.hashleaf = {.leaf_bytes = 32 * 1024, .threads = 3}}},
           true}};
}

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

// An engine with some keys, and the means to call it.
class Scene {
 public:
  explicit Scene(const Subject& subject) : subject_(subject) {
    EngineOptions options = subject.options;
    options.budget = &budget_;
    engine_ = FindEngine(subject.engine)->make(options);
    SKEP_CHECK(engine_ != nullptr);
    Batch batch = NewBatch();
    for (uint32_t i = 0; i < kKeys; ++i) Put(batch, Key(i), Value(i, 0));
    Execute(batch);
  }

  Engine& engine() { return *engine_; }
  const EngineTraits& traits() const { return engine_->traits(); }
  bool fixed() const { return subject_.fixed; }
  uint32_t keys_max() const { return subject_.keys_max; }

  Batch NewBatch(Batch::Kind kind = Batch::Kind::kUnordered) const {
    Batch batch(kind);
    batch.set_now_ms(kNow);
    return batch;
  }
  // Some keys are so long, and some values so large, that they lie outside the nodes.
  std::string Key(uint32_t i) const {
    char key[32];
    snprintf(key, sizeof key, "key%05u", i);
    if (!subject_.fixed && i % 7 == 3) return key + std::string(700, 'k');
    return std::string(key, kFixedBytes);
  }
  std::string Value(uint32_t i, uint32_t round) const {
    char value[32];
    snprintf(value, sizeof value, "v%03u%04u", round, i);
    if (!subject_.fixed && i % 5 == 2) return value + std::string(i % 2 == 0 ? 40'000 : 300, 'v');
    return std::string(value, kFixedBytes);
  }
  static void Put(Batch& batch, std::string_view key, std::string_view value,
                  uint64_t deadline_ms = 0) {
    Scratch& bytes = batch.scratch();
    const std::string_view kept = bytes.Copy(key);
    batch.Add({.op = Op::kPut,
               .key = kept,
               .value = bytes.Copy(value),
               .other = {},
               .deadline_ms = deadline_ms});
  }

  // Executes the batch and waits until all may see it. Numbers of writes are released by a log,
  // which is not here.
  void Execute(Batch& batch) {
    const Version ticket = engine_->Execute(batch);
    if (!subject_.options.numbers_writes) engine_->AwaitRelease(ticket);
  }

  State Contents() {
    Batch batch = NewBatch();
    for (uint32_t i = 0; i < keys_max(); ++i) batch.Get(batch.scratch().Copy(Key(i)));
    Execute(batch);
    State state;
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (batch.outcome(i).verdict == Verdict::kDone) {
        state.emplace(batch.requests()[i].key, batch.outcome(i).value);
      }
    }
    return state;
  }

 private:
  const Subject subject_;
  MemoryBudget budget_{0};
  std::unique_ptr<Engine> engine_;
};

// A call of an engine that is tested.
struct Ask {
  const char* name;
  // Prepares the call, which it returns; an allocation fails while that runs.
  std::function<std::function<void()>(Scene&, Batch&)> prepare;
  Batch::Kind kind = Batch::Kind::kUnordered;
  bool (*can)(const EngineTraits&) = [](const EngineTraits&) { return true; };
};

using Fill = std::function<void(Scene&, Batch&)>;

Ask OfBatch(
    const char* name, Fill fill, Batch::Kind kind = Batch::Kind::kUnordered,
    bool (*can)(const EngineTraits&) = [](const EngineTraits&) { return true; }) {
  return {name,
          [fill](Scene& scene, Batch& batch) -> std::function<void()> {
            fill(scene, batch);
            return [&] { scene.engine().Execute(batch); };
          },
          kind, can};
}

void FillOverwrites(Scene& scene, Batch& batch) {
  for (uint32_t i = 0; i < kKeys; i += 2) Scene::Put(batch, scene.Key(i), scene.Value(i + 3, 1));
}
void FillMixture(Scene& scene, Batch& batch) {
  const auto key = [&](uint32_t i) { return batch.scratch().Copy(scene.Key(i)); };
  FillOverwrites(scene, batch);
  for (uint32_t i = 1; i < 20; i += 2) batch.Delete(key(i), Request::kReturnPrevious);
  for (uint32_t i = kKeys; i < kKeys + 30; ++i) Scene::Put(batch, scene.Key(i), scene.Value(i, 2));
}

const auto kAtomic = Batch::Kind::kAtomic;
bool IsOrdered(const EngineTraits& traits) { return traits.ordered; }
bool Expires(const EngineTraits& traits) { return traits.expiry; }
bool HasSnapshots(const EngineTraits& traits) { return traits.snapshots; }
bool Walks(const EngineTraits& traits) { return traits.walks; }

std::vector<Ask> AllAsks() {
  std::vector<Ask> asks;
  asks.push_back(OfBatch("Puts", [](Scene& scene, Batch& batch) {
    for (uint32_t i = kKeys; i < kKeys + 80; ++i)
      Scene::Put(batch, scene.Key(i), scene.Value(i, 0));
  }));
  asks.push_back(OfBatch("ManyPuts", [](Scene& scene, Batch& batch) {
    for (uint32_t i = kKeys; i < scene.keys_max() - kKeys; ++i)
      Scene::Put(batch, scene.Key(i), scene.Value(i, 0));
  }));
  asks.push_back(OfBatch("Mixture", FillMixture));
  asks.push_back(OfBatch("OneKey", [](Scene& scene, Batch& batch) {
    for (uint32_t i = 0; i < 9; ++i) Scene::Put(batch, scene.Key(7), scene.Value(7, 3));
    Scene::Put(batch, scene.Key(9), scene.Value(9, 3));
    Scene::Put(batch, scene.Key(7), scene.Value(7, 3));
  }));
  asks.push_back(OfBatch("Gets", [](Scene& scene, Batch& batch) {
    for (uint32_t i = 0; i < kKeys; ++i) batch.Get(batch.scratch().Copy(scene.Key(i)));
  }));
  asks.push_back(OfBatch("Atomic", FillMixture, kAtomic));
  asks.push_back(OfBatch(
      "AtomicParts",
      [](Scene& scene, Batch& batch) {
        const auto key = [&](uint32_t i) { return batch.scratch().Copy(scene.Key(i)); };
        batch.RequirePresent(key(1));
        Scene::Put(batch, scene.Key(90), scene.Value(90, 1));
        batch.Move(key(2), key(91));
        batch.Delete(key(4));
      },
      kAtomic));
  asks.push_back(OfBatch(
      "AtomicManyPuts",
      [](Scene& scene, Batch& batch) {
        for (uint32_t i = 10; i < scene.keys_max() / 2; ++i) {
          Scene::Put(batch, scene.Key(i), scene.Value(i, 4));
        }
      },
      kAtomic));
  asks.push_back(OfBatch(
      "AtomicRange",
      [](Scene& scene, Batch& batch) {
        batch.DeleteRange(Range::Between(batch.scratch().Copy(scene.Key(10)),
                                         batch.scratch().Copy(scene.Key(40))));
        Scene::Put(batch, scene.Key(12), scene.Value(12, 1));
        batch.Scan(Range::All());
      },
      kAtomic, IsOrdered));
  asks.push_back(OfBatch(
      "DeleteRange",
      [](Scene& scene, Batch& batch) {
        batch.DeleteRange(Range::Between(batch.scratch().Copy(scene.Key(10)),
                                         batch.scratch().Copy(scene.Key(40))));
      },
      // A DeleteRange is one operation on many keys.
      Batch::Kind::kUnordered, IsOrdered));
  asks.push_back(OfBatch("DeleteAll", [](Scene&, Batch& batch) { batch.DeleteAll(); }));
  asks.push_back(OfBatch(
      "Scans",
      [](Scene&, Batch& batch) {
        batch.Scan(Range::All());
        batch.Scan(Range::All(), {.limit = 20, .reverse = true});
        batch.Count(Range::All());
      },
      Batch::Kind::kUnordered, IsOrdered));
  asks.push_back(OfBatch("Samples", [](Scene&, Batch& batch) { batch.Sample(7); }));
  asks.push_back(
      OfBatch("Walk", [](Scene&, Batch& batch) { batch.Walk(0); }, Batch::Kind::kUnordered, Walks));
  asks.push_back(OfBatch(
      "Deadlines",
      [](Scene& scene, Batch& batch) {
        for (uint32_t i = 0; i < kKeys; i += 2) {
          batch.Expire(batch.scratch().Copy(scene.Key(i)), kNow + 1000 + i);
          Scene::Put(batch, scene.Key(i + 1), scene.Value(i, 1), kNow + 2000);
        }
      },
      Batch::Kind::kUnordered, Expires));
  asks.push_back(OfBatch(
      "AtomicDeadlines",
      [](Scene& scene, Batch& batch) {
        for (uint32_t i = 0; i < kKeys; i += 2) {
          batch.Expire(batch.scratch().Copy(scene.Key(i)), kNow + 1000 + i);
          Scene::Put(batch, scene.Key(i + 1), scene.Value(i, 1), kNow + 2000);
        }
      },
      kAtomic, Expires));
  asks.push_back({"Snapshot",
                  [](Scene& scene, Batch&) -> std::function<void()> {
                    return [&scene] {
                      const auto snapshot = scene.engine().OpenSnapshot(kNow);
                      if (snapshot) scene.engine().CloseSnapshot(*snapshot);
                    };
                  },
                  Batch::Kind::kUnordered, HasSnapshots});
  asks.push_back({"WritesUnderASnapshot",
                  [](Scene& scene, Batch& batch) -> std::function<void()> {
                    const SnapshotRef snapshot = *scene.engine().OpenSnapshot(kNow);
                    FillMixture(scene, batch);
                    return [&scene, &batch, snapshot] {
                      struct Closing {
                        Scene& scene;
                        SnapshotRef snapshot;
                        ~Closing() { scene.engine().CloseSnapshot(snapshot); }
                      } const closing{scene, snapshot};
                      scene.engine().Execute(batch);
                      scene.engine().Maintain(kNow);
                    };
                  },
                  Batch::Kind::kUnordered, HasSnapshots});
  asks.push_back({"WritesUnderAWalk", [](Scene& scene, Batch& batch) -> std::function<void()> {
                    std::shared_ptr<PairIterator> walk =
                        std::move(*scene.engine().OpenPairIterator(kNow));
                    FillMixture(scene, batch);
                    return [&scene, &batch, walk] {
                      scene.engine().Execute(batch);
                      while (true) {
                        const auto pairs = walk->Next();
                        if (!pairs || pairs->empty()) break;
                      }
                    };
                  }});
  asks.push_back({"Walk", [](Scene& scene, Batch&) -> std::function<void()> {
                    return [&scene] {
                      const auto walk = scene.engine().OpenPairIterator(kNow);
                      while (walk) {
                        const auto pairs = (*walk)->Next();
                        if (!pairs || pairs->empty()) break;
                      }
                    };
                  }});
  asks.push_back({"Watch", [](Scene& scene, Batch&) -> std::function<void()> {
                    return [&scene] {
                      const auto watch = scene.engine().Watch(scene.Key(3), kNow);
                      if (watch) scene.engine().Unwatch(*watch);
                    };
                  }});
  asks.push_back({"MaintainExpired",
                  [](Scene& scene, Batch&) -> std::function<void()> {
                    Batch batch = scene.NewBatch();
                    for (uint32_t i = 0; i < kKeys; i += 2) {
                      batch.Expire(batch.scratch().Copy(scene.Key(i)), kNow + 1);
                    }
                    scene.engine().Execute(batch);
                    return [&scene] {
                      while (scene.engine().Maintain(kNow + 10'000)) {
                      }
                    };
                  },
                  Batch::Kind::kUnordered, Expires});
  asks.push_back({"Maintain", [](Scene& scene, Batch& batch) -> std::function<void()> {
                    FillMixture(scene, batch);
                    scene.engine().Execute(batch);
                    Batch gone = scene.NewBatch();
                    for (uint32_t i = 30; i < kKeys; ++i) {
                      gone.Delete(gone.scratch().Copy(scene.Key(i)));
                    }
                    scene.engine().Execute(gone);
                    return [&scene] {
                      while (scene.engine().Maintain(kNow)) {
                      }
                    };
                  }});
  return asks;
}

// The states before and after the call if nothing fails.
struct Expected {
  State before, after;
};

class FailingAllocation : public testing::TestWithParam<Subject> {
 protected:
  static Expected Foresee(const Ask& ask) {
    Scene scene(GetParam());
    Batch batch = scene.NewBatch(ask.kind);
    const auto act = ask.prepare(scene, batch);
    Expected expected{.before = scene.Contents(), .after = {}};
    act();
    expected.after = scene.Contents();
    return expected;
  }

  // Which allocation fails after the n-th.
  static uint64_t Next(uint64_t n) {
    static std::random_device random;
    return n < 60 || WantsAllFaults() ? n + 1 : n + 1 + random() % 15;
  }

  // False if no allocation has failed.
  static bool FailAt(uint64_t n, const Ask& ask, const Expected& expected) {
    Scene scene(GetParam());
    Batch batch = scene.NewBatch(ask.kind);
    bool has_failed = false;
    {
      const auto act = ask.prepare(scene, batch);
      FailingNew::FailAt(n);
      try {
        act();
      } catch (const std::bad_alloc&) {
      }
      has_failed = FailingNew::has_failed();
      FailingNew::FailAt(0);
    }
    const State now = scene.Contents();
    const bool is_whole = ask.kind == kAtomic || batch.size() == 1;
    if (is_whole) {
      EXPECT_TRUE(now == expected.before || now == expected.after);
    } else {
      ExpectEachKeyOf(now, expected);
    }
    EXPECT_STREQ(scene.engine().Verify(), nullptr);
    GoOn(scene);
    return has_failed;
  }

  static std::optional<std::string> ValueIn(const State& state, const std::string& key) {
    const auto at = state.find(key);
    return at == state.end() ? std::nullopt : std::optional(at->second);
  }
  static void ExpectEachKeyOf(const State& now, const Expected& expected) {
    State all = now;
    all.insert(expected.before.begin(), expected.before.end());
    all.insert(expected.after.begin(), expected.after.end());
    for (const auto& [key, value] : all) {
      const auto is = ValueIn(now, key);
      EXPECT_TRUE(is == ValueIn(expected.before, key) || is == ValueIn(expected.after, key))
          << key.substr(0, kFixedBytes);
    }
  }

  // Locks are free; announced readers and writers have ended; a watch of a key sees a write.
  static void GoOn(Scene& scene) {
    const auto watch = scene.engine().Watch(scene.Key(3), kNow);
    ASSERT_TRUE(watch);
    for (const auto kind : {Batch::Kind::kUnordered, kAtomic}) {
      Batch batch = scene.NewBatch(kind);
      for (uint32_t i = 0; i < kKeys * 2; ++i) Scene::Put(batch, scene.Key(i), scene.Value(i, 9));
      scene.Execute(batch);
      for (uint32_t i = 0; i < batch.size(); ++i) {
        ASSERT_EQ(batch.outcome(i).verdict, Verdict::kDone);
      }
    }
    if (scene.traits().atomic) {
      Batch condition = scene.NewBatch(kAtomic);
      const std::string key = scene.Key(3);
      condition.RequireUnchanged(key, *watch);
      scene.Execute(condition);
      EXPECT_FALSE(condition.applied());
    }
    scene.engine().Unwatch(*watch);
    Batch batch = scene.NewBatch();
    batch.DeleteAll();
    scene.Execute(batch);
    while (scene.engine().Maintain(kNow)) {
    }
    EXPECT_STREQ(scene.engine().Verify(), nullptr);
    EXPECT_TRUE(scene.Contents().empty());
  }
};

TEST_P(FailingAllocation, LeavesNothingHeldOrHalfDone) {
  for (const Ask& ask : AllAsks()) {
    if (!ask.can(Scene(GetParam()).traits())) continue;
    Expected expected;
    std::thread([&] { expected = Foresee(ask); }).join();
    bool goes_on = true;
    int failed = 0;
    for (uint64_t n = 1; goes_on && !HasFailure(); n = Next(n)) {
      std::thread([&] {
        SCOPED_TRACE(testing::Message() << ask.name << ", allocation " << n);
        goes_on = FailAt(n, ask, expected);
        failed += goes_on;
      }).join();
    }
    if (HasFailure()) return;
    RecordProperty(ask.name, failed);
  }
}

// Goal: a watch that could not be made is not counted, and the next one of its key sees writes.
TEST(FailingWatch, WatchesNothing) {
  const std::string key(300, 'k');
  bool goes_on = true;
  for (uint64_t n = 1; goes_on; ++n) {
    SCOPED_TRACE(n);
    MemoryBudget budget(0);
    const uint64_t before = budget.used();
    Watches watches;
    watches.set_budget(&budget);
    FailingNew::FailAt(n);
    try {
      const auto watch = watches.Add(key);
      watches.Arm(*watch, true, 0);
      watches.Remove(*watch);
    } catch (const std::bad_alloc&) {
    }
    goes_on = FailingNew::has_failed();
    FailingNew::FailAt(0);
    EXPECT_EQ(budget.used(), before);
    const auto watch = watches.Add(key);
    watches.Arm(*watch, true, 0);
    watches.Touch(key, 5);
    const auto seen = watches.Judge(*watch, key, 1);
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->unchanged);
    watches.Remove(*watch);
    EXPECT_EQ(budget.used(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailingAllocation, testing::ValuesIn(Subjects()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace skep

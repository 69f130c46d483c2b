// conformance.h: the parts that the tests which every engine must pass have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "engine/testing/oracle.h"
#include "engine/testing/random_batch.h"
#include "keyspace/factory.h"

namespace skep {

// A seed that a failing test's output names, and that the environment may give: SKEP_SEED.
inline unsigned PrintedSeed() {
  const char* const wanted = std::getenv("SKEP_SEED");
  const unsigned seed = wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10))
                                          : std::random_device{}();
  std::printf("seed %u\n", seed);
  return seed;
}

// An engine, and options that are not its defaults.
struct EngineVariant {
  std::string name;  // in names of tests: letters, digits and underscores
  const EngineInfo* info = nullptr;
  EngineOptions options = {};
  bool in_process = true;   // any millisecond can be now, and a gigabyte is soon copied
  bool keeps_order = true;  // operations on one key in batches under way keep their order

  std::unique_ptr<Engine> Make(
      MemoryBudget& budget,
      uint64_t snapshot_age_ms_max = EngineOptions{}.snapshot_age_ms_max) const {
    EngineOptions all = options;
    all.budget = &budget;
    all.snapshot_age_ms_max = snapshot_age_ms_max;
    return info->make(all);
  }
};

inline void PrintTo(const EngineVariant& variant, std::ostream* os) { *os << variant.name; }

// The engines and variants of this build (conformance_engines.cc).
std::vector<EngineVariant> EnginesUnderTest();
// For tests that fill much memory, which a sanitizer makes expensive: under one, without variants
// of other node sizes.
std::vector<EngineVariant> EnginesUnderMemoryTest();

inline std::string EngineTestName(const testing::TestParamInfo<EngineVariant>& info) {
  return info.param.name;
}

// One engine and its oracle. Owner: the test's thread.
class Subject {
 public:
  static constexpr uint64_t kStartMs = 1'000'000;
  static constexpr uint64_t kSnapshotAgeMsMax = 10'000;

  explicit Subject(const EngineVariant& variant)
      : engine_(variant.Make(budget_, kSnapshotAgeMsMax)), oracle_(engine_->traits()) {}
  // Takes an engine that was made with another budget.
  explicit Subject(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)), oracle_(engine_->traits()) {}

  // Executes the batch and checks all that can be checked of a single one: outcomes against the
  // oracle, ticket and gate, statistics, the engine's invariants.
  void Run(Batch& batch) {
    batch.set_now_ms(now_ms_);
    const Version released = engine_->gate().released();
    const Version ticket = engine_->Execute(batch);
    engine_->AwaitRelease(ticket);
    ASSERT_GE(engine_->gate().released(), released);
    ASSERT_EQ(oracle_.Check(batch, ticket, released), "");
    ASSERT_STREQ(engine_->Verify(), nullptr);
    const EngineStatistics statistics = engine_->Statistics();
    ASSERT_GE(statistics.items, oracle_.items_min());
    ASSERT_LE(statistics.items, oracle_.items_max());
    ASSERT_EQ(statistics.snapshots, oracle_.snapshots());
  }

  // Executes one batch of one request; returns its outcome, whose bytes live until the next call.
  const Outcome& RunOne(const Request& request) {
    one_.Clear();
    one_.Add(request);
    Run(one_);
    return one_.outcome(0);
  }

  void Open(std::vector<SnapshotRef>& snapshots) {
    const auto opened = engine_->OpenSnapshot(now_ms_);
    ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
    ASSERT_NE(opened->id, 0u);
    oracle_.Advance(now_ms_);
    ASSERT_EQ(opened->now_ms, oracle_.now_ms());
    oracle_.OpenSnapshot(*opened);
    snapshots.push_back(*opened);
  }

  void Close(SnapshotRef snapshot) {
    engine_->CloseSnapshot(snapshot);
    oracle_.DropSnapshot(snapshot);
  }

  // Watches the key. Returns the number for kRequireUnchanged; 0 after a failure.
  uint64_t Watch(std::string_view key) {
    const auto watch = engine_->Watch(key, now_ms_);
    EXPECT_TRUE(watch.has_value());
    if (!watch) return 0;
    oracle_.Watch(*watch, key, now_ms_);
    return *watch;
  }

  void Unwatch(uint64_t watch) {
    engine_->Unwatch(watch);
    oracle_.Unwatch(watch);
  }

  // Maintains until nothing is left to do: then no key is held that is past its deadline now.
  void MaintainAll() {
    oracle_.Advance(now_ms_);
    while (engine_->Maintain(now_ms_)) {
    }
    oracle_.Reclaim();
  }
  // Call after MaintainAll(), if the oracle has seen all batches.
  void ExpectReclaimed() {
    EXPECT_EQ(engine_->Statistics().items, oracle_.items_min());
    EXPECT_STREQ(engine_->Verify(), nullptr);
  }

  // Checks that nothing is kept for snapshots once there are none.
  void ExpectNoOldVersions() {
    MaintainAll();
    EXPECT_EQ(engine_->Statistics().old_versions, 0u);
    EXPECT_EQ(engine_->Statistics().snapshots, 0u);
    EXPECT_EQ(engine_->Statistics().oldest_snapshot, 0u);
    EXPECT_STREQ(engine_->Verify(), nullptr);
  }

  Engine& engine() { return *engine_; }
  Oracle& oracle() { return oracle_; }
  MemoryBudget& budget() { return budget_; }
  const EngineTraits& traits() const { return engine_->traits(); }
  uint64_t now_ms() const { return now_ms_; }
  void Pass(uint64_t ms) { now_ms_ += ms; }
  // The clock may be set back; a key that is gone stays gone.
  void set_now_ms(uint64_t now_ms) { now_ms_ = now_ms; }

 private:
  MemoryBudget budget_;
  std::unique_ptr<Engine> engine_;
  Oracle oracle_;
  uint64_t now_ms_ = kStartMs;
  Batch one_;
};

class EngineConformance : public testing::TestWithParam<EngineVariant> {
 protected:
  // Long enough that engines which keep short keys and values in their nodes keep these elsewhere.
  static constexpr size_t kLongBytes = 700;

  // A key or value that begins with `text`, which is short; at most as long as the engine allows.
  std::string Long(std::string_view text) const {
    const size_t bytes_max = std::min(traits_.key_bytes_max, traits_.value_bytes_max);
    return std::string(text).append(std::min(kLongBytes, bytes_max - text.size()), 'x');
  }

  Outcome Put(std::string_view key, std::string_view value, uint64_t deadline_ms = 0) {
    return subject_.RunOne(
        {.op = Op::kPut, .key = key, .value = value, .other = {}, .deadline_ms = deadline_ms});
  }
  std::optional<std::string> Get(std::string_view key) {
    const Outcome& out = subject_.RunOne({.op = Op::kGet, .key = key});
    if (out.verdict != Verdict::kDone) return std::nullopt;
    return std::string(out.value);
  }
  // Returns the key's deadline; 0: it has none, or there is no such key.
  uint64_t DeadlineOf(std::string_view key) {
    return subject_.RunOne({.op = Op::kGet, .key = key}).deadline_ms;
  }
  // Number of keys the engine holds, including expired ones that are not reclaimed.
  uint64_t items() const { return engine_.Statistics().items; }

  Subject subject_{GetParam()};
  Engine& engine_ = subject_.engine();
  const EngineTraits& traits_ = engine_.traits();
};

// Skips a test that needs a feature which the engine declares not to have. conformance_test.cc
// tests that it then refuses the requests.
#define SKEP_NEEDS(feature) \
  if (!traits_.feature) GTEST_SKIP() << traits_.name << " has no " << #feature

}  // namespace skep

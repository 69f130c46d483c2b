// Large values: whatever a store has acknowledged, a recovery applies again, in bounded memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "base/varint.h"
#include "durable/feed.h"
#include "durable/log_test.h"
#include "durable/repair.h"
#include "durable/replay.h"
#include "durable/snapshot_loader.h"
#include "durable/snapshot_test.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "keyspace/factory.h"
#include "model/model_engine.h"

namespace skep::durable {
namespace {

constexpr size_t kValueBytes = size_t{1} << 20;

// Notes the most that a batch has brought and made. It hides the bulk load of the inner engine.
class MeteredEngine final : public ForwardingEngine {
 public:
  explicit MeteredEngine(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}

  Version Execute(Batch& batch) override {
    size_t bytes = 0;
    for (const Request& r : batch.requests()) bytes += r.key.size() + r.value.size();
    request_bytes = std::max(request_bytes, bytes);
    ++batches;
    const Version ticket = inner().Execute(batch);
    made_bytes = std::max(made_bytes, batch.answer_bytes());
    return ticket;
  }

  uint64_t batches = 0;
  size_t request_bytes = 0;
  size_t made_bytes = 0;
};

class RecoveryMemory : public testing::TestWithParam<const char*> {
 protected:
  std::string Get(const std::string& key) {
    Batch batch;
    batch.Get(key);
    engine_.inner().Execute(batch);
    return std::string(batch.outcome(0).value);
  }

  MemoryBudget budget_{0};
  MeteredEngine engine_{FindEngine(GetParam())->make({.budget = &budget_})};
};

INSTANTIATE_TEST_SUITE_P(Engines, RecoveryMemory, testing::Values("btree", "hash", "model"));

// The bytes of the values that functions change. An engine may copy a value together for a function
// that sees all of it, which is made and counted, too.
constexpr size_t kChangedBytes = kValueBytes / 2;

// Appends, and sees the whole value, unlike the function that APPEND calls.
const Function* WholeAppend() {
  static const Function* const append =
      *RegisterFunction("test-whole-append", [](const FunctionInput& input) {
        const std::string_view value = input.value.value_or(std::string_view());
        const size_t bytes = value.size() + input.operand.size();
        char* const to = input.scratch->Allocate(bytes);
        std::ranges::copy(input.operand, std::ranges::copy(value, to).out);
        return FunctionEffect{.action = FunctionEffect::Action::kReplace, .value = {to, bytes}};
      });
  return append;
}

// The payloads of a log: two large values, each changed `times` times by functions that make the
// whole value anew, and at last a vector of which elements are updated and returned.
std::vector<std::string> LogOfFunctions(int times) {
  std::vector<std::string> log;
  Version version = 0;
  const auto add = [&](LogChange change) {
    change.version = ++version;
    ChangeEncoder(log.emplace_back(), 0, 0, version).Add(change);
  };
  const std::string value(kChangedBytes, 'v');
  for (const char* key : {"a", "b"}) add({.key = key, .value = value});
  const Function* const append = WholeAppend();
  for (int i = 0; i < times; ++i) {
    for (const char* key : {"a", "b"}) {
      const std::string operand = std::to_string(i % 10);
      add({.kind = LogChange::Kind::kApply, .key = key, .value = operand, .function = append});
    }
  }
  Batch made;
  const int64_t one = 1;
  made.UpdateElements("v", FindFunction(FunctionKind::kUpdate, "add", Element::kI64),
                      {reinterpret_cast<const char*>(&one), sizeof(one)},
                      {.returns = UpdateOptions::Returns::kNew, .create = kChangedBytes / 8});
  const Request& update = made.requests().front();
  for (int i = 0; i < times; ++i) {
    add({.kind = LogChange::Kind::kApply,
         .key = update.key,
         .value = update.value,
         .function = update.function});
  }
  std::string& progress = log.emplace_back(1, static_cast<char>(RecordType::kProgress));
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{0}, version}) {
    AppendVarint(progress, number);
  }
  return log;
}

// Goal: functions over large values are replayed in batches whose answers have a bound, whatever
//   the log has of them; nothing is refused, and each is applied once, in its order. A repair does
//   the same, and leaves nothing out.
// Method: 60 MiB of new values out of 120 changes, which fit into one batch.
TEST_P(RecoveryMemory, AReplayOfFunctionsIsBounded) {
  constexpr int kTimes = 40;
  for (const bool repairs : {false, true}) {
    SCOPED_TRACE(repairs ? "repair" : "start");
    uint64_t refused = 0;
    const auto patient = MakePatient(engine_, &refused);
    Replay replay(
        [&](uint32_t) { return Replay::Target{.engine = repairs ? patient.get() : &engine_}; }, 1);
    for (const std::string& payload : LogOfFunctions(kTimes)) {
      const auto type = static_cast<RecordType>(payload[0]);
      ASSERT_TRUE(replay.Add({.type = type, .payload = payload}).ok()) << replay.problem();
    }
    const Status s = replay.Finish();
    ASSERT_TRUE(s.ok()) << s.ToString();
    EXPECT_EQ(refused, 0u);
    EXPECT_LE(engine_.made_bytes, 2 * Feed::kAnswerBytesWanted);
    std::string wanted(kChangedBytes, 'v');
    for (int i = 0; i < kTimes; ++i) wanted += std::to_string(i % 10);
    for (const char* key : {"a", "b"}) EXPECT_TRUE(Get(key) == wanted) << key;
    const auto updates = static_cast<char>(kTimes * (repairs ? 2 : 1));
    EXPECT_EQ(Get("v").substr(0, 8), std::string(1, updates) + std::string(7, '\0'));
  }
}

// Goal: what a snapshot has already is not kept in memory, however much of it the log has.
TEST_P(RecoveryMemory, WhatASnapshotHasIsNotKept) {
  Version last = 0;
  const std::vector<std::string> log = LogOfFunctions(40);
  for (const bool is_there : {true, false}) {
    Replay replay([&](uint32_t) { return Replay::Target{.engine = &engine_, .has = last}; }, 1);
    size_t waiting = 0;
    last = is_there ? 1'000'000 : 0;
    for (size_t i = 0; i + 1 < log.size();
         ++i) {  // without the progress, which lets them be applied
      const auto type = static_cast<RecordType>(log[i][0]);
      ASSERT_TRUE(replay.Add({.type = type, .payload = log[i]}).ok()) << replay.problem();
      waiting = std::max(waiting, replay.waiting());
    }
    EXPECT_EQ(waiting, is_there ? 0 : log.size() - 1);
  }
}

// Goal: requests for which the engine has no room in a batch are executed behind it, in the order
// of their key.
// Method: random operations on four keys, many of which make or return the whole value, in batches
//   that may make little. The model does all of it in one.
TEST_P(RecoveryMemory, WhatABatchHasNoRoomForComesLater) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  ModelEngine model({.budget = &budget_});
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI8);
  constexpr const char* kKeys[] = {"a", "b", "c", "d"};
  const int rounds = kSanitized ? 30 : 300;
  for (int round = 0; round < rounds; ++round) {
    Feed feed(engine_);
    Batch whole;
    feed.batch().set_answer_bytes_max(random.Below(3000));
    const uint64_t count = random.Below(15) + 1;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view key = kKeys[random.Below(4)];
      const std::string_view text = whole.scratch().Copy(std::string(random.Below(500), 'x'));
      switch (random.Below(6)) {
        case 0:
          whole.Put(key, text, Request::kReturnPrevious);
          break;
        case 1:
          whole.Delete(key);
          break;
        case 2:
          whole.Put(key, text);
          break;
        case 3:
          // Without `create` an absent key, or one without bytes, would refuse it.
          whole.UpdateElements(key, add, "1", {.create = 50});
          break;
        default:
          whole.Apply(key, functions::kAppend, text);
      }
      feed.batch().Add(whole.requests().back());
      const Status s = feed.Added(1);
      ASSERT_TRUE(s.ok()) << s.ToString();
    }
    const Status s = feed.Finish();
    ASSERT_TRUE(s.ok()) << s.ToString();
    model.Execute(whole);
    for (const char* key : kKeys) {
      Batch get;
      get.Get(key);
      model.Execute(get);
      ASSERT_EQ(Get(key), get.outcome(0).value) << key << " in round " << round;
    }
  }
  EXPECT_GT(engine_.batches, static_cast<uint64_t>(rounds));
}

// Goal: large items of a snapshot come to an engine in batches of bounded size, of a whole snapshot
//   and of a damaged one.
TEST_P(RecoveryMemory, ALoadIsBounded) {
  constexpr int kItems = 40;
  TestSnapshot snapshot = {.keyspaces = {{.index = 0, .engine = GetParam(), .version = 1}}};
  for (int i = 0; i < kItems; ++i) {
    snapshot.items.push_back({0, std::to_string(10 + i), std::string(kValueBytes + i, 'v')});
  }
  Trace trace;
  SimFileSystem disk(1, trace, {});
  ASSERT_TRUE(WriteSnapshot(disk, "snapshot", Counted(snapshot)).ok());
  const auto engine_of = [&](uint32_t) -> Result<Engine*> { return &engine_; };
  for (const bool is_damaged : {false, true}) {
    SCOPED_TRACE(is_damaged ? "damaged" : "whole");
    Batch clear;
    clear.DeleteAll();
    engine_.inner().Execute(clear);
    if (is_damaged) {
      ASSERT_TRUE(LoadDamagedSnapshot(disk, "snapshot", engine_of).has_value());
    } else {
      const auto reader = SnapshotReader::Open(disk, "snapshot");
      ASSERT_TRUE(LoadSnapshot(**reader, engine_of, 1).ok());
    }
    EXPECT_LE(engine_.request_bytes, Feed::kRequestBytesMax + 2 * kValueBytes);
    EXPECT_EQ(engine_.made_bytes, 0u);
    for (int i = 0; i < kItems; ++i) {
      EXPECT_EQ(Get(std::to_string(10 + i)).size(), kValueBytes + i);
    }
  }
}

}  // namespace
}  // namespace skep::durable

// A replay by several threads, beside one by a single thread.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/varint.h"
#include "durable/log_test.h"
#include "durable/replay.h"
#include "keyspace/factory.h"

namespace skep::durable {
namespace {

constexpr uint32_t kKeys = 3000;

std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }

std::string ProgressOf(Version complete) {
  std::string payload = {static_cast<char>(RecordType::kProgress)};
  AppendVarint(payload, 0);
  AppendVarint(payload, 1);
  AppendVarint(payload, 0);
  AppendVarint(payload, complete);
  return payload;
}

// Payloads of a log: batches of up to 60 changes, on an ordered engine a few of many keys; what is
// complete is told some batches later.
std::vector<std::string> MakeLog(Random& random, uint32_t batches, bool is_ordered) {
  std::vector<std::string> log;
  Version version = 0;
  for (uint32_t i = 0; i < batches; ++i) {
    const Version base = version + 1;
    ChangeEncoder encoder(log.emplace_back(), 0, 0, base);
    const uint64_t count = random.Below(60) + 1;
    for (uint64_t j = 0; j < count; ++j) {
      const std::string key = KeyOf(random.Below(kKeys));
      const std::string value = std::to_string(random.Below(1'000'000));
      LogChange change = {
          .kind = LogChange::Kind::kPut, .version = ++version, .key = key, .value = value};
      const uint64_t kind = random.Below(10'000);
      const std::string other = KeyOf(random.Below(kKeys));
      if (kind < 2000) {
        change.kind = LogChange::Kind::kErase;
        change.value = {};
      } else if (kind < 3000) {
        change.kind = LogChange::Kind::kPutUntil;
        change.deadline_ms = 1'000'000 + version;
      } else if (is_ordered && kind < 3002) {
        change.kind = LogChange::Kind::kMove;
        change.value = other;
      } else if (is_ordered && kind < 3004) {
        change.kind = LogChange::Kind::kEraseRange;
        change.value = other;
        if (other <= key) continue;
      }
      encoder.Add(change);
    }
    if (random.Below(10) == 0) log.push_back(ProgressOf(version - random.Below(3)));
  }
  log.push_back(ProgressOf(version));
  return log;
}

class ReplayThreads : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Engine> MakeEngine() {
    return FindEngine(GetParam())->make({.budget = &budget_});
  }
  // The first status that is not kOk.
  static Status Do(Engine& engine, const std::vector<std::string>& log, uint32_t threads) {
    Replay replay([&](uint32_t) -> Replay::Target { return {.engine = &engine}; }, threads);
    for (const std::string& payload : log) {
      const auto type = static_cast<RecordType>(payload[0]);
      if (const Status s = replay.Add({.type = type, .payload = payload}); !s.ok()) return s;
    }
    return replay.Finish();
  }

  MemoryBudget budget_{0};
};

// Goal: the state is that of all changes in the order of their versions.
// Method: groups that helpers are woken for, cut by changes of many keys, and the owner reading on
// meanwhile; the same log with one thread is the oracle.
TEST_P(ReplayThreads, AsByOne) {
  SeededRandom random(7);
  const auto one = MakeEngine();
  const auto log = MakeLog(random, 3000, one->traits().ordered);
  ASSERT_TRUE(Do(*one, log, 1).ok());
  const auto many = MakeEngine();
  ASSERT_TRUE(Do(*many, log, 4).ok());
  const State state = StateOf(*one, 0);
  EXPECT_GT(state.size(), kKeys / 4);
  EXPECT_TRUE(state == StateOf(*many, 0));
  EXPECT_EQ(many->Verify(), nullptr);
}

// Goal: what the engine refuses in one share is told, whoever has applied it.
// Method: a key that is too long in the middle of a group; many more groups behind it.
TEST_P(ReplayThreads, Refused) {
  SeededRandom random(8);
  auto log = MakeLog(random, 2000, MakeEngine()->traits().ordered);
  const std::string key(70'000, 'k');
  const auto at = log.begin() + static_cast<ptrdiff_t>(log.size() / 3);
  // Its version is what the log is at there, so that it is not the last of its group.
  const auto header = ChangeDecoder::Open(*std::find_if(at, log.end(), [](const auto& p) {
    return p[0] == static_cast<char>(RecordType::kChanges);
  }));
  auto first = *header;
  const Version version = (*first.Next())->version;
  std::string payload;
  ChangeEncoder(payload, 0, 0, version)
      .Add({.kind = LogChange::Kind::kPut, .version = version, .key = key, .value = "v"});
  log.insert(at, payload);
  for (const uint32_t threads : {1u, 4u}) {
    const auto engine = MakeEngine();
    EXPECT_EQ(Do(*engine, log, threads).code(), Code::kTooLarge) << threads;
    EXPECT_EQ(engine->Verify(), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ReplayThreads, testing::Values("btree", "hash"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace skep::durable

// Tests that every engine must pass: random logs against the oracle.
#include "engine/testing/conformance.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "base/sanitized.h"
#include "engine/testing/masked_engine.h"
#include "engine/testing/piecemeal_engine.h"

namespace skep {
namespace {

// All bytes that a batch's outcomes name.
std::string BytesOf(const Batch& batch) {
  std::string bytes;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    bytes.append(batch.outcome(slot).value).append("|");
    for (const Item& item : batch.items(slot)) bytes.append(item.key).append(item.value);
  }
  return bytes;
}

// A random log on one subject: batches of both kinds, in which keys expire as time passes by
// milliseconds; snapshots if the engine has them, read while they live and after they were revoked;
// watches. Now and then the clock steps back.
class Log {
 public:
  Log(Subject& subject, uint64_t seed) : subject_(subject), random_(seed) { random_.UseTypes(); }

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  void CloseAll() {
    subject_.set_now_ms(latest_ms_);
    for (const Pin& pin : pins_) subject_.Close(pin.snapshot);
    pins_.clear();
    for (const auto& watched : watched_) subject_.Unwatch(watched.watch);
    watched_.clear();
  }

 private:
  struct Pin {
    SnapshotRef snapshot;
    uint64_t revoked_at_ms;
  };
  struct Executed {
    Batch batch;
    std::string bytes;
  };
  // How far the clock steps back.
  static constexpr uint64_t kStepBackMs = 4;

  void Step() {
    SetClock();
    const uint64_t lot = random_.Below(20);
    if (lot == 0 && pins_.size() < 6 && subject_.traits().snapshots) return Open();
    if (lot == 1 && !pins_.empty()) return CloseOne();
    if (lot == 2) LetTimePass(random_.Below(Subject::kSnapshotAgeMsMax / 4));
    if (lot == 19) return WatchOrUnwatch();
    Batch batch(random_.Below(2) == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
    if (lot <= 8 && !pins_.empty()) {
      batch.set_snapshot(pins_[random_.Below(pins_.size())].snapshot);
      // A batch at a snapshot that writes, rarely: it must be refused.
      lot == 3 ? random_.Fill(batch) : random_.FillWithReads(batch);
    } else {
      batch.set_now_ms(subject_.now_ms());
      random_.Fill(batch);
    }
    subject_.Run(batch);
    Keep(std::move(batch));
  }

  void Open() {
    std::vector<SnapshotRef> opened;
    subject_.Open(opened);
    if (opened.empty()) return;
    pins_.push_back(
        {.snapshot = opened[0], .revoked_at_ms = subject_.now_ms() + Subject::kSnapshotAgeMsMax});
  }

  // Some milliseconds forward, or back from the latest now that the engine has certainly seen.
  void SetClock() {
    if (random_.Below(3) == 0) LetTimePass(1 + random_.Below(3));
    const bool back = subject_.oracle().now_ms() == latest_ms_ && random_.Below(4) == 0;
    subject_.set_now_ms(latest_ms_ - (back ? random_.Below(kStepBackMs + 1) : 0));
  }

  void WatchOrUnwatch() {
    constexpr size_t kWatchedMax = 8;
    if (!subject_.traits().atomic) return;
    if (watched_.size() < kWatchedMax) {
      Batch keys;
      const std::string key(random_.Key(keys));
      if (key.size() > subject_.traits().key_bytes_max) return;
      watched_.push_back({.watch = subject_.Watch(key), .key = key});
    } else {
      // Some of the removed watches are still asked for: they must be refused.
      for (int i = 0; i < 4; ++i) subject_.Unwatch(watched_[random_.Below(kWatchedMax)].watch);
      watched_.erase(watched_.begin(), watched_.begin() + 4);
    }
    random_.set_watched(watched_);
  }

  void CloseOne() {
    const auto which = pins_.begin() + static_cast<ptrdiff_t>(random_.Below(pins_.size()));
    subject_.Close(which->snapshot);
    pins_.erase(which);
  }

  void LetTimePass(uint64_t ms) {
    latest_ms_ += ms;
    subject_.set_now_ms(latest_ms_);
    // Snapshots close to their age limit may be revoked or not: a clock that steps back may put it
    // off.
    const auto is_doubtful = [&](const Pin& pin) {
      return pin.revoked_at_ms <= latest_ms_ + kStepBackMs &&
             latest_ms_ <= pin.revoked_at_ms + kStepBackMs;
    };
    for (const Pin& pin : pins_) {
      if (is_doubtful(pin)) subject_.Close(pin.snapshot);
    }
    std::erase_if(pins_, is_doubtful);
    const auto is_over = [&](const Pin& pin) { return pin.revoked_at_ms <= latest_ms_; };
    if (ms > kStepBackMs || std::ranges::any_of(pins_, is_over)) {
      subject_.MaintainAll();
      subject_.ExpectReclaimed();
    }
    for (const Pin& pin : pins_) {
      if (is_over(pin)) subject_.oracle().DropSnapshot(pin.snapshot);
    }
  }

  // The bytes of an executed batch stay valid whatever later batches overwrite.
  void Keep(Batch batch) {
    for (const Executed& old : executed_) ASSERT_EQ(BytesOf(old.batch), old.bytes);
    std::string bytes = BytesOf(batch);
    executed_.push_back({.batch = std::move(batch), .bytes = std::move(bytes)});
    if (executed_.size() > 4) executed_.pop_front();
  }

  Subject& subject_;
  RandomBatch random_;
  uint64_t latest_ms_ = Subject::kStartMs;
  std::vector<Pin> pins_;
  std::vector<RandomBatch::WatchedKey> watched_;
  std::deque<Executed> executed_;
};

void RunLogs(const std::function<Subject()>& make_subject, int logs, int steps) {
  const unsigned seed = PrintedSeed();
  for (int i = 0; i < logs; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " log " << i);
    Subject subject = make_subject();
    Log log(subject, seed + static_cast<unsigned>(i));
    log.Run(steps);
    if (testing::Test::HasFatalFailure()) return;
    log.CloseAll();
    subject.MaintainAll();
    subject.ExpectReclaimed();
    subject.ExpectNoOldVersions();
  }
}

using LogConformance = EngineConformance;

// Goal: the engine answers any requests in any order as the oracle does, and keeps its invariants
// and statistics.
// Method: random logs over some hundred short keys, so that operations meet. The bytes of earlier
// batches are read again after later ones.
TEST_P(LogConformance, AgreesWithTheOracle) {
  RunLogs([] { return Subject(GetParam()); }, Rounds(20), 400);
}

// Goal: an engine that declares something unsupported refuses it with kNotSupported and changes
// nothing, and does the other requests.
// Method: the same logs, with each trait masked in turn; the oracle knows the traits.
TEST_P(LogConformance, RefusesWhatItDeclaresUnsupported) {
  for (bool EngineTraits::* feature :
       {&EngineTraits::ordered, &EngineTraits::atomic, &EngineTraits::snapshots,
        &EngineTraits::functions, &EngineTraits::walks, &EngineTraits::expiry}) {
    MemoryBudget budget;
    RunLogs(
        [&] {
          auto inner = GetParam().Make(budget, Subject::kSnapshotAgeMsMax);
          EngineTraits traits = inner->traits();
          traits.*feature = false;
          return Subject(std::make_unique<MaskedEngine>(std::move(inner), traits));
        },
        2, 300);
  }
}

// Goal: a batch with a work limit stops where its rest can be executed later, and the pieces
// together have the answers of the whole batch: the order on each key is kept.
// Method: the same logs; each unordered batch is executed in pieces with small limits.
TEST_P(LogConformance, AgreesWithTheOracleInPieces) {
  MemoryBudget budget;
  uint64_t seed = 0;
  RunLogs(
      [&] {
        auto inner = GetParam().Make(budget, Subject::kSnapshotAgeMsMax);
        return Subject(std::make_unique<PiecemealEngine>(std::move(inner), ++seed, 600));
      },
      Rounds(10), 300);
}

TEST_P(LogConformance, RefusesSnapshotsItDoesNotHave) {
  auto engine = GetParam().Make(subject_.budget());
  EngineTraits traits = engine->traits();
  traits.snapshots = false;
  MaskedEngine masked(std::move(engine), traits);
  const auto opened = masked.OpenSnapshot(Subject::kStartMs);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), Code::kNotSupported);
  if (!traits_.snapshots) {
    ASSERT_EQ(engine_.OpenSnapshot(Subject::kStartMs).error().code(), Code::kNotSupported);
  }
}

// Goal: an atomic batch without requests at a snapshot that is gone is not applied, as one with
// requests.
TEST_P(LogConformance, NothingAtASnapshotThatIsGoneIsRefused) {
  SKEP_NEEDS(snapshots);
  const auto opened = engine_.OpenSnapshot(Subject::kStartMs);
  ASSERT_TRUE(opened.has_value());
  for (const bool is_gone : {false, true}) {
    if (is_gone) engine_.CloseSnapshot(*opened);
    Batch nothing(Batch::Kind::kAtomic);
    nothing.set_snapshot(*opened);
    engine_.Execute(nothing);
    EXPECT_EQ(nothing.applied(), !is_gone);
  }
}

// Goal: the oracle notices differences; a test of the test.
// Method: outcomes and statistics of a batch whose past the oracle has not seen.
TEST_P(LogConformance, TheOracleSeesADifference) {
  Batch put;
  put.Put("a", "1");
  engine_.Execute(put);
  Batch get;
  get.Get("a");
  const Version released = engine_.gate().released();
  const Version ticket = engine_.Execute(get);
  EXPECT_NE(subject_.oracle().Check(get, ticket, released), "");
}

TEST_P(LogConformance, TheOracleWantsNoVersionsOfAnEngineThatHasNone) {
  SKEP_NEEDS(multi_version);
  EngineTraits traits = traits_;
  traits.multi_version = false;
  Batch put;
  put.Put("a", "1");
  const Version ticket = engine_.Execute(put);
  EXPECT_NE(Oracle(traits).Check(put, ticket, 0), "");
  EXPECT_NE(Oracle(traits).Check(put, 0, 0), "");
}

INSTANTIATE_TEST_SUITE_P(Engines, LogConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep

// Random batches on a store that is kept on a simulated disk, which loses power, fails and fills
// up; what is recovered must be a state that there was, and have all that was answered.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "durable/log_test.h"
#include "engine/testing/random_batch.h"
#include "sim/seeds.h"

namespace skep::durable {
namespace {

constexpr uint64_t kSegmentBytes = 16 * 1024;

State At(State state, uint64_t now_ms) {
  std::erase_if(state, [&](const auto& pair) {
    const uint64_t deadline_ms = pair.second.second;
    return deadline_ms != 0 && deadline_ms <= now_ms;
  });
  return state;
}

class Store {
 public:
  Store(uint64_t seed, const std::string& engine, LogSync policy)
      : rng_(seed),
        disk_(seed, trace_, {}),
        store_{.engine = engine,
               .keyspaces = 2,
               .directory = kTestDirectory,
               .log_sync = policy,
               .log_segment_bytes = kSegmentBytes},
        batches_(seed) {
    batches_.UseTypes();
    Open();
  }

  uint64_t Below(uint64_t bound) { return rng_() % bound; }
  SimFileSystem& disk() { return disk_; }
  Log& log() { return persistence_->log(); }
  Persistence& persistence() { return *persistence_; }

  // A random batch; all its writes are refused while the log is not well.
  void Execute() {
    clock_.Advance(Below(3) * 1'000'000);
    const auto kind = Below(2) == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic;
    const auto keyspace = static_cast<uint32_t>(Below(2));
    Batch batch(kind);
    batch.set_now_ms(now_ms());
    batches_.Fill(batch);
    Engine& engine = keyspaces_->at(keyspace);
    const Version ticket = engine.Execute(batch);
    Kept& kept = keyspaces_kept_[keyspace];
    kept.states.push_back(Dump(keyspace));
    // A batch that has changed nothing may have an older ticket.
    kept.ticket = std::max(kept.ticket, ticket);
    kept.waiting.push_back({.state = kept.first + kept.states.size() - 1, .ticket = kept.ticket});
  }

  void WantSync() {
    for (auto& [index, kept] : keyspaces_kept_) {
      keyspaces_->at(index).WantSync(kept.ticket, Below(2) == 0);
    }
  }

  // The process is killed; with the power, maybe.
  void Die(bool loses_power) {
    for (auto& [index, kept] : keyspaces_kept_) {
      Engine& engine = keyspaces_->at(index);
      const ReleaseGate& gate = loses_power ? engine.synced_gate() : engine.gate();
      for (const Waiting& waiting : kept.waiting) {
        if (gate.IsReleased(waiting.ticket)) kept.answered = waiting.state;
      }
    }
    keyspaces_.reset();
    persistence_.reset();
    if (loses_power) disk_.Crash();
  }

  void Close() {
    ASSERT_TRUE(persistence_->Close().ok());
    for (auto& [index, kept] : keyspaces_kept_) kept.answered = kept.first + kept.states.size() - 1;
    keyspaces_.reset();
    persistence_.reset();
  }

  void Open() {
    disk_.set_options({});
    std::string problem;
    auto opened = OpenKeyspaces(disk_, clock_, store_, &problem);
    ASSERT_TRUE(opened.has_value()) << problem;
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
    report_ = opened->report;
    for (const uint32_t index : {0u, 1u}) {
      ASSERT_EQ(keyspaces_->at(index).Verify(), nullptr);
      Compare(index);
    }
    log().Step();
  }

  // Makes the disk fail at random, until the store is opened the next time.
  void Disturb() {
    disk_.set_options({.write_errors_ppm = static_cast<uint32_t>(Below(30'000)),
                       .sync_errors_ppm = static_cast<uint32_t>(Below(300'000)),
                       .capacity_bytes = Below(2) == 0 ? UINT64_MAX : Below(200'000)});
  }

  const RecoveryReport& report() const { return report_; }

 private:
  struct Waiting {
    size_t state;
    Version ticket;
  };
  struct Kept {
    std::deque<State> states = {{}};
    size_t first = 0;     // number of states[0]
    size_t answered = 0;  // the last state that somebody was told of
    std::vector<Waiting> waiting;
    Version ticket = 0;  // the highest
  };

  uint64_t now_ms() { return clock_.WallMs(); }

  State Dump(uint32_t keyspace) { return StateOf(keyspaces_->at(keyspace), now_ms()); }

  static void ShowDifference(const State& last, const State& recovered) {
    for (const auto& [key, value] : last) {
      const auto at = recovered.find(key);
      if (at != recovered.end() && at->second == value) continue;
      ADD_FAILURE() << testing::PrintToString(key) << " was " << testing::PrintToString(value)
                    << ", is "
                    << (at == recovered.end() ? "absent" : testing::PrintToString(at->second));
    }
    for (const auto& [key, value] : recovered) {
      if (last.contains(key)) continue;
      ADD_FAILURE() << testing::PrintToString(key) << " was absent, is "
                    << testing::PrintToString(value);
    }
  }

  void Compare(uint32_t keyspace) {
    Kept& kept = keyspaces_kept_[keyspace];
    const State recovered = Dump(keyspace);
    bool is_found = false;
    for (size_t i = kept.answered - kept.first; i < kept.states.size() && !is_found; ++i) {
      is_found = At(kept.states[i], now_ms()) == recovered;
    }
    if (!is_found) ShowDifference(At(kept.states.back(), now_ms()), recovered);
    EXPECT_TRUE(is_found) << "keyspace " << keyspace << ": the recovered state of "
                          << recovered.size() << " keys is none of those from " << kept.answered
                          << " to " << kept.first + kept.states.size() - 1;
    kept = {.states = {recovered}};
  }

  std::mt19937_64 rng_;
  Trace trace_;
  SimClock clock_;
  SimFileSystem disk_;
  const Options store_;
  RandomBatch batches_;
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::map<uint32_t, Kept> keyspaces_kept_;
  RecoveryReport report_;
};

class PersistenceRandom : public testing::TestWithParam<const char*> {};

struct Seen {
  uint64_t replayed = 0, from_snapshots = 0, torn = 0, refused = 0;
};

void RunRandom(const char* engine, bool is_disturbed) {
  Seen seen;
  const SeedRange seeds = Seeds(60);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    constexpr LogSync kPolicies[] = {LogSync::kAlways, LogSync::kEverySecond, LogSync::kNo};
    Store store(seed, engine, kPolicies[seed % 3]);
    for (int step = 0; step < 400 && !testing::Test::HasFailure(); ++step) {
      const uint64_t lot = store.Below(100);
      if (lot < 60) {
        store.Execute();
      } else if (lot < 75) {
        store.log().Publish();
      } else if (lot < 80) {
        store.WantSync();
      } else if (lot < 93) {
        store.log().Step();
        seen.refused += store.log().admits() ? 0 : 1;
      } else if (lot < 95) {
        EXPECT_TRUE(store.persistence().saver().Save().ok() || is_disturbed);
      } else if (lot < 97) {
        if (is_disturbed) store.Disturb();
      } else {
        lot < 98 && !is_disturbed ? store.Close() : store.Die(lot < 99);
        store.Open();
        seen.replayed += store.report().log_changes;
        seen.from_snapshots += store.report().snapshot_items;
        seen.torn += store.report().torn_file.empty() ? 0 : 1;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  std::printf(
      "%llu changes replayed, %llu items of snapshots, %llu torn ends, %llu "
      "times the log was not well\n",
      static_cast<unsigned long long>(seen.replayed),
      static_cast<unsigned long long>(seen.from_snapshots),
      static_cast<unsigned long long>(seen.torn), static_cast<unsigned long long>(seen.refused));
  if (!AreMany(seeds)) return;
  EXPECT_GT(seen.replayed, 0u);
  EXPECT_GT(seen.from_snapshots, 0u);
  EXPECT_EQ(seen.refused > 0, is_disturbed);
}

// Goal: after the process was killed, lost power or ended, the state is one that there was, not
// older than the last that was answered; time and again.
// Method: batches of all kinds on two keyspaces, the log written and synced at random moments,
// snapshots in between; each state is kept and compared with the recovered one.
TEST_P(PersistenceRandom, RecoversAStateThatThereWas) { RunRandom(GetParam(), false); }

// Goal: a recovered state is one that there was, also on a disk that fails.
// Method: the same; writes and syncs fail at random, or the disk is full, until the next start.
TEST_P(PersistenceRandom, RecoversFromADiskThatFails) { RunRandom(GetParam(), true); }

// Goal: no version, or number, that was told comes again after a kill.
// Method: writes that change nothing, and so are not logged, few and many; of a keyspace that has a
// change, and of one that has none.
TEST_P(PersistenceRandom, VersionsGoOnAfterAKill) {
  for (const uint32_t writes : {3u, 200'000u}) {
    TestStore killed({}, LogSync::kNo, 64 * 1024, GetParam());
    {
      Batch put;
      put.Put("key", "value");
      killed.engine(0).Execute(put);
    }
    Version told[TestStore::kKeyspaces];
    for (uint32_t keyspace = 0; keyspace < TestStore::kKeyspaces; ++keyspace) {
      Engine& engine = killed.engine(keyspace);
      for (uint32_t done = 0; done < writes; done += 100) {
        Batch batch;
        for (int i = 0; i < 100; ++i) batch.DeleteAll();
        engine.Execute(batch);
        engine.Release();
      }
      told[keyspace] = engine.gate().released();
    }
    TestStore next(TakeImage(killed.disk()), LogSync::kNo, 64 * 1024, GetParam());
    ASSERT_TRUE(next.status().ok());
    for (uint32_t keyspace = 0; keyspace < TestStore::kKeyspaces; ++keyspace) {
      EXPECT_GE(next.engine(keyspace).Latest(), told[keyspace]) << writes << " " << keyspace;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, PersistenceRandom, testing::Values("model", "btree", "hash"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace skep::durable

// Runs the real server, its clients, its options file and its log in one thread, from one seed: the
// answers to clients on a bad network are linearizable, and one seed is one run.
//
//   make sim SEEDS=10000
//   make sim SEEDS=1 SEED=4711     a failure names its seed
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/linearizability/checker.h"
#include "tests/simulation/questions.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

using linearizability::Answer;
using linearizability::CheckLinearizable;
using linearizability::CheckOptions;
using linearizability::History;
using linearizability::Operation;

// The common record of all clients of one run.
struct Record {
  History history;
  uint64_t clock = 0;  // one tick for each call and each return: a total order
  size_t lost = 0;     // number of lost replies
};

// Asks one question after the other, and connects again when the connection breaks.
class Asker {
 public:
  Asker(uint32_t id, SimCluster& cluster, uint32_t keys, uint32_t questions, Record& record)
      : maker_(id, cluster.sim().random(), keys),
        client_(cluster.NewClient(2 + static_cast<int>(cluster.sim().random().Below(2)))),
        left_(questions),
        record_(record) {}

  bool done() const { return left_ == 0 && !asked_; }
  const std::string& received() const { return client_->received(); }

  bool Step() {
    if (client_->closed()) return Lose();
    if (!asked_ && left_ > 0) Ask();
    const bool moved = client_->Move();
    return TakeReply() || moved;
  }

 private:
  void Ask() {
    --left_;
    question_ = maker_.Next();
    question_.operation.call = ++record_.clock;
    client_->Send(question_.args);
    asked_ = true;
  }

  bool TakeReply() {
    const std::optional<RespReply> reply = client_->Take();
    if (!reply) return false;
    EXPECT_TRUE(asked_) << "a reply that nobody asked for";
    question_.operation.returned = ++record_.clock;
    EXPECT_TRUE(question_.read(*reply, question_.operation))
        << testing::PrintToString(question_.args) << " was answered " << Describe(*reply);
    record_.history.push_back(question_.operation);
    asked_ = false;
    return true;
  }

  bool Lose() {
    if (asked_) {
      record_.history.push_back(question_.operation);
      ++record_.lost;
    }
    asked_ = false;
    if (left_ == 0) return false;
    client_->Reconnect();
    return true;
  }

  QuestionMaker maker_;
  std::unique_ptr<SimClient> client_;
  uint32_t left_;
  Record& record_;
  Question question_;
  bool asked_ = false;
};

// A run of several askers.
class AskersRun {
 public:
  explicit AskersRun(uint64_t seed) : AskersRun(seed, Choices(seed)) {}

  const Record& record() const { return record_; }
  SimCluster& cluster() { return cluster_; }
  std::string received() const {
    std::string all;
    for (const auto& asker : askers_) all += asker->received() + "\n--\n";
    return all;
  }

 private:
  struct Choices {
    explicit Choices(uint64_t seed) : random(seed) {
      cluster.lagging = random.Chance(1, 2);
      cluster.config = "workers = " + std::to_string(1 + random.Below(3)) + "\n";
      cluster.world.network = RandomNetwork(seed);
      if (random.Chance(1, 3)) {
        cluster.world.network.resets_ppm = 3'000;
        cluster.world.network.partition_resets_ppm = 500'000;
      }
      keys = 2 + static_cast<uint32_t>(random.Below(5));
      clients = 2 + static_cast<uint32_t>(random.Below(4));
    }
    SeededRandom random;
    ClusterOptions cluster;
    uint32_t keys;
    uint32_t clients;
  };
  static constexpr uint32_t kQuestions = 150;  // of all clients together

  AskersRun(uint64_t seed, const Choices& choices) : cluster_(seed, choices.cluster) {
    for (uint32_t i = 0; i < choices.clients; ++i) {
      askers_.push_back(std::make_unique<Asker>(i, cluster_, choices.keys,
                                                kQuestions / choices.clients, record_));
      Asker* const asker = askers_.back().get();
      cluster_.sim().AddActor("asker", [asker] { return asker->Step(); });
    }
    const auto done = [this] {
      return std::ranges::all_of(askers_, [](const auto& asker) { return asker->done(); });
    };
    EXPECT_EQ(cluster_.RunUntil(done), Simulation::End::kDone);
  }

  SimCluster cluster_;
  Record record_;
  std::vector<std::unique_ptr<Asker>> askers_;
};

// Goal: whatever the answers of the clients, some order of one command after another explains them.
// Method: several clients, each with one command under way; few keys; one to three workers; half of
// the runs on an engine that is as late and unordered as it may be; resets, partitions, tiny
// buffers, delays.
TEST(SimulatedServer, HistoriesAreLinearizable) {
  size_t operations = 0, lost = 0, undecided = 0, seeds = 0;
  for (const uint64_t seed : Seeds(300)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    AskersRun run(seed);
    const auto result = CheckLinearizable(run.record().history, {.steps_max = 3'000'000});
    ASSERT_NE(result.answer, Answer::kNotLinearizable) << result.explanation;
    ASSERT_FALSE(HasFailure());
    operations += run.record().history.size();
    lost += run.record().lost;
    undecided += result.answer == Answer::kUndecided;
    ++seeds;
  }
  std::printf("%zu runs, %zu operations, %zu without reply; %zu runs undecided\n", seeds,
              operations, lost, undecided);
  EXPECT_LE(undecided * 10, seeds);
}

// Goal: one seed is one run, to the last byte.
// Method: every seed runs twice; memory held between the runs moves all later objects, so that
// anything ordered by address is found.
TEST(SimulatedServer, SeedIsTheRun) {
  std::vector<std::unique_ptr<char[]>> held;
  std::set<uint64_t> hashes;
  size_t seeds = 0;
  for (const uint64_t seed : Seeds(6)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    AskersRun first(seed);
    for (size_t bytes = 8; bytes < 4'096; bytes += 24) held.emplace_back(new char[bytes]);
    AskersRun second(seed);
    ASSERT_EQ(first.received(), second.received());
    ASSERT_EQ(first.cluster().sim().trace_hash(), second.cluster().sim().trace_hash());
    hashes.insert(first.cluster().sim().trace_hash());
    ++seeds;
  }
  EXPECT_EQ(hashes.size(), seeds);
}

// Goal: the server's log is part of the run: its times are those of the simulated clock.
TEST(SimulatedServer, LogIsOfTheSeed) {
  const auto log = [] {
    SimCluster cluster(1, {.config = "client-query-buffer-limit = \"1mb\"\n"});
    SimClient& client = cluster.Connect();
    client.SendBytes("*1\r\n$2000000\r\n" + std::string(1'500'000, 'x'));
    cluster.RunUntil([&] { return client.closed(); });
    EXPECT_TRUE(client.closed());
    return cluster.log();
  };
  const std::string first = log();
  EXPECT_NE(first.find("client-query-buffer-limit"), std::string::npos) << first;
  EXPECT_NE(first.find("2023-11-14"), std::string::npos) << first;  // SimClock::kStartWallUs
  EXPECT_EQ(first, log());
}

}  // namespace
}  // namespace skep::simulation

// Judges histories of clients of a keyspace whose keys are moved between two servers, with a real
// ZooKeeper, while one of them is stopped in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "tests/coordinator/zookeeper_servers.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/child_process.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/play_round.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/store_client.h"
#include "tests/linearizability/store_for_tests.h"
#include "tests/linearizability/supported_client.h"
#include "tests/linearizability/unsure_client.h"

// The library of ZooKeeper loses its own records of what is under way when a session is ended.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libzookeeper_mt";
}

namespace skep::linearizability {
namespace {

using std::chrono::milliseconds;

enum class RangesFault : uint8_t {
  kNone,
  kHiccupSource,   // the server that has the keys stops for less than its lease
  kHiccupTarget,   // the one that they go to
  kStopSource,     // for more than its session
  kKillZooKeeper,  // its leader
};
constexpr uint64_t kFaults = 5;
// At most so long after its last word the service ends a server's session.
constexpr milliseconds kSession(4000);

class RangesHistories : public testing::TestWithParam<int> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // `all`: every move is of all keys, so ranges are of one state.
  void RunRound(uint64_t round, RangesFault fault, bool all);

  std::atomic<uint64_t> calls_ = 0;
  uint64_t moves_ = 0;
  HistoryTally tally_;
  const unsigned seed_ = std::random_device{}();

 private:
  struct Server {
    std::string address;
    std::unique_ptr<ChildProcess> process;
  };

  int Ctl(const std::string& words) const;
  void MoveAll(int to);
  void Empty();
  void Inflict(RangesFault fault, bool all);
  std::unique_ptr<KvClient> NewClient();
  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  std::mt19937_64 rng_{seed_};
  std::unique_ptr<ZooKeeperServers> zookeeper_;
  std::string addresses_;  // of ZooKeeper
  std::vector<Server> servers_;
  int at_ = 0;  // the server that has all keys
  std::unique_ptr<Store> store_;
};

void RangesHistories::SetUp() {
  const std::string missing = ZooKeeperServers::Missing();
  if (!missing.empty() && std::getenv("CI") != nullptr) FAIL() << missing;
  if (!missing.empty()) GTEST_SKIP() << missing;
  zookeeper_ = std::make_unique<ZooKeeperServers>(GetParam());
  for (int i = 1; i <= zookeeper_->count(); ++i) {
    addresses_ += (i == 1 ? "" : ",") + zookeeper_->address(i);
  }
  for (int i = 0; i < 2; ++i) {
    Server& server = servers_.emplace_back();
    server.address = FreeAddress();
    std::string zk;
    for (int z = 1; z <= zookeeper_->count(); ++z) zk += "zk=" + zookeeper_->address(z) + ",";
    server.process = std::make_unique<ChildProcess>(std::vector<std::string>{
        SKEP_SERVER, "--port", server.address.substr(server.address.find(':') + 1), "--ranges",
        zk + "name=r,at=" + server.address + ",session=" + std::to_string(kSession.count())});
    ASSERT_TRUE(server.process->WaitFor("ready")) << server.process->output();
  }
  ASSERT_EQ(Ctl("set " + servers_[0].address), 0);
  MoveAll(1);  // now both servers have a lease
  auto store = Store::Connect({.address = "ranges://" + addresses_ + "/r", .timeout_ms = 60'000});
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  store_ = std::move(*store);
}

void RangesHistories::TearDown() {
  store_.reset();
  servers_.clear();
  zookeeper_.reset();
}

int RangesHistories::Ctl(const std::string& words) const {
  const std::string command = std::string(SKEP_NETINDEX) + " --zk " + addresses_ +
                              " --name r --timeout 60000 ctl " + words + " 2>/dev/null";
  return std::system(command.c_str());  // NOLINT(cert-env33-c)
}

// Until it is done: the servers may not have registered yet.
void RangesHistories::MoveAll(int to) {
  while (Ctl("move '' " + servers_[static_cast<size_t>(to)].address) != 0) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  ++moves_;
  at_ = to;
}

std::unique_ptr<KvClient> RangesHistories::NewClient() {
  Engine& engine = StoreForTests::EngineOf(*store_);
  return std::make_unique<UnsureClient>(
      std::make_unique<SupportedClient>(std::make_unique<StoreClient>(*store_, engine),
                                        engine.traits()),
      calls_, std::chrono::microseconds(1000));
}

// Until it is done: a server that was stopped may have no lease yet.
void RangesHistories::Empty() {
  Batch empty;
  empty.DeleteAll();
  do {
    ASSERT_TRUE(store_->Execute(empty).ok());
  } while (empty.outcome(0).verdict != Verdict::kDone);
}

void RangesHistories::Inflict(RangesFault fault, bool all) {
  ChildProcess& source = *servers_[static_cast<size_t>(at_)].process;
  ChildProcess& target = *servers_[static_cast<size_t>(1 - at_)].process;
  const std::string& other = servers_[static_cast<size_t>(1 - at_)].address;
  const std::string& same = servers_[static_cast<size_t>(at_)].address;
  std::jthread moving([&] {
    if (all) {
      if (Ctl("move '' " + other) == 0) ++moves_;
      return;
    }
    // Keys of histories are letters and more; half of them goes, and comes back.
    if (Ctl("move f " + other) == 0) ++moves_;
    if (Ctl("move f " + same) == 0) ++moves_;
  });
  std::this_thread::sleep_for(milliseconds(Below(100)));
  const auto stop = [&](const ChildProcess& server, milliseconds time) {
    server.Signal(SIGSTOP);
    std::this_thread::sleep_for(time);
    server.Signal(SIGCONT);
  };
  switch (fault) {
    case RangesFault::kNone:
      break;
    case RangesFault::kHiccupSource:
      stop(source, milliseconds(Below(500)));
      break;
    case RangesFault::kHiccupTarget:
      stop(target, milliseconds(Below(500)));
      break;
    case RangesFault::kStopSource:
      stop(source, kSession + milliseconds(1000 + Below(1000)));
      break;
    case RangesFault::kKillZooKeeper:
      zookeeper_->Kill(zookeeper_->FindLeader());
      std::this_thread::sleep_for(milliseconds(Below(500)));
      zookeeper_->Restart();
      break;
  }
  moving.join();
  MoveAll(all ? 1 - at_ : at_);
}

void RangesHistories::RunRound(uint64_t round, RangesFault fault, bool all) {
  Empty();
  RoundShape shape = ShapeOf(round);
  shape.mix.snapshots = 0;
  shape.mix.ticks = 0;
  shape.mix.transactions = 0;
  shape.mix.batches = 0;
  if (!all) shape.mix.ranges = 0;
  shape.neighbours = Neighbours::kNone;
  shape.pads_keys = false;
  shape.clients = 3;
  const uint64_t calls_before = calls_;
  const uint64_t when = 5 + Below(40);
  const uint64_t seed = rng_();
  PlayedRound played;
  {
    std::atomic<bool> is_over = false;
    const std::jthread playing([&] {
      played = PlayRound(seed, shape, [&] { return NewClient(); });
      is_over = true;
    });
    while (calls_ - calls_before < when && !is_over) std::this_thread::yield();
    Inflict(fault, all);
  }
  tally_.Add(played.history);
  const CheckResult result = CheckLinearizable(played.history, played.check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
}

// Goal: what clients are told is one linearizable history while keys are moved from server to
// server, whoever hangs or is late meanwhile; of moves of all keys with scans and counts.
// Method: rounds of three clients on few keys; a move begins in the middle of each.
TEST_P(RangesHistories, AreLinearizable) {
  std::printf("seed %u\n", seed_);
  uint64_t rounds = 0;
  ForRounds(2 * kFaults, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    RunRound(round, static_cast<RangesFault>(round / 2 % kFaults), round % 2 == 0);
    ++rounds;
  });
  std::cout << tally_ << "\n" << rounds << " rounds, " << moves_ << " moves\n";
  EXPECT_GE(moves_, rounds);
}

INSTANTIATE_TEST_SUITE_P(ZooKeepers, RangesHistories, testing::Values(1, 3));

}  // namespace
}  // namespace skep::linearizability

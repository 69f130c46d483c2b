// Judges histories of clients of a pool of memory, of real processes and a real ZooKeeper, one of
// which is killed or stopped in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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

enum class PoolFault : uint8_t {
  kNone,
  kKillHash,
  kKillSorted,
  kStopHash,        // until the other one has taken over
  kStopSorted,      // the same
  kHiccupHash,      // for less than a lease
  kHiccupSorted,    // the same
  kHiccupMemory,    // over shared memory nobody needs it to run
  kKillMemory,      // one of the two
  kStopMemory,      // until the pool has given it up
  kKillBothMemory,  // of three: the second one when the third one has copies of what the first had
  kDrainMemory,     // one of three
  kKillZooKeeper,   // its leader
  kKillBothIndex,   // they come back from their directories
};
constexpr int kFaults = 14;

struct PoolWorld {
  const char* name;
  const char* fabric;
  int zookeepers;
};

std::ostream& operator<<(std::ostream& out, const PoolWorld& world) { return out << world.name; }

class PoolHistories : public testing::TestWithParam<PoolWorld> {
 protected:
  void SetUp() override;
  void TearDown() override;

  void RunRound(uint64_t round, PoolFault fault);

  uint64_t lost_ = 0;  // operations without an answer
  std::atomic<uint64_t> calls_ = 0;
  HistoryTally tally_;
  const unsigned seed_ = std::random_device{}();

 private:
  std::unique_ptr<ChildProcess> StartServer(const std::string& kind,
                                            const std::vector<std::string>& options = {});
  std::unique_ptr<ChildProcess> StartIndex();
  std::string ZooKeeperAddresses() const;
  void Empty();
  void Inflict(PoolFault fault);
  void KillBothIndex();
  void AddMemory();
  void StopMemory(ChildProcess& server);
  void DrainMemory(ChildProcess& server);
  void AwaitReplicas();
  void AwaitStatus(const std::function<bool(const nlohmann::json&)>& is_so);
  struct CommandResult {
    int status = 0;
    std::string output;
  };
  CommandResult RunCtl(const std::vector<std::string>& words) const;
  static std::string NumberOf(const ChildProcess& server);
  void MendMemory();
  void Mend();
  std::unique_ptr<KvClient> NewClient();
  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  std::mt19937_64 rng_{seed_};
  std::string folder_;
  int started_ = 0;
  std::unique_ptr<ZooKeeperServers> zookeeper_;
  std::vector<std::unique_ptr<ChildProcess>> memory_;
  std::vector<std::unique_ptr<ChildProcess>> index_;  // the hash server first
  std::map<const ChildProcess*, int> directories_;    // by index server
  std::unique_ptr<Store> store_;
};

void PoolHistories::SetUp() {
  const std::string missing = ZooKeeperServers::Missing();
  if (!missing.empty() && std::getenv("CI") != nullptr) FAIL() << missing;
  if (!missing.empty()) GTEST_SKIP() << missing;
  std::string folder = testing::TempDir() + "skep-pool-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  folder_ = folder;
  zookeeper_ = std::make_unique<ZooKeeperServers>(GetParam().zookeepers);
  for (int i = 0; i < 2; ++i) AddMemory();
  for (int i = 0; i < 2; ++i) index_.push_back(StartIndex());
  for (const auto& server : index_) {
    ASSERT_TRUE(server->WaitFor("epoch 1: ")) << server->output();
  }
  if (index_[0]->output().find("hash server") == std::string::npos) std::swap(index_[0], index_[1]);
  auto store = Store::Connect({.address = "pool://" + ZooKeeperAddresses() + "/p",
                               .fabric = GetParam().fabric,
                               .timeout_ms = 120'000});
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  store_ = std::move(*store);
}

void PoolHistories::TearDown() {
  if (HasFailure()) {
    std::cout << RunCtl({"status", "--json"}).output << RunCtl({"verify"}).output;
    for (const auto* servers : {&index_, &memory_}) {
      for (const auto& server : *servers) {
        server->ReadSome(0);
        std::cout << server->output();
      }
    }
  }
  store_.reset();
  index_.clear();
  memory_.clear();
  zookeeper_.reset();
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

std::unique_ptr<ChildProcess> PoolHistories::StartServer(const std::string& kind,
                                                         const std::vector<std::string>& options) {
  const bool is_mem = std::string_view(GetParam().fabric) == "mem";
  const std::string listen =
      is_mem ? "unix:" + folder_ + "/" + std::to_string(++started_) : "127.0.0.1:0";
  std::vector<std::string> words = {SKEP_POOL,  "--zk",     ZooKeeperAddresses(), "--name",
                                    "p",        "--fabric", GetParam().fabric,    kind,
                                    "--listen", listen};
  words.insert(words.end(), options.begin(), options.end());
  return std::make_unique<ChildProcess>(words);
}

// In a directory that no other one has.
std::unique_ptr<ChildProcess> PoolHistories::StartIndex() {
  const auto is_taken = [this](int number) {
    return std::ranges::any_of(index_, [&](const auto& server) {
      return server->is_running() && directories_[server.get()] == number;
    });
  };
  int number = 0;
  while (is_taken(number)) ++number;
  auto server = StartServer("index", {"--dir", folder_ + "/index-" + std::to_string(number)});
  directories_[server.get()] = number;
  return server;
}

std::string PoolHistories::ZooKeeperAddresses() const {
  std::string addresses;
  for (int i = 1; i <= zookeeper_->count(); ++i) {
    addresses += (i == 1 ? "" : ",") + zookeeper_->address(i);
  }
  return addresses;
}

std::unique_ptr<KvClient> PoolHistories::NewClient() {
  Engine& engine = StoreForTests::EngineOf(*store_);
  return std::make_unique<UnsureClient>(
      std::make_unique<SupportedClient>(std::make_unique<StoreClient>(*store_, engine),
                                        engine.traits()),
      calls_);
}

// A pool has no deletes of ranges.
void PoolHistories::Empty() {
  Batch scan;
  scan.Scan(Range::All(), {.keys_only = true});
  ASSERT_TRUE(store_->Execute(scan).ok());
  ASSERT_EQ(scan.outcome(0).verdict, Verdict::kDone) << scan.outcome(0).status.ToString();
  for (const Item& item : scan.items(0)) {
    ASSERT_TRUE(store_->Delete(item.key).has_value());
  }
}

// Whatever is stopped goes on afterwards.
void PoolHistories::Inflict(PoolFault fault) {
  ChildProcess& hash = *index_[0];
  ChildProcess& sorted = *index_[1];
  const auto stop = [&](const ChildProcess& server, milliseconds time) {
    server.Signal(SIGSTOP);
    std::this_thread::sleep_for(time);
    server.Signal(SIGCONT);
  };
  switch (fault) {
    case PoolFault::kNone:
      return;
    case PoolFault::kKillHash:
      EXPECT_TRUE(hash.Kill()) << hash.output();
      return;
    case PoolFault::kKillSorted:
      EXPECT_TRUE(sorted.Kill()) << sorted.output();
      return;
    case PoolFault::kStopHash:
      hash.Signal(SIGSTOP);
      EXPECT_TRUE(sorted.WaitFor(": both roles")) << sorted.output();
      std::this_thread::sleep_for(milliseconds(Below(1000)));
      return hash.Signal(SIGCONT);
    case PoolFault::kStopSorted:
      sorted.Signal(SIGSTOP);
      EXPECT_TRUE(hash.WaitFor(": both roles")) << hash.output();
      std::this_thread::sleep_for(milliseconds(Below(1000)));
      return sorted.Signal(SIGCONT);
    case PoolFault::kHiccupHash:
      return stop(hash, milliseconds(Below(400)));
    case PoolFault::kHiccupSorted:
      return stop(sorted, milliseconds(Below(400)));
    case PoolFault::kHiccupMemory:
      return stop(*memory_[Below(2)], milliseconds(Below(300)));
    case PoolFault::kKillMemory:
      EXPECT_TRUE(memory_[Below(2)]->Kill());
      return;
    case PoolFault::kStopMemory:
      return StopMemory(*memory_[Below(2)]);
    case PoolFault::kKillBothMemory:
      EXPECT_TRUE(memory_[0]->Kill());
      AwaitReplicas();
      EXPECT_TRUE(memory_[1]->Kill());
      return;
    case PoolFault::kDrainMemory:
      return DrainMemory(*memory_[Below(2)]);
    case PoolFault::kKillZooKeeper:
      zookeeper_->Kill(zookeeper_->FindLeader());
      std::this_thread::sleep_for(milliseconds(Below(500)));
      return zookeeper_->Restart();
    case PoolFault::kKillBothIndex:
      return KillBothIndex();
  }
}

void PoolHistories::KillBothIndex() {
  for (const auto& server : index_) EXPECT_TRUE(server->Kill()) << server->output();
  index_.clear();
  for (int i = 0; i < 2; ++i) index_.push_back(StartIndex());
}

void PoolHistories::AddMemory() {
  memory_.push_back(StartServer("memory", {"--bytes", "64mb"}));
  EXPECT_TRUE(memory_.back()->WaitFor("registered")) << memory_.back()->output();
}

void PoolHistories::StopMemory(ChildProcess& server) {
  const std::string number = NumberOf(server);
  server.Signal(SIGSTOP);
  AwaitStatus([&](const nlohmann::json& status) {
    return std::ranges::any_of(status["servers"], [&](const nlohmann::json& at) {
      return std::to_string(at["id"].get<uint32_t>()) == number && at["standing"] == "gone";
    });
  });
  server.Signal(SIGCONT);
}

// The newcomer has to take part by then.
void PoolHistories::DrainMemory(ChildProcess& server) {
  AwaitStatus([](const nlohmann::json& status) {
    return std::ranges::count_if(status["servers"], [](const nlohmann::json& at) {
             return at.value("standing", "") == "open" && at["answers"] == true;
           }) >= 3;
  });
  const CommandResult result = RunCtl({"drain", NumberOf(server)});
  EXPECT_EQ(result.status, 0) << result.output;
}

PoolHistories::CommandResult PoolHistories::RunCtl(const std::vector<std::string>& words) const {
  std::string command = SKEP_POOL;
  for (const std::string& option :
       {std::string("--zk"), ZooKeeperAddresses(), std::string("--name"), std::string("p"),
        std::string("--fabric"), std::string(GetParam().fabric), std::string("ctl")}) {
    command += " " + option;
  }
  for (const std::string& word : words) command += " " + word;
  CommandResult result;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  SKEP_CHECK(pipe != nullptr);
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, got);
  result.status = pclose(pipe);
  return result;
}

// Until the pool knows which servers are gone, and every chunk with items lies on two others.
void PoolHistories::AwaitReplicas() {
  AwaitStatus([](const nlohmann::json& status) {
    const auto is_taken_for = [](std::string_view standing, bool answers) {
      return [=](const nlohmann::json& at) {
        return at.value("standing", "") == standing && at["answers"] == answers;
      };
    };
    const auto& servers = status["servers"];
    return std::ranges::none_of(servers, is_taken_for("open", false)) &&
           std::ranges::count_if(servers, is_taken_for("open", true)) >= 2 &&
           status["under_replicated_chunks"] == 0;
  });
}

void PoolHistories::AwaitStatus(const std::function<bool(const nlohmann::json&)>& is_so) {
  for (;;) {
    const CommandResult result = RunCtl({"status", "--json"});
    const auto status = nlohmann::json::parse(result.output, nullptr, false);
    if (result.status == 0 && !status.is_discarded() && is_so(status)) return;
    std::this_thread::sleep_for(milliseconds(50));
  }
}

std::string PoolHistories::NumberOf(const ChildProcess& server) {
  constexpr std::string_view kBefore = "memory server ";
  const std::string& output = server.output();
  const size_t begin = output.rfind(kBefore) + kBefore.size();
  return output.substr(begin, output.find(' ', begin) - begin);
}

// Two memory servers that run, and are the pool's.
void PoolHistories::MendMemory() {
  // One that was drained has ended by itself.
  for (const auto& server : memory_) {
    if (server->is_running() && !server->ReadSome(0)) server->Kill();
  }
  std::erase_if(memory_, [](const auto& server) { return !server->is_running(); });
  while (memory_.size() < 2) AddMemory();
  AwaitReplicas();
}

// A server that was killed is replaced by another process, one that was stopped by itself: both as
// newcomers, which are given the state.
void PoolHistories::Mend() {
  MendMemory();
  std::erase_if(index_, [](const auto& server) { return !server->is_running(); });
  while (index_.size() < 2) index_.push_back(StartIndex());
  const auto role = [](ChildProcess& server) {
    const std::string& output = server.output();
    const size_t at = output.rfind("epoch ");
    return at == std::string::npos ? std::string() : output.substr(output.find(": ", at) + 2);
  };
  for (;;) {
    for (const auto& server : index_) ASSERT_TRUE(server->ReadSome(20)) << server->output();
    if (role(*index_[1]).starts_with("hash server")) std::swap(index_[0], index_[1]);
    const bool is_whole = role(*index_[0]).starts_with("hash server") &&
                          role(*index_[1]).starts_with("sorted server");
    if (is_whole) return;
  }
}

void PoolHistories::RunRound(uint64_t round, PoolFault fault) {
  ASSERT_NO_FATAL_FAILURE(Empty());
  RoundShape shape = ShapeOf(round);
  shape.mix.snapshots = 0;
  shape.mix.ticks = 0;
  shape.mix.transactions = 0;
  shape.mix.batches = 0;
  shape.neighbours = Neighbours::kNone;
  shape.clients = 3;
  if (fault == PoolFault::kKillBothMemory || fault == PoolFault::kDrainMemory) AddMemory();
  const uint64_t calls_before = calls_;
  const uint64_t when = 5 + Below(80);
  const uint64_t seed = rng_();
  PlayedRound played;
  {
    std::atomic<bool> is_over = false;
    const std::jthread playing([&] {
      played = PlayRound(seed, shape, [&] { return NewClient(); });
      is_over = true;
    });
    while (calls_ - calls_before < when && !is_over) std::this_thread::yield();
    // By this thread: a process ends with the one that has started it.
    Inflict(fault);
  }
  tally_.Add(played.history);
  lost_ += static_cast<uint64_t>(
      std::ranges::count_if(played.history, [](const Operation& o) { return o.is_pending(); }));
  const CheckResult result = CheckLinearizable(played.history, played.check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  ASSERT_NO_FATAL_FAILURE(Mend());
}

// Goal: what clients of a pool are told is one linearizable history, scans and counts included,
// whichever server dies, hangs or is late meanwhile, and however often.
// Method: rounds of three clients on few keys. In each round one process is killed or stopped when
// the clients have made some calls; afterwards the pool gets an index server again, which is given
// the state. Every operation has its answer in the end.
TEST_P(PoolHistories, AreLinearizable) {
  std::printf("seed %u\n", seed_);
  uint64_t rounds = 0;
  ForRounds(kFaults, [&](uint64_t round) {
    const auto fault = static_cast<PoolFault>(round % kFaults);
    SCOPED_TRACE(testing::Message() << "round " << round);
    RunRound(round, fault);
    ++rounds;
  });
  std::cout << tally_ << "\n" << rounds << " rounds: " << lost_ << " operations without answer\n";
  EXPECT_GT(calls_, kRoundOperations * rounds);
  EXPECT_EQ(lost_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Worlds, PoolHistories,
                         testing::Values(PoolWorld{"mem", "mem", 1}, PoolWorld{"tcp", "tcp", 3}),
                         [](const auto& world) { return std::string(world.param.name); });

}  // namespace
}  // namespace skep::linearizability

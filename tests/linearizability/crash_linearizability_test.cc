// Judges histories of connections to a server that is killed in the middle of them, and restarted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/linearizability/checker.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/padded_client.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/resp_client.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/server_process.h"

namespace skep::linearizability {
namespace {

// Asks for no ranges, for a server without order.
class OrderlessClient final : public KvClient {
 public:
  explicit OrderlessClient(std::unique_ptr<KvClient> inner) : inner_(std::move(inner)) {}

  bool Supports(const Operation& operation) const override {
    const auto is_range = [](const Step& step) { return IsRange(step.action); };
    return std::ranges::none_of(operation.steps, is_range) && inner_->Supports(operation);
  }
  Reply Perform(Operation& operation) override { return inner_->Perform(operation); }

 private:
  const std::unique_ptr<KvClient> inner_;
};

// One directory, and one server after the other on it.
class KilledServer : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t kOperationsMax = 2'000;  // of a client in one life: none gets so far

  void SetUp() override {
    std::string folder = testing::TempDir() + "skep-killed-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    std::printf("seed %u\n", seed_);
  }
  void TearDown() override {
    server_.reset();
    if (HasFailure()) {
      std::cout << "data in " << folder_ << "\n";
    } else {
      std::filesystem::remove_all(folder_);
    }
  }

  // One history on an empty store, over one kill or two.
  void RunRound(uint64_t round);
  // Returns what clients are told until the server is killed.
  History Live(const RoundShape& shape, const Padding& padding, uint32_t first_client);
  void Start();

  uint64_t kills_ = 0;
  uint64_t early_ = 0;  // kills before the server was ready
  uint64_t lost_ = 0;   // operations without an answer that may have changed something
  HistoryTally tally_;

 private:
  bool is_ordered() const { return std::string_view(GetParam()) != "hash"; }
  uint64_t Below(uint64_t bound) { return rng_() % bound; }
  ServerProcess::Options Options();
  std::unique_ptr<KvClient> NewClient(const Padding& padding) const;
  Operation ReadAll(const RoundShape& shape, const Padding& padding);
  void Flush();
  void KillInTheMiddle(const std::atomic<uint32_t>& running);
  void Count(RespConnection& admin);

  const unsigned seed_ = std::random_device{}();
  std::mt19937_64 rng_{seed_};
  std::string folder_;
  std::optional<ServerProcess> server_;
  Address address_;
  std::atomic<uint64_t> clock_ = 0;
  std::atomic<bool> is_killed_ = false;
  int64_t count_ = 0;      // the last answered one
  uint64_t released_ = 0;  // version of count_, or a later one
};

// Nodes are of another kind in each life: the files do not depend on it.
ServerProcess::Options KilledServer::Options() {
  ServerProcess::Options options = {{"dir", folder_ + "/data"},
                                    {"appendfsync", "always"},
                                    {"engine", GetParam()},
                                    {"workers", "3"},
                                    {"log-segment-bytes", "64kb"}};
  if (Below(2) == 0) options.emplace_back("btree-node-bytes", "2048");
  if (Below(3) == 0) options.emplace_back("btree-log-bytes", "0");
  if (Below(3) == 0) options.emplace_back("btree-layout", "paper");
  return options;
}

// Starts the server; some starts are killed early.
void KilledServer::Start() {
  while (Below(5) == 0) {
    ServerProcess early(Options());
    std::this_thread::sleep_for(std::chrono::microseconds(Below(40'000)));
    ASSERT_TRUE(early.Kill()) << early.output();
    ++kills_;
    ++early_;
  }
  server_.emplace(Options());
  const std::optional<Address> address = server_->WaitUntilReady();
  ASSERT_TRUE(address) << server_->output();
  address_ = *address;
  is_killed_ = false;
  RespConnection admin(SocketNetwork(), address_);
  Count(admin);
}

std::unique_ptr<KvClient> KilledServer::NewClient(const Padding& padding) const {
  std::unique_ptr<KvClient> client = std::make_unique<RespClient>(SocketNetwork(), address_);
  if (!is_ordered()) client = std::make_unique<OrderlessClient>(std::move(client));
  return std::make_unique<PaddedClient>(std::move(client), padding, Neighbours::kNone);
}

void KilledServer::Flush() {
  RespConnection admin(SocketNetwork(), address_);
  const auto flushed = admin.Ask({"FLUSHDB"});
  ASSERT_TRUE(flushed && !flushed->is_error());
}

// Counts in a database of its own. The answer to the last count before may be missing, if the
// server was killed. No reported version comes again.
void KilledServer::Count(RespConnection& admin) {
  constexpr std::string_view kReleased = "released=";
  if (!admin.Ask({"SELECT", "1"})) return;
  const auto count = admin.Ask({"INCR", "count"});
  if (!count) return;
  EXPECT_GE(count->integer, count_ + 1) << server_->output();
  EXPECT_LE(count->integer, count_ + 2) << server_->output();
  count_ = count->integer;
  const auto info = admin.Ask({"INFO", "keyspace"});
  if (!info) return;
  const size_t at = info->text.find(kReleased, info->text.find("keyspace1:"));
  ASSERT_NE(at, std::string::npos) << info->text;
  const uint64_t released = std::strtoull(&info->text[at + kReleased.size()], nullptr, 10);
  EXPECT_GT(released, released_) << server_->output();
  released_ = released;
}

Operation KilledServer::ReadAll(const RoundShape& shape, const Padding& padding) {
  Operation all;
  if (is_ordered()) {
    all.steps.push_back({.action = Action::kScan, .unbounded = true});
  } else {
    for (uint32_t i = 0; i < shape.mix.keys; ++i) {
      all.steps.push_back(
          {.action = Action::kGet, .key = std::string(1, static_cast<char>('a' + i))});
    }
  }
  all.call = clock_.fetch_add(1);
  EXPECT_EQ(NewClient(padding)->Perform(all), KvClient::Reply::kAnswered);
  all.returned = clock_.fetch_add(1);
  return all;
}

// Kills the server after a random number of calls and returns, not after a time, so that histories
// are as long on a slow machine; now and then in the middle of a snapshot.
void KilledServer::KillInTheMiddle(const std::atomic<uint32_t>& running) {
  RespConnection admin(SocketNetwork(), address_);
  const uint64_t end = clock_ + 20 + Below(200);
  const uint64_t save = Below(3) == 0 ? clock_ + Below(200) : UINT64_MAX;
  bool is_saved = false;
  while (clock_ < end && running > 0) {
    Count(admin);
    if (clock_ >= save && !is_saved) is_saved = admin.Ask({"BGSAVE"}).has_value();
    std::this_thread::sleep_for(std::chrono::microseconds(Below(1'000)));
  }
  is_killed_ = true;
  ++kills_;
  EXPECT_TRUE(server_->Kill()) << server_->output();
}

History KilledServer::Live(const RoundShape& shape, const Padding& padding, uint32_t first_client) {
  std::vector<History> parts(shape.clients);
  std::atomic<uint64_t> time = 0;
  std::atomic<uint32_t> running = shape.clients;
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < shape.clients; ++i) {
      threads.emplace_back([&, i, client = NewClient(padding), seed = rng_()] {
        Workload workload(first_client + i, seed, shape.mix, time,
                          [&](const Operation& o) { return client->Supports(o); });
        parts[i] = RunClient(*client, workload, kOperationsMax, clock_, nullptr);
        EXPECT_TRUE(is_killed_) << "ended before the server: " << parts[i].back();
        --running;
      });
    }
    KillInTheMiddle(running);
  }
  History history;
  for (const History& part : parts) history.insert(history.end(), part.begin(), part.end());
  return history;
}

void KilledServer::RunRound(uint64_t round) {
  RoundShape shape = ShapeOf(round);
  shape.mix.snapshots = 0;
  shape.mix.ticks = 0;
  shape.mix.transactions = 2;
  const Padding padding(rng_());
  ASSERT_NO_FATAL_FAILURE(Flush());
  CheckOptions check;
  if (shape.filled) check.initial = Fill(*NewClient(padding), shape.mix);
  History history;
  for (uint64_t life = 0, lives = 1 + Below(2); life < lives; ++life) {
    const History more = Live(shape, padding, static_cast<uint32_t>(life) * shape.clients);
    history.insert(history.end(), more.begin(), more.end());
    ASSERT_NO_FATAL_FAILURE(Start());
  }
  history.push_back(ReadAll(shape, padding));
  tally_.Add(history);
  lost_ += static_cast<uint64_t>(std::ranges::count_if(
      history, [](const Operation& o) { return o.is_pending() && Writes(o); }));
  const CheckResult result = CheckLinearizable(history, check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
}

// Goal: what clients are told before and after a kill -9 is one linearizable history: an answered
// operation has been done, one without an answer has been done at some time, whole, or never; a
// version never comes again.
// Method: rounds of two to four clients as in resp_linearizability_test.cc. The server is killed
// when they have made some calls, and restarted on its directory; a start may be killed too.
// Operations without an answer are pending. The round ends with a reading of all keys, and the next
// one begins with an empty store, so that pending operations are forgotten.
TEST_P(KilledServer, AreLinearizable) {
  constexpr uint64_t kRoundsMin = 5;
  uint64_t rounds = 0;
  ASSERT_NO_FATAL_FAILURE(Start());
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    RunRound(round);
    ++rounds;
  });
  if (HasFatalFailure()) return;
  std::cout << tally_ << "\n"
            << rounds << " rounds: " << kills_ << " kills, " << early_ << " of them early; "
            << lost_ << " writes without answer\n";
  EXPECT_GT(lost_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, KilledServer, testing::Values("btree", "hash"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace skep::linearizability

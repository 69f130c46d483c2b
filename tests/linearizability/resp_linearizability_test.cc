// Judges histories of real connections to a real server by the checker.
#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "base/check.h"
#include "server/server.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/faulty_client.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/play_round.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/resp_client.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/supported_client.h"
#include "tests/linearizability/tree_probe.h"

namespace skep::linearizability {
namespace {

// A server in this process, on a port that the system chooses.
class RunningServer {
 public:
  // Threads are held up at one in so many places of the server's tree.
  static constexpr uint32_t kHoldUpOneIn = 32;

  RunningServer(const Variant& variant, TreeTally& tally)
      : server_(Options(variant), SystemEnvironment()) {
    started_ = server_.Start().ok();
    if (!started_) return;
    probe_.emplace(engine(), tally, kHoldUpOneIn);
    thread_ = std::jthread([this] { SKEP_CHECK(server_.Run().ok()); });
  }
  ~RunningServer() { End(); }

  bool started() const { return started_; }
  Address address() const { return server_.addresses().front(); }
  Engine& engine() { return server_.keyspaces().at(0); }
  void Note() { probe_->Note(); }
  // Stops the server; no thread runs in it then.
  void End() {
    if (!thread_.joinable()) return;
    server_.Stop();
    thread_.join();
  }

 private:
  static ServerOptions Options(const Variant& variant) {
    ServerOptions options;
    options.port = 0;
    options.workers = 3;
    options.loglevel = "warning";
    options.engine = variant.engine;
    options.btree_node_bytes = variant.btree.node_bytes;
    options.btree_log_bytes = variant.btree.log_bytes;
    options.btree_layout = variant.btree.layout;
    return options;
  }

  Server server_;
  bool started_ = false;
  std::optional<TreeProbe> probe_;
  std::jthread thread_;
};

class RespHistories : public testing::TestWithParam<const Variant*> {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.started()); }

  void FlushAll() {
    RespConnection admin(SocketNetwork(), server_.address());
    const auto flushed = admin.Ask({"FLUSHALL"});
    EXPECT_TRUE(flushed && !flushed->is_error());
  }
  std::unique_ptr<KvClient> NewClient() {
    return std::make_unique<SupportedClient>(
        std::make_unique<RespClient>(SocketNetwork(), server_.address()),
        server_.engine().traits());
  }

  // Plays one round on an empty keyspace.
  void RunRound(uint64_t seed, const RoundShape& shape);

  TreeTally tally_;
  HistoryTally history_tally_;
  RunningServer server_{*GetParam(), tally_};
};

void RespHistories::RunRound(uint64_t seed, const RoundShape& shape) {
  FlushAll();
  const auto [history, check] = PlayRound(seed, shape, [&] { return NewClient(); });
  ASSERT_EQ(history.size(), shape.clients * kRoundOperations);
  for (const Operation& operation : history) ASSERT_FALSE(operation.is_pending()) << operation;
  history_tally_.Add(history);
  const CheckResult result = CheckLinearizable(history, check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  server_.Note();
}

// Goal: the answers of a server to several connections are linearizable, whichever workers serve
// them, however commands are batched, and however the tree changes around them.
// Method: rounds of two to four clients; three workers share the store. Keys, values and neighbours
// as in linearizability_test.cc; operations that RESP does not have are left out. Every client must
// have had all its replies.
TEST_P(RespHistories, AreLinearizable) {
  constexpr uint64_t kRoundsMin = 20;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  uint64_t rounds = 0;
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.snapshots = 0;
    shape.mix.ticks = 0;
    shape.mix.transactions = 2;
    RunRound(seed + round, shape);
    ++rounds;
  });
  if (HasFatalFailure()) return;
  server_.End();
  EXPECT_STREQ(server_.engine().Verify(), nullptr);
  std::cout << history_tally_ << "\n";
  EXPECT_GT(history_tally_.unchanged, 0u);
  EXPECT_GT(history_tally_.changed, 0u);
  EXPECT_GT(history_tally_.held, 0u);
  EXPECT_GT(history_tally_.failed, 0u);
  EXPECT_GT(history_tally_.seen, 0u);
  EXPECT_GT(history_tally_.parts, 0u);
  if (!GetParam()->is_tree()) return;
  std::cout << rounds << " rounds: " << tally_ << "\n";
  EXPECT_GT(tally_.restructurings(), rounds);
  EXPECT_GT(tally_.range_deletes(), rounds / 4);
  EXPECT_GT(tally_.siblings(), 0u);
  EXPECT_GT(tally_.height_max(), 1u);
}

// Goal: the test above would find a server that is wrong.
// Method: clients that split into several commands what must be one.
TEST_P(RespHistories, OfEachFaultAreCaught) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  for (const Fault fault :
       {Fault::kReadsFromACache, Fault::kSplitsBatches, Fault::kScansInTwoHalves,
        Fault::kReadsThenWrites, Fault::kWatchesLate, Fault::kSeesThePast}) {
    if (!Promises(server_.engine().traits(), fault)) continue;
    Answer answer = Answer::kLinearizable;
    for (uint64_t round = 0; round < 200 && answer == Answer::kLinearizable; ++round) {
      FlushAll();
      const Mix mix{.keys = 4, .snapshots = 0, .ticks = 0};
      const History history = RunHistory(3, 100, seed + round, mix, [&](uint32_t) {
        return std::make_unique<FaultyClient>(NewClient(), fault);
      });
      answer = CheckLinearizable(history).answer;
    }
    EXPECT_EQ(answer, Answer::kNotLinearizable) << "fault " << static_cast<int>(fault);
  }
}

// A tree of one version promises only points over the wire: transactions are in parts.
std::vector<const Variant*> Variants() {
  std::vector<const Variant*> variants;
  for (const Variant& variant : AllVariants()) {
    if (variant.btree.multi_version) variants.push_back(&variant);
  }
  return variants;
}

INSTANTIATE_TEST_SUITE_P(Engines, RespHistories, testing::ValuesIn(Variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

}  // namespace
}  // namespace skep::linearizability

// Judges histories of threads that share a client of a server, over the packed protocol, by the
// checker: on connections that last, on connections that break in the middle of messages, and by
// datagrams that get lost.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <iostream>
#include <random>

#include "base/temporary_directory_test.h"
#include "netindex/leaves/leaf_share.h"
#include "tests/client/flaky_proxy.h"
#include "tests/client/lossy_network.h"
#include "tests/client/lying_tree.h"
#include "tests/client/test_server.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/faulty_client.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/play_round.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/store_client.h"
#include "tests/linearizability/store_for_tests.h"

namespace skep::linearizability {
namespace {

class RemoteHistories : public testing::Test {
 protected:
  void Connect(const Address& address, bool datagrams = false, bool fat_root = false,
               const std::string& one_sided = {}) {
    auto store = Store::Connect({.address = address,
                                 .connections = 2,
                                 .timeout_ms = 60'000,
                                 .datagrams = datagrams,
                                 .fat_root = fat_root,
                                 .one_sided = one_sided});
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    store_ = std::move(*store);
  }
  std::unique_ptr<KvClient> NewClient() {
    if (new_client_ != nullptr) return new_client_();
    return std::make_unique<StoreClient>(*store_, StoreForTests::EngineOf(*store_));
  }
  void Empty() {
    Batch batch;
    batch.DeleteAll();
    ASSERT_TRUE(store_->Execute(batch).ok());
  }
  void RunRound(uint64_t seed, const RoundShape& shape);

  TestServer server_{[] {
    ServerOptions options;
    options.workers = 3;
    return options;
  }()};
  // How many questions the store has answered by reading leaves.
  static uint64_t ReadAnswers(Store& store) {
    uint64_t answered = 0;
    StoreForTests::EngineOf(store).Describe(0, [&](std::string_view name, uint64_t value) {
      if (name == "one_sided_answered") answered = value;
    });
    return answered;
  }

  std::unique_ptr<Store> store_;
  std::function<std::unique_ptr<KvClient>()> new_client_;  // null: of store_
  HistoryTally tally_;
};

void RemoteHistories::RunRound(uint64_t seed, const RoundShape& shape) {
  Empty();
  const auto [history, check] = PlayRound(seed, shape, [&] { return NewClient(); });
  for (const Operation& operation : history) ASSERT_FALSE(operation.is_pending()) << operation;
  tally_.Add(history);
  const CheckResult result = CheckLinearizable(history, check);
  ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
}

// Goal: the answers of a server to threads that share two connections are linearizable, batches,
// ranges, transactions and snapshots included.
// Method: rounds as in linearizability_test.cc, without times: the server has its own.
TEST_F(RemoteHistories, AreLinearizable) {
  constexpr uint64_t kRoundsMin = 20;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ASSERT_NO_FATAL_FAILURE(Connect(server_.address()));
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.ticks = 0;
    RunRound(seed + round, shape);
  });
  std::cout << tally_ << "\n";
  EXPECT_GT(tally_.changed, 0u);
  EXPECT_GT(tally_.held, 0u);
  EXPECT_GT(tally_.failed, 0u);
  EXPECT_GT(tally_.seen, 0u);
}

// Goal: the answers are linearizable while connections break and unanswered messages are sent
// again: nothing is done twice, nothing that was answered is undone, and every call has its answer.
// Method: without watches and snapshots, which end with a connection.
TEST_F(RemoteHistories, AreLinearizableOverConnectionsThatBreak) {
  constexpr uint64_t kRoundsMin = 20;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  FlakyProxy proxy(server_.address(), seed, 400'000);  // replies have up to 150,000 bytes
  ASSERT_NO_FATAL_FAILURE(Connect(proxy.address()));
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.ticks = 0;
    shape.mix.snapshots = 0;
    shape.mix.transactions = 0;
    shape.mix.value_bytes = {0};
    RunRound(seed + round, shape);
  });
  std::cout << tally_ << "\n" << proxy.cuts() << " cuts\n";
  EXPECT_GT(proxy.cuts(), 0u);
  EXPECT_GT(tally_.held, 0u);
}

// Goal: the answers are linearizable if batches are datagrams of which many are lost, doubled or
// late: nothing is done twice, also not operations whose answer was lost.
TEST_F(RemoteHistories, AreLinearizableOverDatagramsThatGetLost) {
  constexpr uint64_t kRoundsMin = 20;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  LossyNetwork network({.lost = 5'000, .doubled = 300'000, .delayed = 20'000}, seed);
  ServerOptions options;
  options.workers = 3;
  options.udp = true;
  TestServer server(options, {}, nullptr, network);
  ASSERT_NO_FATAL_FAILURE(Connect(server.address(), true));
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.ticks = 0;
    RunRound(seed + round, shape);
  });
  std::cout << tally_ << "\n" << network.lost() << " of " << network.carried() << " lost\n";
  EXPECT_GT(network.lost(), 0u);
  EXPECT_GT(tally_.held, 0u);
}

// Goal: the answers are linearizable if requests have hints, from a server that tells its leaves as
// they are, and from one that lies, so that most hints name another node of the tree or none.
// Method: small nodes, so that the leaves split and join.
TEST_F(RemoteHistories, AreLinearizableWithHintsThatMayBeLies) {
  constexpr uint64_t kRoundsMin = 20;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ServerOptions options;
  options.workers = 3;
  options.btree_node_bytes = 2048;
  options.btree_log_bytes = 128;
  TestServer truthful(options);
  TestServer liar(options, {}, &kLyingTree);
  for (const TestServer* const server : {&truthful, &liar}) {
    ASSERT_NO_FATAL_FAILURE(Connect(server->address(), false, true));
    ForRounds(kRoundsMin, [&](uint64_t round) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
      RoundShape shape = ShapeOf(round);
      shape.mix.ticks = 0;
      RunRound(seed + round, shape);
    });
  }
  std::cout << tally_ << "\n";
  EXPECT_GT(tally_.held, 0u);
}

// Goal: the answers are linearizable if a client reads the leaves of its server, over either
// fabric, while others write, delete ranges and empty the store.
// Method: small nodes, so that leaves split and join. Two stores read and one calls; each has a
// client or two, as a store sends what follows a call of its own on a key.
TEST_F(RemoteHistories, AreLinearizableWithLeavesThatAreRead) {
  constexpr uint64_t kRoundsMin = 50;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  const TemporaryDirectory directory;
  for (const std::string& place :
       {"mem:unix:" + directory.path() + "/leaves", std::string("tcp:127.0.0.1:0")}) {
    ServerOptions options;
    options.workers = 3;
    options.btree_node_bytes = 2048;
    options.btree_log_bytes = 128;
    options.share_leaves = place;
    TestServer server(options);
    const std::string shared_at = server.server().state().leaf_share()->place();
    const auto calling = Store::Connect({.address = server.address(), .timeout_ms = 60'000});
    const auto reading =
        Store::Connect({.address = server.address(), .timeout_ms = 60'000, .one_sided = shared_at});
    ASSERT_TRUE(calling.has_value() && reading.has_value());
    ASSERT_NO_FATAL_FAILURE(Connect(server.address(), false, false, shared_at));
    Store* const stores[] = {store_.get(), reading->get(), calling->get()};
    std::atomic<uint32_t> clients = 0;
    new_client_ = [&] {
      Store& store = *stores[clients++ % std::size(stores)];
      return std::make_unique<StoreClient>(store, StoreForTests::EngineOf(store));
    };
    ForRounds(kRoundsMin, [&](uint64_t round) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
      RoundShape shape = ShapeOf(round);
      shape.mix.ticks = 0;
      shape.mix.points *= 4;
      RunRound(seed + round, shape);
    });
    const uint64_t answered = ReadAnswers(*store_) + ReadAnswers(**reading);
    std::cout << tally_ << "\n" << answered << " read over " << place << "\n";
    EXPECT_GT(answered, kRoundsMin / 2);
    store_.reset();
  }
}

// Goal: the tests above would find a client that is wrong.
TEST_F(RemoteHistories, OfEachFaultAreCaught) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ASSERT_NO_FATAL_FAILURE(Connect(server_.address()));
  for (const Fault fault : {Fault::kReadsFromACache, Fault::kSplitsBatches, Fault::kReadsThenWrites,
                            Fault::kSeesThePast}) {
    Answer answer = Answer::kLinearizable;
    for (uint64_t round = 0; round < 200 && answer == Answer::kLinearizable; ++round) {
      Empty();
      const Mix mix{.keys = 4, .snapshots = 0, .ticks = 0};
      const History history = RunHistory(3, 100, seed + round, mix, [&](uint32_t) {
        return std::make_unique<FaultyClient>(NewClient(), fault);
      });
      answer = CheckLinearizable(history).answer;
    }
    EXPECT_EQ(answer, Answer::kNotLinearizable) << "fault " << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace skep::linearizability

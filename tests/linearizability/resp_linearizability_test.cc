// Histories of real connections to a real server, judged by the checker.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <thread>

#include "server/server.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/faulty_client.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/resp_client.h"
#include "tests/linearizability/rounds.h"

namespace skep::linearizability {
namespace {

// A server in this process, on a port the system chose.
class RunningServer {
 public:
  RunningServer() : server_(Options(), SystemEnvironment()) {
    started_ = server_.Start().ok();
    if (started_) thread_ = std::jthread([this] { server_.Run(); });
  }
  ~RunningServer() {
    if (started_) server_.Stop();
  }

  bool started() const { return started_; }
  Address address() const { return server_.addresses().front(); }

 private:
  static ServerOptions Options() {
    ServerOptions options;
    options.port = 0;
    options.workers = 3;
    options.loglevel = "warning";
    return options;
  }

  Server server_;
  bool started_ = false;
  std::jthread thread_;
};

class RespHistories : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.started()); }

  // One round on an empty keyspace.
  template <typename MakeClient>
  History Round(uint32_t clients, uint32_t operations, uint64_t seed, const Mix& mix,
                MakeClient make_client) {
    RespConnection admin(SocketNetwork(), server_.address());
    const auto flushed = admin.Ask({"FLUSHALL"});
    EXPECT_TRUE(flushed && !flushed->is_error());
    return RunHistory(clients, operations, seed, mix, make_client);
  }

  std::unique_ptr<KvClient> NewClient() const {
    return std::make_unique<RespClient>(SocketNetwork(), server_.address());
  }

  RunningServer server_;
};

// Goal: what a server answers to several connections is linearizable, whatever worker serves them
// and however commands are batched.
// Method: rounds of two to four clients on few keys; three workers share the store. Every client
// must have had all its replies.
TEST_F(RespHistories, AreLinearizable) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  constexpr uint32_t kOperations = 60;
  ForRounds(60, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const uint32_t clients = 2 + static_cast<uint32_t>(round % 3);
    const Mix mix{.keys = 2 + static_cast<uint32_t>(round % 4), .snapshots = 0};
    const History history =
        Round(clients, kOperations, seed + round, mix, [&](uint32_t) { return NewClient(); });
    ASSERT_EQ(history.size(), clients * kOperations);
    for (const Operation& operation : history) ASSERT_FALSE(operation.is_pending()) << operation;
    const CheckResult result = CheckLinearizable(history);
    ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  });
}

// Goal: the test above would see a server that is wrong.
// Method: clients that split what must be one command in several.
TEST_F(RespHistories, OfEachFaultAreCaught) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  for (const Fault fault : {Fault::kReadsFromACache, Fault::kSplitsBatches,
                            Fault::kScansInTwoHalves, Fault::kReadsThenWrites}) {
    Answer answer = Answer::kLinearizable;
    for (uint64_t round = 0; round < 200 && answer == Answer::kLinearizable; ++round) {
      const Mix mix{.keys = 4, .snapshots = 0};
      const History history = Round(3, 100, seed + round, mix, [&](uint32_t) {
        return std::make_unique<FaultyClient>(NewClient(), fault);
      });
      answer = CheckLinearizable(history).answer;
    }
    EXPECT_EQ(answer, Answer::kNotLinearizable) << "fault " << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace skep::linearizability

// What a worker does about clients that take too much, or do not read: on a server in one thread.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "server/server.h"
#include "sim/simulation.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kKeys = 2000;
constexpr size_t kValueBytes = 8192;
constexpr size_t kDataBytes = kKeys * kValueBytes;

class WorkerLimits : public testing::Test {
 protected:
  void Start(ServerOptions options) {
    options.workers = 1;
    options.logfile = "log";
    server_ = std::make_unique<Server>(
        options, Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()});
    ASSERT_TRUE(server_->Start().ok());
    sim_.AddActor("worker", [this] { return server_->worker(0).Turn(-1); });
    const std::string value(kValueBytes, 'v');
    for (uint32_t i = 0; i < kKeys; ++i) Put(std::to_string(kKeys + i), value);
  }

  void Put(const std::string& key, const std::string& value) {
    Batch batch;
    batch.Put(key, value);
    engine().Execute(batch);
    ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  }

  // Memory is scarce, but there is room for a reply's buffer and for some writes.
  void LeaveATenth() {
    MemoryBudget& budget = server_->keyspaces().budget();
    budget.set_limit(budget.used() + kDataBytes / 8);
    ASSERT_FALSE(budget.HasRoomFor(budget.limit() / 8));
  }

  std::unique_ptr<Stream> AskForAll() {
    auto stream = sim_.network().Connect("127.0.0.1:6379", 0);
    EXPECT_TRUE(stream.has_value());
    std::string bytes;
    AppendCommand(bytes, {"KRANGE", "-", "+", "WITHVALUES"});
    EXPECT_EQ((*stream)->Write(bytes), static_cast<ssize_t>(bytes.size()));
    Pass(milliseconds(20));
    return std::move(*stream);
  }

  void Pass(std::chrono::nanoseconds time) {
    sim_.RunUntil([] { return false; }, time);
  }
  Engine& engine() { return server_->keyspaces().at(0); }

  Simulation sim_{7, {.network = {.short_writes_ppm = 0}}};
  std::unique_ptr<Server> server_;
};

// Goal: while memory is scarce a client that reads has its range whole, however often the network
//   takes less than the server has.
TEST_F(WorkerLimits, RangesOfThoseThatReadAreNotCut) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Put(std::to_string(kKeys), "newer");
  ASSERT_GT(engine().Statistics().old_versions, 0u);
  size_t received = 0;
  ssize_t got = 0;
  for (int turn = 0; turn < 5000 && received < kDataBytes; ++turn) {
    Pass(milliseconds(5));
    std::string bytes(64 * 1024, '\0');
    while ((got = client->Read(bytes.data(), bytes.size())) > 0) {
      received += static_cast<size_t>(got);
    }
    ASSERT_EQ(got, -EAGAIN) << "cut after " << received;
  }
  EXPECT_GE(received, kDataBytes);
}

// Goal: while memory is scarce one that reads nothing keeps its pin for some seconds, and for as
//   long as the pin holds nothing back.
TEST_F(WorkerLimits, RangesOfThoseThatDoNotReadGiveUpWhatTheyHoldBack) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Pass(seconds(20));
  EXPECT_EQ(engine().Statistics().snapshots, 1u) << "nothing is held back";
  Put(std::to_string(kKeys), "newer");
  ASSERT_GT(engine().Statistics().old_versions, 0u);
  Pass(seconds(1));
  EXPECT_EQ(engine().Statistics().snapshots, 0u);
}

// Goal: one that has just stopped to read is given some seconds.
TEST_F(WorkerLimits, RangesOfThoseThatPauseAreNotCut) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Put(std::to_string(kKeys), "newer");
  Pass(seconds(3));
  EXPECT_EQ(engine().Statistics().snapshots, 1u);
  Pass(seconds(4));
  EXPECT_EQ(engine().Statistics().snapshots, 0u);
}

// Goal: a range that is collected before it is sent counts as memory of its client.
TEST_F(WorkerLimits, CollectedRangesCount) {
  Start({.engine = "btree", .btree_multi_version = false});
  const auto client = AskForAll();
  EXPECT_GT(server_->client_bytes(), kDataBytes);
}

}  // namespace
}  // namespace skep

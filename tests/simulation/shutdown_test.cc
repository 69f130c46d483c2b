// Tests the server's end: acknowledged writes are done, replies are whole or cut where the
// connection closes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/numbered_keys.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

int64_t CounterIn(SimCluster& cluster, const std::string& key) {
  Batch batch;
  batch.Get(key);
  cluster.server().keyspaces().at(0).Execute(batch);
  return std::atoll(std::string(batch.outcome(0).value).c_str());
}

// Takes all replies, which must be 1, 2, 3... Returns how many there were.
int64_t TakeCounts(SimClient& client) {
  int64_t count = 0;
  while (const auto reply = client.Take()) {
    EXPECT_EQ(reply->type, RespReply::Type::kInteger);
    EXPECT_EQ(reply->integer, ++count);
  }
  EXPECT_TRUE(client.broken_reply().empty()) << client.broken_reply();
  return count;
}

// Goal: a server that is told to stop finishes the replies it has begun, closes every connection
// and ends; no acknowledged write is missing.
// Method: clients with pipelines of increments, one that has a large reply, one that never reads;
// Stop() or SHUTDOWN at a random time.
TEST(Shutdown, AcknowledgedIsDoneAndEverybodyIsClosed) {
  size_t cut = 0;
  const SeedRange seeds = Seeds(12);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    ClusterOptions options{.config = "workers = 2\n", .lagging = seed % 3 == 0};
    options.world.network = RandomNetwork(seed);
    SimCluster cluster(seed, options);
    NumberedKeys keys(cluster, 800, 200);
    constexpr int64_t kIncrements = 1500;
    std::vector<SimClient*> counters;
    for (int i = 0; i < 3; ++i) {
      counters.push_back(&cluster.Connect());
      const std::string key = fmt::format("n{}", i);
      for (int64_t j = 0; j < kIncrements; ++j) counters.back()->Send({"INCR", key});
    }
    SimClient& reader = cluster.Connect();
    reader.Send({"KRANGE", "-", "+", "WITHVALUES"});
    SimClient& silent = cluster.Connect();
    silent.set_read_bytes_max(0);
    silent.Send({"KRANGE", "-", "+", "WITHVALUES"});
    cluster.RunFor(std::chrono::nanoseconds(cluster.sim().random().Below(1'000'000)));

    SimClient& admin = cluster.Connect();
    if (seed % 2 == 0) {
      cluster.server().Stop();
    } else {
      EXPECT_EQ(cluster.Ask(admin, {"SHUTDOWN", "NOSAVE"}).text, "closed");
    }
    ASSERT_EQ(cluster.RunUntil([&] { return cluster.drained(); }), Simulation::End::kDone);
    EXPECT_EQ(cluster.server().connections(), 0);
    EXPECT_EQ(cluster.server().clients().size(), 0);
    std::vector<int64_t> done;
    for (size_t i = 0; i < counters.size(); ++i) {
      done.push_back(CounterIn(cluster, fmt::format("n{}", i)));
    }
    cluster.DestroyServer();
    EXPECT_EQ(cluster.RunUntil([&] { return reader.closed() && admin.closed(); }),
              Simulation::End::kDone);
    for (size_t i = 0; i < counters.size(); ++i) {
      SimClient& client = *counters[i];
      EXPECT_EQ(cluster.RunUntil([&] { return client.closed(); }), Simulation::End::kDone);
      const int64_t acknowledged = TakeCounts(client);
      EXPECT_EQ(acknowledged, done[i]);
      cut += acknowledged < kIncrements;
    }
    EXPECT_LE(reader.replies(), 1);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_TRUE(cut > 0 || !AreMany(seeds)) << "every run was over before its end";
}

// Goal: replies that are owed at the end are sent to clients that read them soon.
TEST(Shutdown, SendsWhatIsOwed) {
  for (const bool lagging : {false, true}) {
    ClusterOptions options{.config = "workers = 1\n", .lagging = lagging};
    options.world.network.buffer_bytes = 4'000;
    SimCluster cluster(1, options);
    SimClient& client = cluster.Connect();
    client.set_read_bytes_max(0);
    constexpr size_t kCommands = 20;
    for (size_t i = 0; i < kCommands; ++i) client.Send({"GETSET", "k", std::string(10'000, 'v')});
    const auto& commands = cluster.server().worker(0).statistics().commands;
    cluster.RunUntil([&] { return commands.load() == kCommands; });
    cluster.server().Stop();
    cluster.RunFor(std::chrono::milliseconds(100));
    client.set_read_bytes_max(SIZE_MAX);
    EXPECT_EQ(cluster.RunUntil([&] { return client.closed() && cluster.drained(); }),
              Simulation::End::kDone);
    EXPECT_EQ(client.replies(), kCommands);
  }
}

// Goal: commands before SHUTDOWN in a pipeline are answered, commands behind it are not run.
TEST(Shutdown, EndsItsPipeline) {
  SimCluster cluster(1);
  SimClient& client = cluster.Connect();
  client.Send({"SET", "a", "1"});
  client.Send({"SHUTDOWN", "SIDEWAYS"});
  client.Send({"INCR", "a"});
  client.Send({"SHUTDOWN"});
  client.Send({"INCR", "a"});
  ASSERT_EQ(cluster.RunUntil([&] { return client.closed() && cluster.drained(); }),
            Simulation::End::kDone);
  EXPECT_EQ(client.Take()->text, "OK");
  EXPECT_EQ(client.Take()->text, "ERR syntax error");
  EXPECT_EQ(client.Take()->integer, 2);
  EXPECT_FALSE(client.Take());
  EXPECT_EQ(CounterIn(cluster, "a"), 2);
}

}  // namespace
}  // namespace skep::simulation

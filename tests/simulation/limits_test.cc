// Tests clients that ask for too much, send too little or never read, and their effect on others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

constexpr const char* kOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";

uint64_t UsedBytes(SimCluster& cluster) { return cluster.server().keyspaces().budget().used(); }

// Goal: a client that sends and never reads is no longer read once it is owed enough, and delays no
// other client; when it reads at last, it gets everything.
TEST(Limits, ClientThatDoesNotRead) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "workers = 1\n"});
  SimClient& other = cluster.Connect();
  EXPECT_EQ(cluster.Ask(other, {"SET", "k", std::string(1'000, 'v')}).text, "OK");
  const uint64_t used_before = UsedBytes(cluster);
  SimClient& silent = cluster.Connect();
  silent.set_read_bytes_max(0);
  constexpr size_t kCommands = 20'000;
  for (size_t i = 0; i < kCommands; ++i) silent.Send({"GET", "k"});
  for (int i = 0; i < 200; ++i) ASSERT_EQ(cluster.Ask(other, {"PING"}).text, "PONG");
  cluster.RunFor(std::chrono::seconds(1));
  EXPECT_LE(UsedBytes(cluster), used_before + (16 << 20));
  EXPECT_GT(silent.unsent(), 0) << "the server read everything";
  silent.set_read_bytes_max(SIZE_MAX);
  cluster.RunUntil([&] { return silent.replies() == kCommands; });
  EXPECT_EQ(silent.replies(), kCommands);
}

// Goal: this holds also where few bytes ask for much: one read's worth of commands would be 250 MB.
TEST(Limits, ClientThatAsksForMuchMore) {
  const uint64_t seed = *Seeds(1).begin();
  ClusterOptions options{.config = "workers = 1\n"};
  options.world.network.buffer_bytes = 1 << 20;
  SimCluster cluster(seed, options);
  SimClient& other = cluster.Connect();
  EXPECT_EQ(cluster.Ask(other, {"SET", "k", std::string(100'000, 'v')}).text, "OK");
  SimClient& silent = cluster.Connect();
  silent.set_read_bytes_max(0);
  constexpr size_t kCommands = 2'500;
  for (size_t i = 0; i < kCommands; ++i) silent.Send({"GET", "k"});
  uint64_t used = 0;
  cluster.RunUntil([&] { return used = std::max(used, UsedBytes(cluster)), false; },
                   std::chrono::seconds(1));
  EXPECT_LE(used, 16 << 20);
  silent.set_read_bytes_max(SIZE_MAX);
  cluster.RunUntil([&] { return silent.replies() == kCommands; });
  EXPECT_EQ(silent.replies(), kCommands);
  EXPECT_EQ(cluster.Ask(other, {"PING"}).text, "PONG");
}

TEST(Limits, OutputBuffer) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "client-output-buffer-limit = 200000\n"});
  SimClient& other = cluster.Connect();
  EXPECT_EQ(cluster.Ask(other, {"SET", "k", std::string(10'000, 'v')}).text, "OK");
  SimClient& silent = cluster.Connect();
  silent.set_read_bytes_max(0);
  for (int i = 0; i < 100; ++i) silent.Send({"GET", "k"});
  cluster.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(cluster.server().connections(), 1);
  EXPECT_NE(cluster.log().find("client-output-buffer-limit"), std::string::npos) << cluster.log();
  EXPECT_EQ(cluster.Ask(other, {"PING"}).text, "PONG");
}

// Goal: half a command affects its sender alone.
TEST(Limits, HalfSentCommands) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "workers = 1\n"});
  SimClient& other = cluster.Connect();
  const std::vector<std::string> halves = {"*", "*2\r\n$3\r\nGE", "*2\r\n$3\r\nGET\r\n$1", "PIN",
                                           "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nab"};
  const std::vector<std::string> rests = {"1\r\n$4\r\nPING\r\n", "T\r\n$1\r\nk\r\n", "\r\nk\r\n",
                                          "G\r\n", "cde\r\n"};
  std::vector<SimClient*> clients;
  for (const std::string& half : halves) {
    clients.push_back(&cluster.Connect());
    clients.back()->SendBytes(half);
  }
  EXPECT_EQ(cluster.Ask(other, {"SET", "k", "v"}).text, "OK");
  cluster.RunFor(std::chrono::seconds(30));
  std::string answers;
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i]->replies(), 0);
    clients[i]->SendBytes(rests[i]);
    answers += cluster.Await(*clients[i]).text + " ";
  }
  EXPECT_EQ(answers, "PONG v v PONG OK ");
}

// Goal: a client that finishes sending gets all replies, then the end of the stream.
TEST(Limits, HalfClosedConnection) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.lagging = true});
  SimClient& client = cluster.Connect();
  for (int i = 0; i < 50; ++i) client.Send({"INCR", "n"});
  client.Send({"KCOUNT", "-", "+"});
  client.FinishSending();
  cluster.RunUntil([&] { return client.closed(); });
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(client.replies(), 51);
}

TEST(Limits, Maxclients) {
  const uint64_t seed = *Seeds(1).begin();
  ClusterOptions options{.config = "maxclients = 2\nworkers = 2\n"};
  options.world.network.short_writes_ppm = 0;  // a fresh connection has room for a line
  SimCluster cluster(seed, options);
  SimClient& first = cluster.Connect();
  SimClient& second = cluster.Connect();
  EXPECT_EQ(cluster.Ask(first, {"PING"}).text, "PONG");
  EXPECT_EQ(cluster.Ask(second, {"PING"}).text, "PONG");
  SimClient& third = cluster.Connect();
  EXPECT_EQ(cluster.Await(third).text, "ERR max number of clients reached");
  cluster.RunUntil([&] { return third.closed(); });
  EXPECT_TRUE(third.closed());
  EXPECT_EQ(cluster.Ask(second, {"QUIT"}).text, "OK");
  cluster.RunUntil([&] { return cluster.server().connections() == 1; });
  third.Reconnect();
  EXPECT_EQ(cluster.Ask(third, {"PING"}).text, "PONG");
}

TEST(Limits, IdleTimeout) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "timeout = 5\n"});
  SimClient& idle = cluster.Connect();
  SimClient& busy = cluster.Connect();
  for (int second = 0; second < 4; ++second) {
    cluster.RunFor(std::chrono::seconds(1));
    EXPECT_EQ(cluster.Ask(busy, {"PING"}).text, "PONG");
  }
  EXPECT_FALSE(idle.closed());
  for (int second = 0; second < 4; ++second) {
    cluster.RunFor(std::chrono::seconds(1));
    EXPECT_EQ(cluster.Ask(busy, {"PING"}).text, "PONG");
  }
  EXPECT_TRUE(idle.closed());
}

// Goal: a client is idle if it moves no bytes: a long upload and a long reply are not cut in the
// middle.
// Method: the client writes and reads a little every now and then, through small buffers, so that
// each of the two takes more than twice the timeout; then it does nothing.
TEST(Limits, IdleTimeoutCountsBytes) {
  const uint64_t seed = *Seeds(1).begin();
  ClusterOptions options{.config = "timeout = 1\nworkers = 1\n"};
  options.world.network.buffer_bytes = 4'000;
  SimCluster cluster(seed, options);
  const auto client = cluster.NewClient(2);
  const std::string value(500'000, 'v');
  const auto converse = [&](std::initializer_list<std::string_view> args) {
    const uint64_t start_ms = cluster.sim().clock().MonotonicMs();
    client->Send(args);
    while (client->replies() == 0 && !client->closed()) {
      client->Move();
      cluster.RunFor(std::chrono::milliseconds(50));
    }
    EXPECT_GT(cluster.sim().clock().MonotonicMs(), start_ms + 2'000) << "the client was not slow";
    return client->Take().value_or(RespReply()).text;
  };
  EXPECT_EQ(converse({"SET", "k", value}), "OK");
  EXPECT_TRUE(converse({"GET", "k"}) == value);
  cluster.RunFor(std::chrono::milliseconds(900));
  EXPECT_EQ(cluster.server().connections(), 1);
  cluster.RunFor(std::chrono::milliseconds(400));
  EXPECT_EQ(cluster.server().connections(), 0);
}

// Goal: at the limit writes are refused and change nothing; reads and deletes go on, and make room.
TEST(Limits, Maxmemory) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "maxmemory = \"16mb\"\nworkers = 1\n"});
  SimClient& client = cluster.Connect();
  const std::string value(50'000, 'v');
  int stored = 0;
  while (stored < 1'000 &&
         cluster.Ask(client, {"SET", fmt::format("k{}", stored), value}).text == "OK") {
    ++stored;
  }
  ASSERT_GT(stored, 10);
  ASSERT_LT(stored, 1'000);
  EXPECT_LE(UsedBytes(cluster), 17 << 20);
  const std::string large(2'000'000, 'v');  // more than the buffers of the refused SET gave back
  EXPECT_EQ(cluster.Ask(client, {"SET", "k0", large}).text, kOutOfMemory);
  EXPECT_EQ(cluster.Ask(client, {"APPEND", "k0", large}).text, kOutOfMemory);
  EXPECT_EQ(cluster.Ask(client, {"MSET", "a", "1", "b", large}).text, kOutOfMemory);
  EXPECT_TRUE(cluster.Ask(client, {"GET", "a"}).is_null());
  EXPECT_EQ(cluster.Ask(client, {"STRLEN", "k0"}).integer, 50'000);
  EXPECT_EQ(cluster.Ask(client, {"KCOUNT", "-", "+"}).integer, stored);
  EXPECT_EQ(cluster.Ask(client, {"DEL", "k0", "k1"}).integer, 2);
  EXPECT_EQ(cluster.Ask(client, {"KDELRANGE", "PREFIX", "k", "LIMIT", "2"}).integer, 2);
  cluster.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(cluster.Ask(client, {"SET", "k0", value}).text, "OK");
  EXPECT_EQ(cluster.Ask(client, {"FLUSHALL"}).text, "OK");
  cluster.RunFor(std::chrono::seconds(1));
  EXPECT_LE(UsedBytes(cluster), 4 << 20);
}

// Goal: an option changed by CONFIG SET holds for the next command of the same pipeline, and not
// for the one before.
TEST(Limits, ConfigSetInAPipeline) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed);
  SimClient& client = cluster.Connect();
  client.Send({"SET", "a", "1"});
  client.Send({"CONFIG", "SET", "maxmemory", "1"});
  client.Send({"SET", "b", "1"});
  client.Send({"CONFIG", "SET", "maxmemory", "0"});
  client.Send({"SET", "c", "1"});
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i) texts.push_back(cluster.Await(client).text);
  EXPECT_EQ(texts, (std::vector<std::string>{"OK", "OK", kOutOfMemory, "OK", "OK"}));
}

TEST(Limits, NoDescriptorsLeft) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed);
  cluster.sim().network().FailAccepts(EMFILE, 3);
  SimClient& client = cluster.Connect();
  EXPECT_EQ(cluster.Ask(client, {"PING"}).text, "PONG");
  EXPECT_NE(cluster.log().find("cannot accept"), std::string::npos) << cluster.log();
}

TEST(Limits, Password) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "requirepass = \"sesame\"\n"});
  SimClient& client = cluster.Connect();
  EXPECT_EQ(cluster.Ask(client, {"GET", "a"}).text, "NOAUTH Authentication required.");
  EXPECT_TRUE(cluster.Ask(client, {"AUTH", "open"}).text.starts_with("WRONGPASS"));
  client.Send({"AUTH", "sesame"});
  client.Send({"SET", "a", "1"});
  EXPECT_EQ(cluster.Await(client).text, "OK");
  EXPECT_EQ(cluster.Await(client).text, "OK");
  EXPECT_EQ(cluster.Ask(client, {"RESET"}).text, "RESET");
  EXPECT_EQ(cluster.Ask(client, {"GET", "a"}).text, "NOAUTH Authentication required.");
}

// Goal: bytes that are no RESP are answered with an error, after earlier replies, and close the
// connection.
TEST(Limits, Garbage) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed);
  SimClient& client = cluster.Connect();
  client.Send({"SET", "a", "1"});
  client.SendBytes("*1\r\n!4\r\nPING\r\n");
  client.Send({"SET", "a", "2"});
  EXPECT_EQ(cluster.Await(client).text, "OK");
  EXPECT_EQ(cluster.Await(client).text, "ERR Protocol error: expected '$', got '!'");
  EXPECT_EQ(cluster.Await(client).text, "closed");
  SimClient& other = cluster.Connect();
  EXPECT_EQ(cluster.Ask(other, {"GET", "a"}).text, "1");
}

}  // namespace
}  // namespace skep::simulation

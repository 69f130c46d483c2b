// Tests replies larger than any buffer: they are of one version, in bounded memory, and delay no
// other client.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/seeds.h"
#include "tests/simulation/numbered_keys.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

constexpr uint64_t kKeys = 20'000;
constexpr size_t kValueBytes = 100;  // together more than kUnsentMax
// The most that a connection may hold of a reply: kUnsentMax, and a chunk.
constexpr uint64_t kOwedMax = kUnsentMax + (1 << 20);

ClusterOptions Small(bool lagging) {
  ClusterOptions options{.lagging = lagging};
  options.config = "workers = 1\n";
  options.world.network.buffer_bytes = 4'000;
  options.world.network.delay_ns_min = 100;
  options.world.network.delay_ns_max = 1'000;
  return options;
}

// Returns the largest value of a field of CLIENT LIST: " omem=", the bytes that a connection is
// owed; " qbuf=", its buffered input.
uint64_t MostOf(SimCluster& cluster, std::string_view field) {
  const std::string list = cluster.server().clients().DescribeAll(0);
  uint64_t most = 0;
  for (size_t at = list.find(field); at != std::string::npos; at = list.find(field, at + 1)) {
    most = std::max<uint64_t>(most, std::strtoull(list.c_str() + at + field.size(), nullptr, 10));
  }
  return most;
}

// Asks for one key after the other and keeps the longest wait, in turns of the worker.
class Impatient {
 public:
  explicit Impatient(SimCluster& cluster) : cluster_(cluster), client_(cluster.NewClient(3)) {
    cluster.sim().AddActor("impatient", [this] { return Step(); });
  }
  uint64_t longest_wait() const { return longest_wait_; }
  uint64_t answers() const { return answers_; }

 private:
  bool Step() {
    if (client_->Take()) {
      longest_wait_ = std::max(longest_wait_, cluster_.turns() - asked_at_);
      ++answers_;
      waits_ = false;
    }
    if (!waits_) client_->Send({"GET", "k00000007"});
    if (!waits_) asked_at_ = cluster_.turns();
    waits_ = true;
    return client_->Move();
  }

  SimCluster& cluster_;
  std::unique_ptr<SimClient> client_;
  bool waits_ = false;
  uint64_t asked_at_ = 0;
  uint64_t longest_wait_ = 0;
  uint64_t answers_ = 0;
};

// Runs until the reply is there; checks that the server never holds much of it.
RespReply AwaitBounded(SimCluster& cluster, SimClient& client) {
  uint64_t most_owed = 0, turns = 0;
  cluster.RunUntil([&] {
    if (cluster.turns() != turns) most_owed = std::max(most_owed, MostOf(cluster, " omem="));
    turns = cluster.turns();
    return client.replies() > 0 || client.closed();
  });
  EXPECT_LE(most_owed, kOwedMax);
  EXPECT_GT(most_owed, kUnsentMax / 2) << "the client was not slow";
  return cluster.Await(client);
}

// Goal: a range of any size is read at one version while other clients write, without making them
// wait and without the server's holding it.
// Method: the client reads a few bytes at a time through small buffers; the values tell the state
// (numbered_keys.h); the wait is counted in turns of the only worker, the memory is that of CLIENT
// LIST at every turn.
TEST(BigReplies, AreOfOneVersionAndInNobodysWay) {
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    SimCluster cluster(seed, Small(seed % 2 == 0));
    NumberedKeys keys(cluster, kKeys, kValueBytes);
    Impatient impatient(cluster);
    SimClient& slow = cluster.Connect(2 + static_cast<int>(seed / 2 % 2));
    keys.StartWriting();
    slow.set_read_bytes_max(1'000);
    slow.Send({"KRANGE", "-", "+", "WITHVALUES"});
    const uint64_t writes_before = keys.writes();
    const RespReply reply = AwaitBounded(cluster, slow);

    const auto items = ItemsOf(reply);
    EXPECT_EQ(items.size(), kKeys);
    EXPECT_TRUE(keys.StateOf(items) == items) << "not the state after any write";
    EXPECT_GT(keys.writes(), writes_before + 20) << "nobody wrote meanwhile";
    EXPECT_GT(impatient.answers(), 20);
    EXPECT_LE(impatient.longest_wait(), 256);
    EXPECT_EQ(cluster.Ask(slow, {"PING"}).text, "PONG");
  }
}

// Goal: KEYS with a pattern, and counts, are of one version, too.
TEST(BigReplies, KeysAndCounts) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, Small(false));
  NumberedKeys keys(cluster, kKeys, 1);
  keys.StartWriting();
  SimClient& slow = cluster.Connect();
  SimClient& counter = cluster.Connect(3);
  slow.set_read_bytes_max(1'000);
  slow.Send({"KEYS", "k*[02468]"});
  EXPECT_EQ(cluster.Ask(counter, {"KCOUNT", "-", "+"}).integer, kKeys);
  EXPECT_EQ(cluster
                .Ask(counter, {"KCOUNT", fmt::format("[{}", keys.Key(10)),
                               fmt::format("({}", keys.Key(15'010))})
                .integer,
            15'000);
  const RespReply reply = cluster.Await(slow);
  ASSERT_EQ(reply.elements.size(), kKeys / 2);
  for (uint64_t i = 0; i < kKeys / 2; ++i) ASSERT_EQ(reply.elements[i].text, keys.Key(2 * i));
}

// Goal: LIMIT and REV work for ranges that take many turns.
TEST(BigReplies, LimitsAndReverse) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, Small(false));
  NumberedKeys keys(cluster, 5'000, 10);
  SimClient& client = cluster.Connect();
  const RespReply part = cluster.Ask(client, {"KRANGE", "-", "+", "LIMIT", "1000", "3000"});
  ASSERT_EQ(part.elements.size(), 3'000);
  for (uint64_t i = 0; i < 3'000; ++i) ASSERT_EQ(part.elements[i].text, keys.Key(1'000 + i));
  const RespReply back = cluster.Ask(client, {"KRANGE", "-", "+", "REV", "LIMIT", "4000", "-1"});
  ASSERT_EQ(back.elements.size(), 1'000);
  for (uint64_t i = 0; i < 1'000; ++i) ASSERT_EQ(back.elements[i].text, keys.Key(999 - i));
  EXPECT_EQ(cluster.Ask(client, {"KRANGE", "-", "+", "LIMIT", "4000", "0"}).elements.size(), 0);
  EXPECT_EQ(cluster.Ask(client, {"KRANGE", "-", "+", "LIMIT", "6000", "5"}).elements.size(), 0);
}

// Goal: a client so slow that its snapshot grows too old is disconnected in the middle, and the pin
// is released.
TEST(BigReplies, EndAtTheAgeLimit) {
  const uint64_t seed = *Seeds(1).begin();
  ClusterOptions options = Small(false);
  options.config += "snapshot-age-ms = 1000\n";
  SimCluster cluster(seed, options);
  NumberedKeys keys(cluster, kKeys, kValueBytes);
  SimClient& slow = cluster.Connect();
  slow.Send({"KRANGE", "-", "+", "WITHVALUES"});
  cluster.RunUntil([&] { return slow.received().size() > 100'000; });
  slow.set_read_bytes_max(0);
  cluster.RunFor(std::chrono::seconds(3));
  EXPECT_EQ(cluster.server().keyspaces().at(0).Statistics().snapshots, 0);
  slow.set_read_bytes_max(SIZE_MAX);
  EXPECT_EQ(cluster.Await(slow).text, "closed");
  EXPECT_GT(slow.received().size(), 100'000);
  SimClient& other = cluster.Connect();
  EXPECT_EQ(cluster.Ask(other, {"KCOUNT", "-", "+"}).integer, kKeys);
}

// Goal: a client that sends everything at once and finishes sending gets every reply, and all its
// commands are done, though the end arrives long before a task is done.
TEST(BigReplies, ServeAHalfClosedConnectionBehindATask) {
  for (const uint64_t seed : Seeds(4)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    SimCluster cluster(seed, {.config = "workers = 1\n", .lagging = seed % 2 == 0});
    NumberedKeys keys(cluster, kKeys, 1);
    SimClient& client = cluster.Connect();
    client.Send({"KCOUNT", "-", "+"});
    client.Send({"SET", "other", "1"});
    client.Send({"ECHO", "end"});
    client.FinishSending();
    EXPECT_EQ(cluster.Await(client).integer, kKeys);
    EXPECT_EQ(cluster.Await(client).text, "OK");
    EXPECT_EQ(cluster.Await(client).text, "end");
    EXPECT_EQ(cluster.Await(client).text, "closed");
    EXPECT_EQ(cluster.Ask(cluster.Connect(), {"GET", "other"}).text, "1");
  }
}

// Goal: such a client gets every reply also where the replies are more than the server may hold.
TEST(BigReplies, ServeAHalfClosedConnectionThatReadsSlowly) {
  constexpr int kGets = 20;
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "workers = 1\n"});
  SimClient& other = cluster.Connect();
  const std::string value(1 << 20, 'v');
  ASSERT_EQ(cluster.Ask(other, {"SET", "big", value}).text, "OK");
  SimClient& slow = cluster.Connect();
  slow.set_read_bytes_max(4'000);
  for (int i = 0; i < kGets; ++i) slow.Send({"GET", "big"});
  slow.Send({"SET", "other", "1"});
  slow.FinishSending();
  for (int i = 0; i < kGets; ++i) ASSERT_TRUE(cluster.Await(slow).text == value) << i;
  EXPECT_EQ(cluster.Await(slow).text, "OK");
  EXPECT_EQ(cluster.Await(slow).text, "closed");
  EXPECT_EQ(cluster.Ask(other, {"GET", "other"}).text, "1");
}

// Goal: a client that reads all its replies may send any number of commands at once: input that has
// to wait for room in the replies stays in the kernel and is not taken for one long query.
// Method: replies that are each more than a connection may be owed, so that every command waits;
// behind them more input than the query limit.
TEST(BigReplies, OfAnEagerReaderDoNotFillTheQueryBuffer) {
  constexpr size_t kGets = 100;
  constexpr size_t kSets = 40;
  const uint64_t seed = *Seeds(1).begin();
  ClusterOptions options{.config = "workers = 1\nclient-query-buffer-limit = \"1mb\"\n"};
  options.world.network.buffer_bytes = 2 << 20;
  SimCluster cluster(seed, options);
  SimClient& client = cluster.Connect();
  const std::string half(600'000, 'v');
  ASSERT_EQ(cluster.Ask(client, {"SET", "big", half}).text, "OK");
  ASSERT_EQ(cluster.Ask(client, {"APPEND", "big", half}).integer, 1'200'000);
  for (size_t i = 0; i < kGets; ++i) client.Send({"GET", "big"});
  for (size_t i = 0; i < kSets; ++i) client.Send({"SET", "other", half.substr(0, 60'000)});
  uint64_t most_kept = 0, turns = 0;
  size_t gets = 0, sets = 0;
  cluster.RunUntil([&] {
    if (cluster.turns() != turns) most_kept = std::max(most_kept, MostOf(cluster, " qbuf="));
    turns = cluster.turns();
    while (const auto reply = client.Take()) {
      gets += reply->text.size() == 2 * half.size() ? 1 : 0;
      sets += reply->text == "OK" ? 1 : 0;
    }
    return gets + sets == kGets + kSets || client.closed();
  });
  EXPECT_EQ(gets, kGets);
  EXPECT_EQ(sets, kSets);
  EXPECT_FALSE(client.closed());
  EXPECT_LE(most_kept, 256 * 1024);
}

// Goal: a client that disconnects in the middle leaves nothing behind.
TEST(BigReplies, ClientsThatLeaveInTheMiddle) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, Small(false));
  NumberedKeys keys(cluster, kKeys, kValueBytes);
  SimClient& other = cluster.Connect();
  const uint64_t used_before = cluster.server().keyspaces().budget().used();
  for (int i = 0; i < 5; ++i) {
    auto client = cluster.NewClient(2);
    const auto actor = cluster.sim().AddActor("leaver", [&] { return client->Move(); });
    client->Send({"KRANGE", "-", "+", "WITHVALUES"});
    cluster.RunUntil([&] { return client->received().size() > 10'000; });
    cluster.sim().RemoveActor(actor);
    client.reset();
    EXPECT_EQ(cluster.Ask(other, {"PING"}).text, "PONG");
  }
  cluster.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(cluster.server().keyspaces().at(0).Statistics().snapshots, 0);
  EXPECT_EQ(cluster.server().connections(), 2);  // `other`, and the writer that never wrote
  EXPECT_LE(cluster.server().keyspaces().budget().used(), used_before + 100'000);
}

}  // namespace
}  // namespace skep::simulation

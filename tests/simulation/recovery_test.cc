// Tests that answered operations are found after the server was killed, or the machine lost power,
// as far as that was promised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

struct Seen {
  uint64_t answered = 0;  // number of transactions
  uint64_t lost = 0;      // counts that were older than an answered one, and may be
  uint64_t broken = 0;    // number of connections
  uint64_t finished = 0;  // connections that were half-closed and had all answers
};

// Counts up, on one connection after the other: each transaction stores the next number under two
// keys of the counter's own, and adds one to a third. The counter knows what was answered and what
// was sent, and so what must be found.
class Counter {
 public:
  static constexpr uint64_t kForEver = UINT64_MAX;

  Counter(std::string name, SimCluster& cluster, Seen& seen)
      : name_(std::move(name)), cluster_(cluster), seen_(seen) {}

  // Half-closes the connection when it has sent so many transactions.
  void Connect(bool wants_sync, uint64_t transactions) {
    client_ = cluster_.NewClient(2);
    awaited_.clear();
    left_ = transactions;
    if (wants_sync) {
      client_->Send({"CLIENT", "DURABILITY", "ALWAYS"});
      awaited_.push_back(0);
    }
  }

  bool Step() {
    bool moved = false;
    if (left_ > 0 && awaited_.size() < 8 && cluster_.sim().random().Chance(1, 4)) {
      Send();
      moved = true;
    }
    moved |= client_->Move();
    while (const auto reply = client_->Take()) {
      EXPECT_NE(reply->type, RespReply::Type::kError) << reply->text;
      if (awaited_.front() > 0) ++seen_.answered;
      answered_ = std::max(answered_, awaited_.front());
      awaited_.pop_front();
      moved = true;
    }
    return moved;
  }

  // Returns whether the connection has ended. If it did not break, this side must have ended it,
  // and must have read all answers before the other side's end.
  bool ended() const {
    if (!client_->closed()) return false;
    EXPECT_TRUE(broke() || (left_ == 0 && awaited_.empty()))
        << name_ << ": " << awaited_.size() << " answers are missing";
    return true;
  }
  bool broke() const { return client_->broke(); }

  // Checks the contents of the store. Transactions that were lost without being promised are given
  // up.
  void Check(SimClient& reader, bool may_lose) {
    const RespReply found = cluster_.Ask(reader, {"MGET", name_ + "a", name_ + "b", name_ + "n"});
    ASSERT_EQ(found.elements.size(), 3u);
    const auto number = [&](size_t i) {
      return found.elements[i].text.empty() ? 0 : std::stoull(found.elements[i].text);
    };
    EXPECT_EQ(number(0), number(1)) << name_ << ": half a transaction";
    EXPECT_EQ(number(0), number(2)) << name_ << ": half a transaction";
    EXPECT_LE(number(0), sent_) << name_;
    EXPECT_TRUE(may_lose || number(0) >= answered_) << name_ << ": lost what was answered";
    if (number(0) < answered_) ++seen_.lost;
    sent_ = answered_ = number(0);
  }

  void Disconnect() { client_.reset(); }

 private:
  void Send() {
    const std::string number = std::to_string(++sent_);
    client_->Send({"MULTI"});
    client_->Send({"SET", name_ + "a", number});
    client_->Send({"INCR", name_ + "n"});
    client_->Send({"SET", name_ + "b", number});
    client_->Send({"EXEC"});
    for (int i = 0; i < 4; ++i) awaited_.push_back(0);
    awaited_.push_back(sent_);
    if (left_ != kForEver && --left_ == 0) client_->FinishSending();
  }

  const std::string name_;
  SimCluster& cluster_;
  Seen& seen_;
  std::unique_ptr<SimClient> client_;
  std::deque<uint64_t> awaited_;  // of each reply: the number that it answers
  uint64_t left_ = 0;             // transactions still to send on this connection
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
};

// Counts on one connection at a time. When it has ended, the server may still do what was sent on
// it: so the next one counts under another name, until the server is restarted.
class Client {
 public:
  Client(std::string name, SimCluster& cluster, Seen& seen)
      : name_(std::move(name)), cluster_(cluster), seen_(seen) {
    AddCounter();
  }

  void Connect(bool wants_sync) {
    wants_sync_ = wants_sync;
    const bool ends = cluster_.sim().random().Chance(1, 2);
    current().Connect(wants_sync, ends ? 1 + cluster_.sim().random().Below(20) : Counter::kForEver);
    is_connected_ = true;
  }

  bool Step() {
    if (!is_connected_) return false;
    const bool moved = current().Step();
    if (!current().ended()) return moved;
    ++(current().broke() ? seen_.broken : seen_.finished);
    current().Disconnect();
    AddCounter();
    Connect(wants_sync_);
    return true;
  }

  void Disconnect() {
    is_connected_ = false;
    current().Disconnect();
  }

  void Check(SimClient& reader, bool may_lose) {
    for (const auto& counter : counters_) counter->Check(reader, may_lose);
  }

 private:
  Counter& current() { return *counters_.back(); }
  void AddCounter() {
    const std::string name = name_ + std::to_string(counters_.size());
    counters_.push_back(std::make_unique<Counter>(name, cluster_, seen_));
  }

  const std::string name_;
  SimCluster& cluster_;
  Seen& seen_;
  bool wants_sync_ = false;
  bool is_connected_ = false;
  std::vector<std::unique_ptr<Counter>> counters_;
};

SimNetworkOptions BreakingNetwork(uint64_t seed) {
  SimNetworkOptions network = RandomNetwork(seed);
  if (seed % 2 == 0) return network;
  network.resets_ppm = 1'000;
  network.partitions_ppm = 10'000;
  network.partition_ns_max = 5'000'000;
  network.partition_resets_ppm = 300'000;
  return network;
}

// Runs six lives of the server, with three clients that count.
void RunLives(uint64_t seed, Seen& seen) {
  SeededRandom random(seed);
  ClusterOptions options{.config = "workers = 2\n", .durable = true};
  options.world.network = BreakingNetwork(seed);
  SimCluster cluster(seed, options);
  const bool is_always = cluster.server().options().appendfsync == "always";
  const bool wants_sync = random.Chance(1, 2);
  // A worker waits for quick syncs, and not for slow ones.
  const uint64_t sync_ns = random.Below(1'000'000);
  cluster.sim().disk().set_options(
      {.during_sync = [&cluster, sync_ns] { cluster.sim().clock().Advance(sync_ns); }});
  std::vector<std::unique_ptr<Client>> clients;
  for (const char* name : {"a", "b", "c"}) {
    clients.push_back(std::make_unique<Client>(name, cluster, seen));
    Client* const client = clients.back().get();
    cluster.sim().AddActor("client", [client] { return client->Step(); });
  }
  for (int life = 0; life < 6 && !testing::Test::HasFailure(); ++life) {
    cluster.sim().network().set_options(options.world.network);
    for (auto& client : clients) client->Connect(wants_sync);
    cluster.RunFor(std::chrono::microseconds(100 + random.Below(20'000)));
    if (random.Chance(1, 2)) {
      cluster.Ask(cluster.Connect(), {random.Chance(1, 2) ? "SAVE" : "BGSAVE"});
      cluster.RunFor(std::chrono::microseconds(random.Below(3000)));
    }
    const bool loses_power = random.Chance(1, 2);
    for (auto& client : clients) client->Disconnect();
    cluster.Restart(loses_power);
    cluster.sim().network().set_options({});
    SimClient& reader = cluster.Connect();
    const bool may_lose = loses_power && !is_always && !wants_sync;
    for (auto& client : clients) client->Check(reader, may_lose);
  }
}

// Goal: after a kill every answered transaction exists, whole; after a loss of power too, with
// `always` and on connections that asked for it; an unanswered transaction exists whole or not at
// all. A client that only shuts its sending side down gets all its answers, also those that wait
// for the disk.
// Method: clients count up through transactions over a random network, which on every other seed
// parts and resets connections; half of the connections are half-closed after some transactions;
// now and then a snapshot is written; the server is killed, or loses power, in the middle; then all
// counts are read, and it goes on.
TEST(Recovery, HasWhatWasAnswered) {
  Seen seen;
  const SeedRange seeds = Seeds(40);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    RunLives(seed, seen);
    ASSERT_FALSE(HasFailure());
  }
  fmt::print(
      "{} answers; {} times some were lost that might be; {} connections broke, {} were "
      "half-closed and had all answers\n",
      seen.answered, seen.lost, seen.broken, seen.finished);
  if (!AreMany(seeds)) return;
  EXPECT_GT(seen.answered, 0u);
  EXPECT_GT(seen.broken, 0u);
  EXPECT_GT(seen.finished, 0u);
}

}  // namespace
}  // namespace skep::simulation

// What was answered is there after the server was killed, or the machine lost power, as far as it
// was promised.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

// Counts up: each of its transactions stores the next number under two keys of its own, and adds
// one to a counter. It knows what was answered and what was sent, and so what must be found.
class Counter {
 public:
  Counter(uint32_t id, SimCluster& cluster) : name_("c" + std::to_string(id)), cluster_(cluster) {}

  void Connect(bool wants_sync) {
    client_ = cluster_.NewClient(2);
    awaited_.clear();
    if (wants_sync) {
      client_->Send({"CLIENT", "DURABILITY", "ALWAYS"});
      awaited_.push_back(0);
    }
  }

  bool Step() {
    if (client_ == nullptr) return false;
    bool moved = false;
    if (awaited_.size() < 8 && cluster_.sim().random().Chance(1, 4)) {
      Send();
      moved = true;
    }
    moved |= client_->Move();
    while (const auto reply = client_->Take()) {
      EXPECT_NE(reply->type, RespReply::Type::kError) << reply->text;
      answered_ = std::max(answered_, awaited_.front());
      awaited_.pop_front();
      moved = true;
    }
    return moved;
  }

  // Of what is now in the store. What was lost without being promised is given up.
  void Check(SimCluster& cluster, bool may_lose) {
    SimClient& reader = cluster.Connect();
    const RespReply found = cluster.Ask(reader, {"MGET", name_ + "a", name_ + "b", name_ + "n"});
    ASSERT_EQ(found.elements.size(), 3u);
    const auto number = [&](size_t i) {
      return found.elements[i].text.empty() ? 0 : std::stoull(found.elements[i].text);
    };
    EXPECT_EQ(number(0), number(1)) << name_ << ": half a transaction";
    EXPECT_EQ(number(0), number(2)) << name_ << ": half a transaction";
    EXPECT_LE(number(0), sent_) << name_;
    EXPECT_TRUE(may_lose || number(0) >= answered_) << name_ << ": lost what was answered";
    lost_ += number(0) < answered_ ? 1 : 0;
    sent_ = answered_ = number(0);
  }

  void Disconnect() { client_.reset(); }
  uint64_t answered() const { return answered_; }
  uint64_t lost() const { return lost_; }

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
  }

  const std::string name_;
  SimCluster& cluster_;
  std::unique_ptr<SimClient> client_;
  std::deque<uint64_t> awaited_;  // for each reply: what it answers
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
  uint64_t lost_ = 0;
};

// Goal: after a kill every answered transaction is there, whole; after a loss of power, too, with
// `always` and on connections that asked for it; what was not answered is there whole or not at all.
// Method: clients count up through transactions over a random network; now and then a snapshot; the
// server is killed, or the power goes, in the middle; then all counts are read, and it goes on.
TEST(Recovery, HasWhatWasAnswered) {
  uint64_t answered = 0;
  uint64_t lost = 0;
  const SeedRange seeds = Seeds(40);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    SeededRandom random(seed);
    ClusterOptions options{.config = "workers = 2\n", .durable = true};
    options.world.network = RandomNetwork(seed);
    SimCluster cluster(seed, options);
    const bool is_always = cluster.server().options().appendfsync == "always";
    const bool wants_sync = random.Chance(1, 2);
    std::vector<std::unique_ptr<Counter>> counters;
    for (uint32_t i = 0; i < 3; ++i) {
      counters.push_back(std::make_unique<Counter>(i, cluster));
      Counter* const counter = counters.back().get();
      cluster.sim().AddActor("counter", [counter] { return counter->Step(); });
    }
    for (int life = 0; life < 6 && !HasFailure(); ++life) {
      for (auto& counter : counters) counter->Connect(wants_sync);
      cluster.RunFor(std::chrono::microseconds(100 + random.Below(20'000)));
      if (random.Chance(1, 2)) {
        cluster.Ask(cluster.Connect(), {random.Chance(1, 2) ? "SAVE" : "BGSAVE"});
        cluster.RunFor(std::chrono::microseconds(random.Below(3000)));
      }
      for (auto& counter : counters) answered += counter->answered();
      const bool loses_power = random.Chance(1, 2);
      for (auto& counter : counters) counter->Disconnect();
      cluster.Restart(loses_power);
      const bool may_lose = loses_power && !is_always && !wants_sync;
      for (auto& counter : counters) counter->Check(cluster, may_lose);
    }
    for (auto& counter : counters) lost += counter->lost();
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%llu answers; %llu times some were lost that might be\n",
              static_cast<unsigned long long>(answered), static_cast<unsigned long long>(lost));
  EXPECT_TRUE(answered > 0 || !AreMany(seeds));
}

}  // namespace
}  // namespace skep::simulation

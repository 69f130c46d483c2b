#include "netindex/controller/controller.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "netindex/switch/switch_frame.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

class FakeSource final : public LeafSource {
 public:
  Result<std::vector<ServerRange>> Ranges() override { return ranges; }
  Result<ServerLeaves> LeavesOf(const ServerRange& range, std::string_view) override {
    ++asked;
    const auto found = leaves.find(range.address);
    if (found == leaves.end()) return Fail(Code::kUnavailable, "it is gone");
    return found->second;
  }

  std::vector<ServerRange> ranges;
  std::map<std::string, ServerLeaves> leaves;
  int asked = 0;
};

// A switch in this process, and what it was given.
struct FakeSwitch {
  explicit FakeSwitch(uint16_t duties) : at(duties) {}
  TestSwitch at;
  uint32_t version = 0;
  int given = 0;
  bool is_gone = false;
};

class FakePort final : public SwitchPort {
 public:
  explicit FakePort(FakeSwitch& at) : at_(at) {}
  Result<SwitchReply> Ask(uint32_t version, const SwitchBank* bank) override {
    if (at_.is_gone) return Fail(Code::kUnavailable, "it is gone");
    if (bank != nullptr) {
      *at_.at.bank = *bank;
      at_.version = version;
      ++at_.given;
    }
    return SwitchReply{.version = at_.version, .counters = at_.at.counters};
  }

 private:
  FakeSwitch& at_;
};

// Two servers, and a core, an aggregation and two edge switches.
class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    std::mt19937_64 rng(7);
    const auto leaves = RandomLeaves(rng, 2, 5000);
    source_.ranges = {{.lower = "", .address = "10.77.10.1:6379"},
                      {.lower = KeyBytes(leaves[1].first), .address = "10.77.10.2:6379"}};
    for (size_t i = 0; i < 2; ++i) source_.leaves[source_.ranges[i].address] = leaves[i];
    Add("core:1", core_);
    Add("aggregation:2", aggregation_);
    Add("edge:3=10.77.10.1:6379", edge_0_);
    Add("edge:4=10.77.10.2:6379", edge_1_);
    controller_.emplace(source_, std::move(switches_),
                        [this](std::string_view line) { reports_.emplace_back(line); });
  }
  void Add(const char* role, FakeSwitch& at) {
    switches_.push_back({.role = *ParseRole(role), .port = std::make_unique<FakePort>(at)});
  }
  // The frame of a GET of the key behind all switches.
  std::string Sent(uint64_t key) {
    std::string frame = GetFrame(KeyBytes(key));
    for (FakeSwitch* one : {&core_, &aggregation_}) Pass(*one, &frame);
    const bool is_first = Get<uint32_t>(frame, SWITCH_IP_TO) == ServerAt(0).address;
    Pass(is_first ? edge_0_ : edge_1_, &frame);
    return frame;
  }
  static void Pass(FakeSwitch& at, std::string* frame) {
    SwitchFrame(*at.at.config, *at.at.bank, &at.at.counters, frame);
  }
  // Every query gets the hint of its leaf, as all leaves fit.
  void ExpectRight() {
    std::vector<ServerLeaves> leaves;
    for (const ServerRange& range : source_.ranges) leaves.push_back(source_.leaves[range.address]);
    const IndexTree tree = MakeIndexTree(leaves, SWITCH_BRANCHES);
    for (const ServerLeaves& of_server : leaves) {
      for (const IndexLeaf& leaf : of_server.leaves) {
        ASSERT_EQ(HintOf(Sent(leaf.first)), tree.nodes[LeafOf(tree, leaf.first)].address);
      }
    }
  }
  void CountAnswers(uint64_t answers, uint64_t stale) {
    edge_0_.at.counters.answers += answers;
    edge_0_.at.counters.stale += stale;
  }

  FakeSource source_;
  FakeSwitch core_{SWITCH_FIRST}, aggregation_{0}, edge_0_{SWITCH_LAST}, edge_1_{SWITCH_LAST};
  std::vector<Controller::Switch> switches_;
  std::optional<Controller> controller_;
  std::vector<std::string> reports_;
};

// Goal: one round gives each switch its part, and queries find their leaves through all of them.
TEST_F(ControllerTest, GivesEachSwitchItsPart) {
  EXPECT_TRUE(controller_->Step());
  ExpectRight();
  EXPECT_GT(core_.at.bank->ranges, 100u);
  EXPECT_EQ(core_.at.bank->nodes[0], 0u);
  EXPECT_EQ(edge_0_.at.bank->ranges, 0u);
  EXPECT_GT(aggregation_.at.bank->nodes[0], 0u);
}

// Goal: an edge switch holds nodes of its own servers only.
TEST_F(ControllerTest, EdgesHoldNodesOfTheirServers) {
  for (auto& [address, leaves] : source_.leaves) {
    for (IndexLeaf& leaf : leaves.leaves) leaf.hits = 0;
  }
  const std::vector<ServerLeaves> leaves = {source_.leaves["10.77.10.1:6379"],
                                            source_.leaves["10.77.10.2:6379"]};
  Tables tables = MakeTables(source_.ranges, leaves, 2, 1);
  const auto all = std::make_unique<SwitchBank>(), some = std::make_unique<SwitchBank>();
  ASSERT_TRUE(WriteBank(tables, *ParseRole("aggregation:x"), all.get()).ok());
  ASSERT_TRUE(WriteBank(tables, *ParseRole("aggregation:x=10.77.10.2:6379"), some.get()).ok());
  EXPECT_GT(some->nodes[0], 0u);
  EXPECT_LT(some->nodes[0], all->nodes[0]);
  for (const uint32_t node : tables.layers[0]) {
    const auto* const found = SwitchFind(some.get(), 0, tables.tree.nodes[node].address);
    EXPECT_EQ(found != nullptr, tables.tree.nodes[node].server == 1);
  }
}

// Goal: nothing is read or given again while hints are right, and everything is once too many are
// stale.
TEST_F(ControllerTest, RenewsWhenHintsAreStale) {
  EXPECT_TRUE(controller_->Step());
  const int asked = source_.asked;
  CountAnswers(DriftWatch::kWindowMin, DriftWatch::kWindowMin / 20);
  EXPECT_TRUE(controller_->Step());
  EXPECT_EQ(source_.asked, asked);
  EXPECT_EQ(core_.given, 1);
  for (auto& [address, leaves] : source_.leaves) {
    for (IndexLeaf& leaf : leaves.leaves) leaf.address += 1'000'000;
  }
  CountAnswers(DriftWatch::kWindowMin, DriftWatch::kWindowMin / 2);
  EXPECT_TRUE(controller_->Step());
  EXPECT_EQ(source_.asked, 2 * asked);
  for (const FakeSwitch* one : {&core_, &aggregation_, &edge_0_, &edge_1_}) {
    EXPECT_EQ(one->given, 2);
    EXPECT_EQ(one->version, 2u);
  }
  ExpectRight();
}

// Goal: nodes of two versions have different addresses, so a query that meets both versions is not
// led astray: it has no hint at worst.
TEST_F(ControllerTest, VersionsHaveAddressesOfTheirOwn) {
  EXPECT_TRUE(controller_->Step());
  const FakeSwitch old = [&] {
    FakeSwitch copy(0);
    *copy.at.bank = *aggregation_.at.bank;
    return copy;
  }();
  CountAnswers(DriftWatch::kWindowMin, DriftWatch::kWindowMin);
  EXPECT_TRUE(controller_->Step());
  for (const SwitchNode& node : aggregation_.at.bank->slots[0]) {
    if (node.address != 0) {
      EXPECT_EQ(SwitchFind(old.at.bank.get(), 0, node.address), nullptr);
    }
  }
}

// Goal: a moved border, a switch that was started again, and a switch that was gone all lead to new
// tables where they are needed.
TEST_F(ControllerTest, FollowsTheMapAndTheSwitches) {
  edge_1_.is_gone = true;
  EXPECT_FALSE(controller_->Step());
  EXPECT_EQ(core_.given, 1);
  edge_1_.is_gone = false;
  EXPECT_TRUE(controller_->Step());
  EXPECT_EQ(edge_1_.given, 1);
  EXPECT_EQ(core_.given, 1);
  core_.version = 0;
  EXPECT_TRUE(controller_->Step());
  EXPECT_EQ(core_.given, 2);
  EXPECT_EQ(edge_1_.given, 1);
  source_.ranges[1].lower = "\x01";
  EXPECT_TRUE(controller_->Step());
  EXPECT_EQ(edge_1_.given, 2);
}

// Goal: a server that does not answer leaves the switches with what they have.
TEST_F(ControllerTest, ReportsAServerThatIsGone) {
  source_.leaves.erase("10.77.10.2:6379");
  EXPECT_FALSE(controller_->Step());
  EXPECT_EQ(core_.given, 0);
  ASSERT_FALSE(reports_.empty());
  EXPECT_NE(reports_.back().find("it is gone"), std::string::npos);
}

// Goal: tables that are no better than those before are renewed ever more seldom.
TEST(DriftWatch, AsksEverMoreSeldomInVain) {
  DriftWatch drift;
  drift.Begin(1, 0, 0);
  uint64_t answers = 0;
  int due = 0;
  for (int i = 0; i < 1000; ++i) {
    answers += DriftWatch::kWindowMin;
    due += drift.Note(answers, answers / 2);
  }
  EXPECT_EQ(due, 9);  // 1 + 2 + 4 + ... + 256 windows, and not yet 512
  // Better ones make it attentive again.
  const uint64_t misses = answers / 2;
  answers += 4 * DriftWatch::kWindowMax;
  EXPECT_FALSE(drift.Note(answers, misses));
  EXPECT_TRUE(drift.Note(answers + DriftWatch::kWindowMin, misses + DriftWatch::kWindowMin / 2));
}

// Goal: what is expected is what tables cover, not all of the tree.
TEST(DriftWatch, ExpectsWhatTablesCover) {
  DriftWatch drift;
  drift.Begin(0.5, 0, 0);
  EXPECT_FALSE(drift.Note(1000, 540));
  EXPECT_NEAR(drift.rate(), 0.46, 0.001);
  EXPECT_TRUE(drift.Note(2000, 540 + 560));
}

TEST(DriftWatch, BeginsAgainWhenCountersDo) {
  DriftWatch drift;
  drift.Begin(1, 5000, 10);
  EXPECT_FALSE(drift.Note(100, 100));
  EXPECT_FALSE(drift.Note(1100, 110));
}

TEST(HitHistory, ForgetsWhatWasLongAgo) {
  HitHistory history;
  EXPECT_EQ(history.Weigh(1, 1000), 1001u);
  EXPECT_EQ(history.Weigh(2, 0), 1u);
  history.EndRound();
  EXPECT_EQ(history.Weigh(1, 1000), 501u);
  EXPECT_EQ(history.Weigh(2, 600), 601u);
  history.EndRound();
  EXPECT_EQ(history.Weigh(1, 1), 1 + 1 + 250u);  // another leaf with this address
}

TEST(Deployment, ReadsRoles) {
  EXPECT_FALSE(ParseRole("core"));
  EXPECT_FALSE(ParseRole("pod:/x"));
  const auto role = ParseRole("edge:/run/x=1.2.3.4:5,1.2.3.4:6");
  ASSERT_TRUE(role);
  EXPECT_EQ(role->socket, "/run/x");
  EXPECT_EQ(role->servers, (std::vector<std::string>{"1.2.3.4:5", "1.2.3.4:6"}));
  EXPECT_TRUE(role->is_last);
  EXPECT_EQ(LayersOf({*role}), 4u);
  EXPECT_EQ(LayersOf({*ParseRole("only:/x")}), 3u);
}

// Goal: numbers keep the order of keys.
TEST(LeafSource, NumbersKeys) {
  EXPECT_EQ(NumberOf(""), 0u);
  EXPECT_EQ(NumberOf("\x01"), uint64_t{1} << 56);
  EXPECT_EQ(NumberOf("abcdefghi"), 0x6162636465666768u);
}

}  // namespace
}  // namespace skep::netindex

// Tests scans that a client carries on with a token: KSCAN is of one version, SCAN meets each key
// that stays exactly once.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/numbered_keys.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

constexpr const char* kBadToken =
    "ERR invalid token: this server has not given it; begin the scan again";
constexpr const char* kEndedToken =
    "SNAPSHOTTOOOLD the scan has ended, has expired or had to make room; begin it again";
constexpr const char* kBadCursor = "ERR invalid cursor: unknown or expired; start at 0";

std::string TokenOf(const RespReply& reply) {
  return reply.elements.size() == 2 ? reply.elements[0].text : Describe(reply);
}

// Goal: all chunks of a KSCAN are of the version it began at, whatever is written meanwhile; a
// token whose reply was lost gives the same chunk again.
TEST(Scans, KscanIsOfOneVersion) {
  for (const uint64_t seed : Seeds(6)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    SimCluster cluster(seed, {.config = "workers = 2\n", .lagging = seed % 2 == 0});
    NumberedKeys keys(cluster, 1'000, 10);
    keys.StartWriting();
    SimClient& client = cluster.Connect(2 + static_cast<int>(seed / 2 % 2));
    RespReply chunk = cluster.Ask(client, {"KSCAN", "-", "+", "COUNT", "64", "WITHVALUES"});
    std::vector<NumberedKeys::Item> items;
    while (true) {
      const std::string token = TokenOf(chunk);
      const auto more = ItemsOf(chunk.elements.at(1));
      items.insert(items.end(), more.begin(), more.end());
      if (token == "0") break;
      const RespReply lost = cluster.Ask(client, {"KSCAN", "NEXT", token});
      if (TokenOf(lost) == "0") {
        chunk = lost;
        continue;
      }
      chunk = cluster.Ask(client, {"KSCAN", "NEXT", token});
      ASSERT_EQ(chunk.elements.size(), 2) << Describe(chunk);
      EXPECT_EQ(chunk.elements[1], lost.elements[1]);
    }
    EXPECT_EQ(items.size(), 1'000);
    EXPECT_TRUE(keys.StateOf(items) == items) << "not the state after any write";
    EXPECT_GT(keys.writes(), 1'010) << "nobody wrote meanwhile";
    EXPECT_EQ(cluster.server().state().key_scans().size(), 0);
  }
}

// Goal: tokens that are too old, unknown, spent, malformed or of another database are refused.
TEST(Scans, TokensEnd) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "cursor-ttl-ms = 5000\n"});
  NumberedKeys keys(cluster, 100, 10);
  SimClient& client = cluster.Connect();
  const auto begin = [&] {
    return TokenOf(cluster.Ask(client, {"KSCAN", "-", "+", "COUNT", "9"}));
  };
  const auto next = [&](const std::string& token) {
    return cluster.Ask(client, {"KSCAN", "NEXT", token});
  };

  const std::string first = begin();
  const std::string second = TokenOf(next(first));
  const std::string third = TokenOf(next(second));
  EXPECT_EQ(TokenOf(next(first)), second) << "it says where it goes on, however often";
  EXPECT_EQ(TokenOf(next(third)).empty(), false);
  EXPECT_EQ(next("12345").text, kBadToken);
  EXPECT_EQ(next("x").text, kBadToken);
  std::string last = third;
  for (std::string token = third; token != "0"; token = TokenOf(next(token))) last = token;
  EXPECT_EQ(next(last).text, kEndedToken) << "the pin went with the last chunk";
  EXPECT_EQ(next(first).text, kEndedToken);

  const std::string other = begin();
  EXPECT_EQ(cluster.Ask(client, {"SELECT", "3"}).text, "OK");
  EXPECT_EQ(next(other).text, "ERR invalid token: it belongs to another database");
  EXPECT_EQ(cluster.Ask(client, {"SELECT", "0"}).text, "OK");

  cluster.RunFor(std::chrono::seconds(4));
  EXPECT_EQ(next(other).elements.size(), 2);  // each use renews the token
  cluster.RunFor(std::chrono::seconds(4));
  const RespReply renewed = next(other);
  EXPECT_EQ(renewed.elements.size(), 2);
  cluster.RunFor(std::chrono::seconds(6));
  EXPECT_EQ(next(TokenOf(renewed)).text, kEndedToken);
  EXPECT_EQ(cluster.server().state().key_scans().size(), 0);
  EXPECT_EQ(cluster.server().keyspaces().at(0).Statistics().snapshots, 0);
}

// Goal: a scan whose snapshot is too old says so, and its pin is released before the client asks.
TEST(Scans, KscanEndsAtTheAgeLimit) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "snapshot-age-ms = 2000\n"});
  NumberedKeys keys(cluster, 100, 10);
  SimClient& client = cluster.Connect();
  const std::string token = TokenOf(cluster.Ask(client, {"KSCAN", "-", "+", "COUNT", "9"}));
  cluster.RunFor(std::chrono::seconds(3));
  EXPECT_EQ(cluster.server().keyspaces().at(0).Statistics().snapshots, 0);
  EXPECT_EQ(cluster.Ask(client, {"KSCAN", "NEXT", token}).text.substr(0, 14), "SNAPSHOTTOOOLD");
}

// Goal: SCAN gives each key that lives through the scan exactly once, and all in order, while other
// keys come and go.
TEST(Scans, ScanMeetsEachKeyThatStaysOnce) {
  for (const uint64_t seed : Seeds(4)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    SimCluster cluster(seed, {.config = "workers = 2\n", .lagging = seed % 2 == 0});
    NumberedKeys keys(cluster, 600, 1);
    auto churner = cluster.NewClient(2);
    Random& random = cluster.sim().random();
    cluster.sim().AddActor("churner", [&] {
      // These keys lie between those that stay.
      const std::string key = keys.Key(random.Below(600)) + "x";
      if (churner->replies() > 0 || churner->received().empty()) {
        churner->Take();
        churner->Send({random.Chance(1, 2) ? "SET" : "DEL", key});
        if (random.Chance(1, 2)) churner->Send({"SET", key, "v"});
      }
      return churner->Move();
    });
    SimClient& client = cluster.Connect();
    std::vector<std::string> stayed;
    std::string last, cursor = "0";
    do {
      const std::string count = std::to_string(1 + random.Below(40));
      const RespReply chunk = cluster.Ask(client, {"SCAN", cursor, "MATCH", "k*", "COUNT", count});
      ASSERT_EQ(chunk.elements.size(), 2) << Describe(chunk);
      cursor = TokenOf(chunk);
      for (const RespReply& key : chunk.elements[1].elements) {
        ASSERT_LT(last, key.text);
        last = key.text;
        if (!last.ends_with("x")) stayed.push_back(last);
      }
    } while (cursor != "0");
    ASSERT_EQ(stayed.size(), 600);
    for (uint64_t i = 0; i < 600; ++i) ASSERT_EQ(stayed[i], keys.Key(i));
    EXPECT_EQ(cluster.server().state().cursors().size(), 0);
  }
}

TEST(Scans, CursorsEnd) {
  const uint64_t seed = *Seeds(1).begin();
  SimCluster cluster(seed, {.config = "cursor-ttl-ms = 5000\n"});
  NumberedKeys keys(cluster, 100, 1);
  SimClient& client = cluster.Connect();
  const RespReply begun = cluster.Ask(client, {"SCAN", "0", "COUNT", "9"});
  const RespReply next = cluster.Ask(client, {"SCAN", TokenOf(begun), "COUNT", "9"});
  const RespReply again = cluster.Ask(client, {"SCAN", TokenOf(begun), "COUNT", "9"});
  EXPECT_EQ(next.elements.at(1), again.elements.at(1));
  EXPECT_EQ(cluster.Ask(client, {"SCAN", TokenOf(next)}).text, kBadCursor);  // never arrived
  EXPECT_EQ(cluster.Ask(client, {"SCAN", "99"}).text, kBadCursor);
  EXPECT_EQ(cluster.Ask(client, {"SCAN", "nine"}).text, "ERR invalid cursor");
  cluster.RunFor(std::chrono::seconds(6));
  EXPECT_EQ(cluster.Ask(client, {"SCAN", TokenOf(again)}).text, kBadCursor);
}

}  // namespace
}  // namespace skep::simulation

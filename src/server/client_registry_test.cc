#include "server/client_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace skep {
namespace {

bool Ends(const ClientInfo& client) { return client.ends.load(std::memory_order_relaxed); }

// Goal: each filter of CLIENT KILL by itself, and several together: all must hold.
TEST(ClientRegistry, EndsWhoMatches) {
  ClientRegistry registry;
  const auto a = registry.Add("1.1.1.1:1", "127.0.0.1:6379", 0);
  const auto b = registry.Add("1.1.1.1:2", "127.0.0.1:6379", 0);
  const auto c = registry.Add("2.2.2.2:1", "127.0.0.1:6380", 0);
  const auto self = registry.Add("3.3.3.3:1", "127.0.0.1:6380", 0);
  bool ends_self = true;
  EXPECT_EQ(registry.EndMatching({.peer = "1.1.1.1", .local = {}}, *self, &ends_self), 0u);
  EXPECT_EQ(registry.EndMatching({.peer = {}, .local = {}, .id = 99}, *self, &ends_self), 0u);
  EXPECT_EQ(registry.EndMatching({.peer = {}, .local = {}, .of_class = ClientClass::kOther}, *self,
                                 &ends_self),
            0u);
  EXPECT_EQ(
      registry.EndMatching({.peer = "1.1.1.1:1", .local = {}, .id = b->id}, *self, &ends_self), 0u);
  EXPECT_FALSE(ends_self);
  EXPECT_FALSE(Ends(*a) || Ends(*b) || Ends(*c) || Ends(*self));

  EXPECT_EQ(registry.EndMatching({.peer = "1.1.1.1:1", .local = {}}, *self, &ends_self), 1u);
  EXPECT_TRUE(Ends(*a) && !Ends(*b));
  EXPECT_EQ(registry.EndMatching({.peer = "1.1.1.1:1", .local = {}}, *self, &ends_self), 0u)
      << "it is as good as gone";
  EXPECT_EQ(registry.EndMatching({.peer = {}, .local = "127.0.0.1:6380"}, *self, &ends_self), 1u);
  EXPECT_TRUE(Ends(*c) && !Ends(*self) && !ends_self);
  EXPECT_EQ(registry.EndMatching({.peer = {}, .local = {}, .skips_self = false}, *self, &ends_self),
            2u);
  EXPECT_TRUE(Ends(*b) && ends_self);
  EXPECT_FALSE(Ends(*self)) << "it has its reply first";
  EXPECT_EQ(registry.DescribeAll(0).find("1.1.1.1"), std::string::npos);
}

// Goal: the clients with the most memory are ended, as few as suffice; never one that is kept, nor
// one because of it; and none without need.
// Method: random sizes and limits, compared with a sorted list.
TEST(ClientRegistry, EndsTheLargest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 300; ++round) {
    ClientRegistry registry;
    std::vector<std::shared_ptr<ClientInfo>> clients;
    uint64_t all = 0;
    for (size_t i = 0; i < rng() % 20; ++i) {
      clients.push_back(registry.Add("", "", 0));
      clients[i]->memory_bytes = rng() % 4 == 0 ? 0 : rng() % 1000;
      clients[i]->is_kept = rng() % 4 == 0;
      if (!clients[i]->is_kept) all += clients[i]->memory_bytes;
    }
    const uint64_t bytes_max = rng() % 8000;
    std::vector<uint64_t> candidates;
    for (const auto& client : clients) {
      if (!client->is_kept && client->memory_bytes > 0) candidates.push_back(client->memory_bytes);
    }
    std::ranges::sort(candidates, std::greater());
    size_t expected = 0;
    for (; all > bytes_max && expected < candidates.size(); ++expected) all -= candidates[expected];
    EXPECT_EQ(registry.EndLargest(bytes_max), expected);
    for (const auto& client : clients) {
      if (!Ends(*client)) continue;
      EXPECT_FALSE(client->is_kept);
      EXPECT_GE(client->memory_bytes, candidates[expected - 1]);
    }
    EXPECT_EQ(registry.EndLargest(bytes_max), 0u);
  }
}

}  // namespace
}  // namespace skep

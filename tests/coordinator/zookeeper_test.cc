// What ZooKeeper does beyond the conformance suite: what it answers without a majority, addresses
// at which there is none, and sessions that end in the middle of something.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/coordinator_client.h"
#include "tests/coordinator/zookeeper_servers.h"
#include "tests/coordinator/zookeeper_world.h"
#include "zookeeper/zookeeper_coordinator.h"

// The library loses its own records of what is under way when a session is ended.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libzookeeper_mt";
}

namespace skep {
namespace {

using Outcome = CoordinatorOutcome;
using State = CoordinatorSession::State;

class ZooKeeper : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = ZooKeeperServers::Missing();
    if (missing.empty()) return;
    if (std::getenv("CI") != nullptr) FAIL() << missing;
    GTEST_SKIP() << missing;
  }
};

// S4: a server that is cut off from the others may answer reads for some time; the last contact
// stays where it was. Nothing that needs a majority is answered until there is one.
TEST_F(ZooKeeper, OnlyAMajorityMovesTheLastContact) {
  ZooKeeperServers servers(3);  // of its own: what follows disturbs them for longer than it takes
  ZooKeeperWorld world(servers);
  const int follower = servers.FindLeader() % servers.count() + 1;
  std::atomic<int> wakes{0};
  const auto session =
      world.OpenAt(follower, {.timeout_ms = CoordinatorClient::kPatientMs, .wake = [&] {
                                ++wakes;
                                world.Wake();
                              }});
  std::vector<CoordinatorEvent> answers;
  const auto await = [&](uint64_t token) {
    auto answer = answers.end();
    do {
      std::ranges::copy_if(session->TakeEvents(), std::back_inserter(answers), [](const auto& one) {
        return one.kind == CoordinatorEvent::Kind::kAnswer;
      });
      answer = std::ranges::find(answers, token, &CoordinatorEvent::token);
    } while (answer == answers.end() && world.PassTime());
    EXPECT_NE(answer, answers.end());
    return answer == answers.end() ? Outcome::kUnknown : answer->outcome;
  };
  while (session->state() != State::kConnected && world.PassTime()) session->TakeEvents();
  session->Confirm(1);
  ASSERT_EQ(await(1), Outcome::kDone);
  const uint64_t contact_ns = session->LastContactNs();
  EXPECT_GT(contact_ns, 0U);

  for (int server = 1; server <= servers.count(); ++server) {
    if (server != follower) servers.Stop(server);
  }
  session->Get(2, "/", CoordinatorWatch::kNone);
  session->Confirm(3);
  await(2);
  EXPECT_NE(await(3), Outcome::kDone);
  EXPECT_EQ(session->LastContactNs(), contact_ns);

  for (int server = 1; server <= servers.count(); ++server) {
    if (server != follower) servers.Continue(server);
  }
  Outcome outcome = Outcome::kUnknown;
  for (uint64_t token = 4; outcome != Outcome::kDone && world.PassTime(); ++token) {
    session->Confirm(token);
    outcome = await(token);
  }
  EXPECT_GT(session->LastContactNs(), contact_ns);
  EXPECT_GT(wakes.load(), 0);
}

// Goal: a session whose requests and watches are under way can be destroyed; AddressSanitizer sees
// whatever stays or is used later.
TEST_F(ZooKeeper, ASessionEndsInTheMiddleOfRequests) {
  ZooKeeperWorld world(SharedServers(1));
  for (int round = 0; round < 10; ++round) {
    CoordinatorClient client(world);
    client.Create("/busy", "");
    for (int i = 0; i < 100; ++i) {
      client.SendGet("/", CoordinatorWatch::kWatch);
      client.SendChildren("/busy", CoordinatorWatch::kWatch);
      client.SendSet("/busy", "", i);
      client.SendConfirm();
      client.SendGet("/absent", CoordinatorWatch::kWatch);
    }
  }
  world.Open({.timeout_ms = 1000});  // ended before it is connected
}

// Goal: where there is no service a session goes on trying, sends nothing, and can be ended.
TEST_F(ZooKeeper, NobodyIsThere) {
  auto listener = SocketNetwork().Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.has_value());
  const Address address = (*listener)->address();
  listener->reset();
  const auto session = ZooKeeperCoordinator(address).Open({.timeout_ms = 500});
  ASSERT_TRUE(session.has_value());
  (*session)->Confirm(7);
  const std::vector<CoordinatorEvent> events = (*session)->TakeEvents();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].token, 7U);
  EXPECT_EQ(events[0].outcome, Outcome::kNotSent);
  EXPECT_EQ((*session)->state(), State::kConnecting);
  EXPECT_EQ((*session)->LastContactNs(), 0U);
  EXPECT_EQ((*session)->id(), 0U);
}

TEST_F(ZooKeeper, AddressesThatAreNone) {
  EXPECT_EQ(ZooKeeperCoordinator("").Open({}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ZooKeeperCoordinator("127.0.0.1").Open({}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ZooKeeperCoordinator("127.0.0.1:1").Open({.timeout_ms = 0}).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace skep

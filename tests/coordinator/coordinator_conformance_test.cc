// What every coordination service does, simulated or real: the rules of base/coordinator.h by name.
//
// Method: sessions of one service do something and are asked what they saw. Nothing depends on how
// long something takes, but for sessions that are meant to end: those have a short time-out, all
// others one that no busy machine reaches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/coordinator_client.h"
#include "tests/coordinator/coordinator_world.h"

namespace skep {
namespace {

using Event = CoordinatorEvent;
using Link = CoordinatorWorld::Link;
using Node = CoordinatorNode;
using Outcome = CoordinatorOutcome;
using State = CoordinatorSession::State;
using Watch = CoordinatorWatch;
using testing::Test;

constexpr uint32_t kShortMs = 5000;

class CoordinatorConformance : public testing::TestWithParam<CoordinatorWorldInfo> {
 protected:
  void SetUp() override {
    if (const std::string missing = GetParam().missing(); !missing.empty()) {
      // In CI whatever is packaged is there.
      if (std::getenv("CI") != nullptr) FAIL() << missing;
      GTEST_SKIP() << missing;
    }
    world_ = GetParam().make();
    me_ = std::make_unique<CoordinatorClient>(*world_);
    // Servers are shared by the tests of a program.
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = "/" + name.substr(0, name.find('/')) + std::to_string(++last_root_);
    ASSERT_EQ(me_->Create(root_, "").outcome, Outcome::kDone);
  }
  void TearDown() override {
    me_.reset();
    world_.reset();
  }

  std::string At(const std::string& name) const { return root_ + "/" + name; }
  std::unique_ptr<CoordinatorClient> NewClient(
      uint32_t timeout_ms = CoordinatorClient::kPatientMs) {
    return std::make_unique<CoordinatorClient>(*world_, timeout_ms);
  }
  // Waits until somebody else's node is gone.
  void AwaitEnd(CoordinatorClient& client, const std::string& path) {
    while (true) {
      const Event answer = client.GetNew(path, Watch::kWatch);
      if (answer.outcome == Outcome::kAbsent || Test::HasFailure()) return;
      client.AwaitChanged(answer.token);
    }
  }

  std::unique_ptr<CoordinatorWorld> world_;
  std::unique_ptr<CoordinatorClient> me_;
  std::string root_;

 private:
  static inline int last_root_ = 0;
};

// Goal: a node has the bytes it was made with, whatever they are, and is made once.
TEST_P(CoordinatorConformance, CreatesAndGets) {
  const std::string values[] = {"", "a", std::string("\0\xff\n", 3),
                                std::string(kCoordinatorBytesMax, 'x')};
  for (const std::string& value : values) {
    const std::string path = At("n" + std::to_string(value.size()));
    const Event made = me_->Create(path, value);
    EXPECT_EQ(made.outcome, Outcome::kDone);
    EXPECT_EQ(made.path, path);
    const Event got = me_->Get(path);
    EXPECT_EQ(got.outcome, Outcome::kDone);
    EXPECT_EQ(got.bytes, value);
    EXPECT_EQ(got.version, 0);
    EXPECT_EQ(got.owner, 0U);
    EXPECT_EQ(me_->Create(path, "other").outcome, Outcome::kExists);
    EXPECT_EQ(me_->Get(path).bytes, value);
  }
  EXPECT_EQ(me_->Create(At("no/parent"), "").outcome, Outcome::kAbsent);
  EXPECT_EQ(me_->Get(At("nothing")).outcome, Outcome::kAbsent);
  EXPECT_EQ(me_->Children(At("nothing")).outcome, Outcome::kAbsent);
}

// Goal: what can never be done is refused, changes nothing and does not cost the connection.
TEST_P(CoordinatorConformance, Refuses) {
  for (const std::string path : {"", "a", "//a", "/a/", "/a//b", "/./a", "/a/..", "/a b", "/a\n"}) {
    EXPECT_EQ(me_->Create(path, "").outcome, Outcome::kRefused) << path;
    EXPECT_EQ(me_->Get(path).outcome, Outcome::kRefused) << path;
  }
  EXPECT_EQ(me_->Create("/", "").outcome, Outcome::kRefused);
  EXPECT_EQ(me_->Delete("/", 0).outcome, Outcome::kRefused);
  EXPECT_EQ(me_->Create(At(std::string(kCoordinatorPathBytesMax, 'a')), "").outcome,
            Outcome::kRefused);
  const std::string too_long(kCoordinatorBytesMax + 1, 'x');
  EXPECT_EQ(me_->Create(At("long"), too_long).outcome, Outcome::kRefused);
  EXPECT_EQ(me_->Set(root_, too_long, 0).outcome, Outcome::kRefused);
  EXPECT_EQ(me_->Set(root_, "any version", -1).outcome, Outcome::kRefused);
  EXPECT_EQ(me_->Create(At("e"), "", Node::kEphemeral).outcome, Outcome::kDone);
  EXPECT_EQ(me_->Create(At("e/child"), "").outcome, Outcome::kRefused);

  EXPECT_EQ(me_->Get(root_).version, 0);
  EXPECT_EQ(me_->Children(root_).children, std::vector<std::string>{"e"});
  EXPECT_EQ(me_->session().state(), State::kConnected);
  EXPECT_FALSE(me_->Has(Event::Kind::kDisconnected));
}

// Goal: of several that set one version one succeeds, and the others change nothing.
TEST_P(CoordinatorConformance, SetsAnExpectedVersion) {
  EXPECT_EQ(me_->Set(At("v"), "", 0).outcome, Outcome::kAbsent);
  me_->Create(At("v"), "zero");
  const Event set = me_->Set(At("v"), "one", 0);
  EXPECT_EQ(set.outcome, Outcome::kDone);
  EXPECT_EQ(set.version, 1);
  EXPECT_EQ(me_->Set(At("v"), "again", 0).outcome, Outcome::kStale);
  EXPECT_EQ(me_->Set(At("v"), "early", 2).outcome, Outcome::kStale);
  const Event got = me_->Get(At("v"));
  EXPECT_EQ(got.bytes, "one");
  EXPECT_EQ(got.version, 1);

  std::vector<std::unique_ptr<CoordinatorClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(NewClient());
  for (int32_t version = 1; version < 6; ++version) {
    std::vector<uint64_t> tokens;
    for (auto& client : clients) {
      tokens.push_back(client->SendSet(At("v"), std::to_string(tokens.size()), version));
    }
    std::vector<size_t> winners;
    for (size_t i = 0; i < clients.size(); ++i) {
      const Outcome outcome = clients[i]->Await(tokens[i]).outcome;
      if (outcome == Outcome::kDone) winners.push_back(i);
      if (outcome != Outcome::kDone) {
        EXPECT_EQ(outcome, Outcome::kStale);
      }
    }
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(me_->GetNew(At("v")).bytes, std::to_string(winners[0]));
  }
}

TEST_P(CoordinatorConformance, Deletes) {
  me_->Create(At("d"), "");
  me_->Create(At("d/child"), "");
  EXPECT_EQ(me_->Delete(At("d"), 1).outcome, Outcome::kStale);
  EXPECT_EQ(me_->Delete(At("d"), 0).outcome, Outcome::kNotEmpty);
  EXPECT_EQ(me_->Delete(At("d/child"), 0).outcome, Outcome::kDone);
  EXPECT_EQ(me_->Delete(At("d/child"), 0).outcome, Outcome::kAbsent);
  EXPECT_EQ(me_->Delete(At("d"), 0).outcome, Outcome::kDone);
  EXPECT_EQ(me_->Get(At("d")).outcome, Outcome::kAbsent);
}

// Goal: children are the names one step below, in order.
TEST_P(CoordinatorConformance, ListsChildren) {
  EXPECT_TRUE(me_->Children(root_).children.empty());
  for (const char* name : {"b", "a", "b/below", "ab", "c"}) me_->Create(At(name), "");
  EXPECT_EQ(me_->Children(root_).children, (std::vector<std::string>{"a", "ab", "b", "c"}));
  EXPECT_EQ(me_->Children(At("b")).children, std::vector<std::string>{"below"});
  EXPECT_TRUE(me_->Children(At("a")).children.empty());
}

// Goal: sequential nodes get names in the order in which they are made, and say whose they are.
TEST_P(CoordinatorConformance, NumbersSequentialNodes) {
  const auto other = NewClient();
  std::vector<std::string> made;
  for (int i = 0; i < 12; ++i) {
    CoordinatorClient& client = i % 2 == 0 ? *me_ : *other;
    const Event created = client.Create(At("s-"), "", Node::kEphemeralSequential);
    ASSERT_EQ(created.outcome, Outcome::kDone);
    EXPECT_TRUE(created.path.starts_with(At("s-")));
    EXPECT_EQ(created.path.size(), At("s-").size() + 10);
    if (!made.empty()) {
      EXPECT_GT(created.path, made.back());
    }
    made.push_back(created.path);
    EXPECT_EQ(client.Get(created.path).owner, client.session().id());
  }
  EXPECT_EQ(me_->ChildrenNew(root_).children.size(), made.size());
}

// R1, R2: requests that nobody waits for are done in their order and answered in their order.
TEST_P(CoordinatorConformance, DoesRequestsInTheirOrder) {
  std::vector<uint64_t> tokens = {me_->SendCreate(At("o"), "-1")};
  constexpr int32_t kSets = 50;
  for (int32_t i = 0; i < kSets; ++i) {
    tokens.push_back(me_->SendSet(At("o"), std::to_string(i), i));
    tokens.push_back(me_->SendGet(At("o")));
  }
  const Event last = me_->Get(At("o"));
  EXPECT_EQ(last.version, kSets);
  const std::vector<Event>& events = me_->Waiting();
  ASSERT_EQ(events.size(), tokens.size());
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].token, tokens[i]);
    EXPECT_EQ(events[i].outcome, Outcome::kDone);
    if (i % 2 == 0 && i > 0) {
      EXPECT_EQ(events[i].bytes, std::to_string(i / 2 - 1));
    }
  }
}

// S2: who destroys a session takes its nodes along, at once: long before its time-out.
TEST_P(CoordinatorConformance, EphemeralNodesEndWithTheirSession) {
  auto other = NewClient();
  other->Create(At("e"), "bytes", Node::kEphemeral);
  other->Create(At("e-"), "", Node::kEphemeralSequential);
  other->Create(At("stays"), "");
  EXPECT_NE(other->session().id(), 0U);
  EXPECT_NE(other->session().id(), me_->session().id());
  EXPECT_EQ(me_->GetNew(At("e")).owner, other->session().id());
  const uint64_t closed_ns = world_->NowNs();
  const uint64_t timeout_ns = other->session().timeout_ms() * uint64_t{1'000'000};
  EXPECT_EQ(other->session().timeout_ms(), CoordinatorClient::kPatientMs);
  other->Close();
  AwaitEnd(*me_, At("e"));
  EXPECT_LT(world_->NowNs() - closed_ns, timeout_ns / 2);
  EXPECT_EQ(me_->Children(root_).children, std::vector<std::string>{"stays"});
}

// S2: the node of a process that is killed ends when the service has not heard of it for its
// time-out.
TEST_P(CoordinatorConformance, EphemeralNodesEndAfterAKill) {
  const auto other = world_->StartProcess(At("e"), kShortMs);
  const Event before = me_->GetNew(At("e"), Watch::kWatch);
  ASSERT_EQ(before.outcome, Outcome::kDone);
  EXPECT_NE(before.owner, 0U);
  EXPECT_NE(before.owner, me_->session().id());
  EXPECT_FALSE(me_->Has(Event::Kind::kChanged, before.token));
  other->Kill();
  me_->AwaitChanged(before.token);
  AwaitEnd(*me_, At("e"));
  EXPECT_EQ(me_->session().state(), State::kConnected);
}

// W1, W4: a watch fires once, for what it watches and for nothing else.
TEST_P(CoordinatorConformance, WatchesFireOnce) {
  const auto other = NewClient();
  other->Create(At("w"), "");
  other->Create(At("w/child"), "");
  const uint64_t bytes = me_->GetNew(At("w"), Watch::kWatch).token;
  const uint64_t children = me_->Children(At("w"), Watch::kWatch).token;
  EXPECT_EQ(me_->Get(At("absent"), Watch::kWatch).outcome, Outcome::kAbsent);

  other->Create(At("absent"), "");
  other->Set(At("w/child"), "new", 0);
  other->Create(At("w/child/below"), "");
  other->Set(root_, "", 0);
  me_->GetNew(root_);
  EXPECT_TRUE(me_->Waiting().empty());

  other->Set(At("w"), "1", 0);
  me_->AwaitChanged(bytes);
  other->Set(At("w"), "2", 1);
  EXPECT_EQ(me_->GetNew(At("w")).bytes, "2");
  EXPECT_TRUE(me_->Waiting().empty());

  other->Create(At("w/second"), "");
  me_->AwaitChanged(children);
  other->Create(At("w/third"), "");
  EXPECT_EQ(me_->ChildrenNew(At("w")).children.size(), 3U);
  EXPECT_TRUE(me_->Waiting().empty());
}

// W1: the end of a node fires the watches of its bytes, of its children and of its parent's
// children; several watches of one node fire each for itself, also for one's own changes.
TEST_P(CoordinatorConformance, WatchesFireForDeletes) {
  me_->Create(At("w"), "");
  const std::vector<uint64_t> tokens = {
      me_->Get(At("w"), Watch::kWatch).token, me_->Get(At("w"), Watch::kWatch).token,
      me_->Children(At("w"), Watch::kWatch).token, me_->Children(root_, Watch::kWatch).token};
  EXPECT_EQ(me_->Delete(At("w"), 0).outcome, Outcome::kDone);
  for (const uint64_t token : tokens) me_->AwaitChanged(token);
  EXPECT_TRUE(me_->Waiting().empty());
}

// W2: who sees a change has been told of it.
TEST_P(CoordinatorConformance, WatchesFireBeforeTheChangeIsRead) {
  const auto other = NewClient();
  me_->Create(At("w"), "");
  for (int32_t version = 0; version < 10; ++version) {
    const uint64_t watch = me_->GetNew(At("w"), Watch::kWatch).token;
    const uint64_t set = other->SendSet(At("w"), "new", version);
    while (me_->Get(At("w")).version == version) ASSERT_TRUE(world_->PassTime());
    EXPECT_TRUE(me_->Has(Event::Kind::kChanged, watch));
    me_->AwaitChanged(watch);
    EXPECT_EQ(other->Await(set).outcome, Outcome::kDone);
  }
}

// W3: a session that lost its connection hears of what it has missed.
TEST_P(CoordinatorConformance, WatchesOutliveAConnection) {
  const auto other = NewClient();
  me_->Create(At("missed"), "");
  me_->Create(At("later"), "");
  const uint64_t missed = me_->Get(At("missed"), Watch::kWatch).token;
  const uint64_t later = me_->Get(At("later"), Watch::kWatch).token;
  const uint64_t id = me_->session().id();
  world_->SetLink(me_->session(), Link::kParted);
  EXPECT_EQ(other->Set(At("missed"), "new", 0).outcome, Outcome::kDone);
  EXPECT_FALSE(me_->Has(Event::Kind::kChanged, missed));
  world_->SetLink(me_->session(), Link::kOpen);
  me_->Await(Event::Kind::kDisconnected);
  me_->Await(Event::Kind::kConnected);
  me_->AwaitChanged(missed);
  EXPECT_EQ(me_->session().id(), id);
  EXPECT_FALSE(me_->Has(Event::Kind::kChanged, later));
  other->Set(At("later"), "new", 0);
  me_->AwaitChanged(later);
}

// R4: a Set whose answer is lost was done; to make it again finds that out.
TEST_P(CoordinatorConformance, ASetThatWasDoneIsNotKnownToBe) {
  const auto other = NewClient();
  me_->Create(At("u"), "old");
  me_->Create(At("e"), "");
  world_->SetLink(me_->session(), Link::kOneWay);
  const uint64_t set = me_->SendSet(At("u"), "mine", 0);
  const uint64_t create = me_->SendCreate(At("made"), "", Node::kEphemeral);
  const uint64_t deleted = me_->SendDelete(At("e"), 0);
  const uint64_t confirm = me_->SendConfirm();
  const uint64_t contact_ns = me_->session().LastContactNs();
  while (other->GetNew(At("e")).outcome == Outcome::kDone) ASSERT_TRUE(world_->PassTime());
  EXPECT_TRUE(me_->Waiting().empty());
  world_->SetLink(me_->session(), Link::kOpen);
  for (const uint64_t token : {set, create, deleted, confirm}) {
    EXPECT_EQ(me_->Await(token).outcome, Outcome::kUnknown);
  }
  EXPECT_EQ(me_->session().LastContactNs(), contact_ns);
  me_->Await(Event::Kind::kConnected);

  EXPECT_EQ(me_->Set(At("u"), "mine", 0).outcome, Outcome::kStale);
  EXPECT_EQ(me_->Get(At("u")).bytes, "mine");
  EXPECT_EQ(me_->Create(At("made"), "", Node::kEphemeral).outcome, Outcome::kExists);
  EXPECT_EQ(me_->Get(At("made")).owner, me_->session().id());
  EXPECT_EQ(me_->Delete(At("e"), 0).outcome, Outcome::kAbsent);
}

// R4: the answer is the same if it was not done; to make it again does it.
TEST_P(CoordinatorConformance, ASetThatWasNotDoneIsNotKnownNotToBe) {
  me_->Create(At("u"), "old");
  world_->SetLink(me_->session(), Link::kParted);
  const uint64_t set = me_->SendSet(At("u"), "mine", 0);
  const uint64_t get = me_->SendGet(At("u"), Watch::kWatch);
  world_->SetLink(me_->session(), Link::kOpen);
  EXPECT_EQ(me_->Await(set).outcome, Outcome::kUnknown);
  EXPECT_EQ(me_->Await(get).outcome, Outcome::kUnknown);
  me_->Await(Event::Kind::kConnected);
  EXPECT_EQ(me_->GetNew(At("u")).bytes, "old");
  EXPECT_EQ(me_->Set(At("u"), "mine", 0).outcome, Outcome::kDone);
  EXPECT_FALSE(me_->Has(Event::Kind::kChanged, get));
}

// S3: without a connection nothing is sent, and that is told at once.
TEST_P(CoordinatorConformance, SendsNothingWithoutAConnection) {
  const auto other = NewClient();
  me_->Create(At("n"), "old");
  world_->SetLink(other->session(), Link::kRefused);
  while (other->State() != State::kDisconnected) ASSERT_TRUE(world_->PassTime());
  EXPECT_TRUE(other->Has(Event::Kind::kDisconnected));
  EXPECT_LE(other->session().state_since_ns(), world_->NowNs());
  for (const uint64_t token : {other->SendSet(At("n"), "new", 0), other->SendGet(At("n")),
                               other->SendConfirm(), other->SendCreate(At("new"), "")}) {
    ASSERT_TRUE(other->Has(Event::Kind::kAnswer, token));
    EXPECT_EQ(other->Await(token).outcome, Outcome::kNotSent);
  }
  world_->SetLink(other->session(), Link::kOpen);
  other->Await(Event::Kind::kConnected);
  EXPECT_EQ(me_->GetNew(At("n")).bytes, "old");
  EXPECT_EQ(me_->Get(At("new")).outcome, Outcome::kAbsent);
}

// S1, S3, S4: the service ends a session whose process cannot know; its last contact lies before
// that. When it knows, nothing brings the session back.
TEST_P(CoordinatorConformance, AnExpiredSessionNeverComesBack) {
  const auto other = NewClient(kShortMs);
  other->Create(At("e"), "", Node::kEphemeral);
  other->Create(At("n"), "old");
  const uint64_t watch = other->Get(At("n"), Watch::kWatch).token;
  const uint64_t id = other->session().id();
  world_->SetLink(other->session(), Link::kParted);
  const uint64_t parted_ns = world_->NowNs();
  AwaitEnd(*me_, At("e"));
  EXPECT_FALSE(other->Has(Event::Kind::kExpired));
  EXPECT_NE(other->session().state(), State::kExpired);
  EXPECT_GT(other->session().LastContactNs(), 0U);
  EXPECT_LE(other->session().LastContactNs(), parted_ns);

  me_->Set(At("n"), "new", 0);
  world_->SetLink(other->session(), Link::kOpen);
  other->Await(Event::Kind::kExpired);
  EXPECT_EQ(other->session().state(), State::kExpired);
  EXPECT_EQ(other->session().id(), id);
  EXPECT_EQ(other->Set(At("n"), "mine", 1).outcome, Outcome::kNotSent);
  EXPECT_EQ(other->Confirm().outcome, Outcome::kNotSent);
  EXPECT_LE(other->session().LastContactNs(), parted_ns);
  EXPECT_EQ(me_->GetNew(At("n")).bytes, "new");
  EXPECT_FALSE(other->Has(Event::Kind::kChanged, watch));

  const auto again = NewClient();
  EXPECT_NE(again->session().id(), id);
  EXPECT_EQ(again->Create(At("e"), "", Node::kEphemeral).outcome, Outcome::kDone);
}

// Goal: a process that comes back before its old session has ended sees that the node is not its
// own.
TEST_P(CoordinatorConformance, TheNodeOfAnOldSessionHasAnotherOwner) {
  const auto old = world_->StartProcess(At("e"), kShortMs);
  old->Kill();
  const Event made = me_->Create(At("e"), "", Node::kEphemeral);
  if (made.outcome == Outcome::kExists) {
    EXPECT_NE(me_->Get(At("e")).owner, me_->session().id());
  }
  AwaitEnd(*me_, At("e"));
  EXPECT_EQ(me_->Create(At("e"), "", Node::kEphemeral).outcome, Outcome::kDone);
  EXPECT_EQ(me_->Get(At("e")).owner, me_->session().id());
}

// S4: what a majority answers moves the last contact to the instant at which it was asked, whatever
// the answer; what one server answers does not.
TEST_P(CoordinatorConformance, TheLastContactIsWhenAMajorityWasAsked) {
  const auto other = NewClient();
  EXPECT_EQ(other->session().LastContactNs(), 0U);
  other->Get(root_);
  other->Children(root_);
  EXPECT_EQ(other->session().LastContactNs(), 0U);
  me_->Create(At("n"), "");
  const auto moves = [&](uint64_t token, uint64_t before_ns) {
    const uint64_t sent_ns = world_->NowNs();
    world_->PassTime();
    other->Await(token);
    const uint64_t contact_ns = other->session().LastContactNs();
    EXPECT_GE(contact_ns, before_ns);
    EXPECT_LE(contact_ns, sent_ns);
  };
  uint64_t now_ns = world_->NowNs();
  moves(other->SendConfirm(), now_ns);
  now_ns = world_->NowNs();
  moves(other->SendSet(At("n"), "", 0), now_ns);
  now_ns = world_->NowNs();
  moves(other->SendSet(At("n"), "stale", 0), now_ns);
  now_ns = world_->NowNs();
  moves(other->SendCreate(At("no/parent"), ""), now_ns);
  now_ns = world_->NowNs();
  moves(other->SendDelete(At("n"), 1), now_ns);
  const uint64_t last_ns = other->session().LastContactNs();
  other->Set(At("bad//path"), "", 0);
  other->Get(root_);
  EXPECT_EQ(other->session().LastContactNs(), last_ns);
}

// R3: a read behind a Confirm sees whatever was answered before, whichever server it asks.
TEST_P(CoordinatorConformance, AReadBehindAConfirmIsNew) {
  const auto other = NewClient();
  me_->Create(At("n"), "");
  for (int32_t version = 0; version < 30; ++version) {
    ASSERT_EQ(other->Set(At("n"), "", version).outcome, Outcome::kDone);
    EXPECT_EQ(me_->GetNew(At("n")).version, version + 1);
  }
}

// Goal: sessions, their nodes and their watches outlive what the service itself survives.
TEST_P(CoordinatorConformance, SessionsOutliveTheServersFailure) {
  const auto other = NewClient();
  other->Create(At("e"), "", Node::kEphemeral);
  me_->Create(At("n"), "old");
  const uint64_t watch = me_->GetNew(At("e"), Watch::kWatch).token;
  const uint64_t id = other->session().id();
  world_->FailService();
  while (other->Confirm().outcome != Outcome::kDone) ASSERT_TRUE(world_->PassTime());
  EXPECT_EQ(other->session().id(), id);
  while (me_->Confirm().outcome != Outcome::kDone) ASSERT_TRUE(world_->PassTime());
  EXPECT_EQ(me_->Get(At("e")).owner, id);
  EXPECT_FALSE(me_->Has(Event::Kind::kChanged, watch));
  EXPECT_EQ(other->Set(At("n"), "new", 0).outcome, Outcome::kDone);
  EXPECT_EQ(me_->GetNew(At("n")).bytes, "new");
  other->Close();
  me_->AwaitChanged(watch);
  EXPECT_FALSE(me_->Has(Event::Kind::kExpired));
}

INSTANTIATE_TEST_SUITE_P(Worlds, CoordinatorConformance, testing::ValuesIn(CoordinatorWorlds()),
                         [](const auto& world) { return world.param.name; });

}  // namespace
}  // namespace skep

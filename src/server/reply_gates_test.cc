// The gates of replies without a server: an engine whose gates the test opens, and a poller that
// counts its wake-ups.
#include "server/reply_gates.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/forwarding_engine.h"
#include "model/model_engine.h"

namespace skep {
namespace {

class GatedEngine final : public ForwardingEngine {
 public:
  explicit GatedEngine(MemoryBudget& budget)
      : ForwardingEngine(std::make_unique<ModelEngine>(EngineOptions{.budget = &budget})) {}

  void Release() override { gate_.Release(released_by_release); }
  void WantSync(Version ticket, bool here) override { wanted.emplace_back(ticket, here); }

  ReleaseGate& synced_gate() override { return synced_gate_; }

  ReleaseGate& open_gate() { return gate_; }
  Version released_by_release = 0;
  std::vector<std::pair<Version, bool>> wanted;

 private:
  ReleaseGate synced_gate_;
};

class CountingPoller final : public Poller {
 public:
  Status Add(Stream&, void*, bool, bool) override { return {}; }
  Status Change(Stream&, void*, bool, bool) override { return {}; }
  void Remove(Stream&) override {}
  Status Add(Listener&, void*) override { return {}; }
  void Remove(Listener&) override {}
  Status Add(DatagramSocket&, void*) override { return {}; }
  void Remove(DatagramSocket&) override {}
  std::span<const ReadyEvent> Wait(int) override { return {}; }
  void Wake() override { ++wakes; }

  int wakes = 0;
};

class Gates : public testing::Test {
 protected:
  // Appends a reply that waits for the ticket.
  void Reply(Session& session, Version ticket, std::string_view reply) {
    gates_.Mark(session, engine_, ticket);
    session.out += reply;
  }
  static std::string_view Sendable(const Session& session) {
    return std::string_view(session.out).substr(session.out_begin, session.sendable());
  }

  MemoryBudget budget_;
  GatedEngine engine_{budget_};
  std::shared_ptr<CountingPoller> poller_ = std::make_shared<CountingPoller>();
  ReplyGates gates_{poller_};
};

// Goal: a session may send its replies up to the first one whose ticket is not released.
TEST_F(Gates, RepliesLeaveInOrder) {
  Session session;
  engine_.open_gate().Release(1);
  Reply(session, 1, "a");
  EXPECT_FALSE(session.waiting) << "its ticket is released";
  Reply(session, 3, "b");
  Reply(session, 2, "c");
  EXPECT_EQ(session.marks.size(), 1u) << "the mark before it waits for more";
  Reply(session, 5, "d");
  EXPECT_TRUE(session.waiting);
  EXPECT_EQ(Sendable(session), "a");
  engine_.open_gate().Release(3);
  EXPECT_EQ(gates_.Pass(), std::vector{&session});
  EXPECT_EQ(Sendable(session), "abc");
  EXPECT_TRUE(session.waiting);
  engine_.open_gate().Release(5);
  EXPECT_EQ(gates_.Pass(), std::vector{&session});
  EXPECT_EQ(Sendable(session), "abcd");
  EXPECT_FALSE(session.waiting);
  EXPECT_TRUE(gates_.Pass().empty());
  EXPECT_FALSE(gates_.has_work());
}

// Goal: if it suffices to ask the engine for a release, it is asked, and nothing waits.
TEST_F(Gates, AsksTheEngineFirst) {
  Session session;
  engine_.released_by_release = 7;
  Reply(session, 7, "a");
  EXPECT_FALSE(session.waiting);
  EXPECT_EQ(Sendable(session), "a");
}

// Goal: replies of the packed protocol do not wait for each other.
TEST_F(Gates, MessagesLeaveByThemselves) {
  Session session;
  session.packed = std::make_unique<PackedSession>(0);
  gates_.ReplyTo(session, engine_, 2, false) += "late";
  engine_.open_gate().Release(1);
  gates_.ReplyTo(session, engine_, 1, false) += "first";
  EXPECT_EQ(session.out, "first");
  EXPECT_EQ(gates_.Pass().size(), 1u);
  EXPECT_TRUE(session.waiting);
  engine_.open_gate().Release(2);
  gates_.Pass();
  EXPECT_FALSE(session.waiting);
  EXPECT_EQ(session.out, "firstlate");
}

// Goal: a reply that waits for a sync asks for one: at once if no input comes, else in the third
// turn, and once for all replies that wait. If there is only one session the worker syncs by
// itself.
TEST_F(Gates, SyncsOnceForSeveralTurns) {
  Session session;
  session.syncs_always = true;
  Reply(session, 3, "a");
  Reply(session, 4, "b");
  EXPECT_TRUE(gates_.has_work());
  gates_.SyncIfDue(false, 2);
  gates_.SyncIfDue(false, 2);
  EXPECT_TRUE(engine_.wanted.empty());
  gates_.SyncIfDue(false, 2);
  EXPECT_EQ(engine_.wanted, (std::vector<std::pair<Version, bool>>{{4, false}}));
  Reply(session, 5, "c");
  gates_.SyncIfDue(true, 1);
  EXPECT_EQ(engine_.wanted.back(), (std::pair<Version, bool>{5, true}));
  engine_.synced_gate().Release(6);
  gates_.Pass();
  EXPECT_FALSE(session.waiting);
  EXPECT_EQ(Sendable(session), "abc");
}

// Goal: a worker that sleeps is woken once for its waiting replies (G3), and does not poll in vain
// for ever.
TEST_F(Gates, IsWokenByTheRelease) {
  Session session;
  for (Version ticket = 1; ticket <= 20; ++ticket) {
    Reply(session, ticket, "x");
    gates_.StayAwake();
    EXPECT_FALSE(gates_.has_work()) << "the gate is asked";
    EXPECT_EQ(poller_->wakes, static_cast<int>(ticket) - 1);
    engine_.open_gate().Release(ticket);
    EXPECT_EQ(poller_->wakes, static_cast<int>(ticket));
    gates_.Pass();
    EXPECT_FALSE(session.waiting);
  }
}

// Goal: a dropped session is not touched again.
TEST_F(Gates, ForgetsWhatIsDropped) {
  Session kept;
  {
    Session dropped;
    Reply(kept, 1, "a");
    Reply(dropped, 2, "b");
    gates_.DropIf([&](const Session* session) { return session == &dropped; });
  }
  engine_.open_gate().Release(2);
  EXPECT_EQ(gates_.Pass(), std::vector{&kept});
}

// Goal: with any sessions, tickets and releases, exactly the released replies may leave.
// Method: random steps, compared with a list of each session's replies and tickets. Seed printed.
TEST_F(Gates, AgreesWithAModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  constexpr size_t kSessions = 5;
  std::vector<Session> sessions(kSessions);
  std::vector<std::vector<Version>> tickets(kSessions);  // tickets of the replies, of a byte each
  Version released = 0;
  for (int step = 0; step < 3000; ++step) {
    const size_t at = rng() % kSessions;
    if (rng() % 3 != 0) {
      const Version ticket = released + rng() % 4;
      Reply(sessions[at], ticket, "r");
      tickets[at].push_back(ticket);
    } else {
      released += rng() % 3;
      engine_.open_gate().Release(released);
      gates_.Pass();
    }
    for (size_t i = 0; i < kSessions; ++i) {
      size_t may = 0;
      while (may < tickets[i].size() && tickets[i][may] <= released) ++may;
      ASSERT_EQ(sessions[i].sendable(), may) << "session " << i << " in step " << step;
      ASSERT_EQ(sessions[i].waiting, may < tickets[i].size());
    }
  }
}

}  // namespace
}  // namespace skep

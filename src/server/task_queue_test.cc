// Which sessions do a piece of their task, and when: without connections, on a clock that only
// moves when a piece takes time.
#include "server/task_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/server_state.h"
#include "sim/simulation.h"

namespace skep {
namespace {

class NamedTask final : public Task {
 public:
  explicit NamedTask(int patience_ms) : patience_ms_(patience_ms) {}
  bool Step(const ServerCall&) override { return true; }
  int patience_ms() const override { return patience_ms_; }
  void GiveUpPin() override { gave_up = true; }

  bool gave_up = false;

 private:
  const int patience_ms_;
};

class Tasks : public testing::Test {
 protected:
  Tasks() { turn_.Begin(); }

  static ServerState& Opened(ServerState& state) {
    std::string problem;
    EXPECT_TRUE(state.Open(&problem).ok()) << problem;
    return state;
  }
  static ServerOptions Options() {
    ServerOptions options;
    options.logfile = "log";
    return options;
  }

  void Give(Session& session, int patience_ms = 0) {
    session.task = std::make_unique<NamedTask>(patience_ms);
    tasks_.Add(session);
  }
  // Returns the sessions of which a piece was done, in order. Each piece takes `piece_ns`.
  std::vector<Session*> Step(uint64_t piece_ns = 0, bool goes_on = true) {
    std::vector<Session*> stepped;
    tasks_.Step([&](Session& session) {
      stepped.push_back(&session);
      sim_.clock().Advance(piece_ns);
      if (!goes_on) session.task.reset();
      return goes_on;
    });
    return stepped;
  }

  Simulation sim_{1};
  ServerState state_{
      Options(), Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()}, nullptr};
  TurnContext turn_{state_};
  TaskQueue tasks_{sim_.clock(), Opened(state_).keyspaces(), turn_};
  Session a_, b_, c_;
};

// Goal: every task does a piece a turn, in the order of arrival, until it is done.
TEST_F(Tasks, EachDoesAPieceATurn) {
  Give(a_);
  Give(b_);
  EXPECT_EQ(Step(), (std::vector{&a_, &b_}));
  EXPECT_EQ(Step(0, false), (std::vector{&a_, &b_}));
  EXPECT_FALSE(tasks_.has_ready());
  EXPECT_TRUE(Step().empty());
}

// Goal: a turn has half a millisecond for tasks; those that were not reached come first in the next
// one.
TEST_F(Tasks, WhoHadNoTurnComesFirst) {
  Give(a_);
  Give(b_);
  Give(c_);
  EXPECT_EQ(Step(300'000), (std::vector{&a_, &b_}));
  EXPECT_EQ(tasks_.patience_ms(), 0);
  EXPECT_EQ(Step(300'000), (std::vector{&c_, &a_}));
  EXPECT_EQ(Step(300'000), (std::vector{&b_, &c_}));
}

// Goal: the queue waits no longer than the least patient task, and not at all for a new one.
TEST_F(Tasks, TheLeastPatientDecides) {
  Give(a_, 50);
  Give(b_, 5);
  EXPECT_EQ(tasks_.patience_ms(), 0);
  Step();
  EXPECT_EQ(tasks_.patience_ms(), 5);
  b_.closed = true;
  tasks_.DropClosed();
  Step();
  EXPECT_EQ(tasks_.patience_ms(), 50);
}

// Goal: a task whose peer does not read does nothing until its session is resumed.
TEST_F(Tasks, StalledOnesWait) {
  Give(a_);
  Give(b_);
  a_.out.assign(kUnsentMax + 1, 'x');
  EXPECT_EQ(Step(), (std::vector{&b_}));
  EXPECT_TRUE(a_.stalled);
  a_.out.clear();
  EXPECT_EQ(Step(), (std::vector{&b_})) << "nobody has resumed it";
  a_.stalled = false;
  tasks_.Resume(a_);
  EXPECT_EQ(Step(), (std::vector{&b_, &a_}));
}

// Goal: a command that cannot be divided is put off once a turn has had its share of work, first
// come, first served; a datagram never is.
TEST_F(Tasks, WhatCannotBeDividedIsPutOff) {
  EXPECT_FALSE(tasks_.PutsOff(a_));
  turn_.CountWork(kWorkBytesMax + 1);
  EXPECT_TRUE(tasks_.PutsOff(a_));
  EXPECT_TRUE(tasks_.PutsOff(b_));
  EXPECT_TRUE(a_.put_off && a_.paused());
  EXPECT_EQ(tasks_.TakePutOff(), nullptr) << "the turn has worked";
  turn_.Begin();
  EXPECT_EQ(tasks_.TakePutOff(), &a_);
  EXPECT_FALSE(a_.put_off);
  turn_.CountWork(kWorkBytesMax + 1);
  EXPECT_EQ(tasks_.TakePutOff(), nullptr);
  EXPECT_TRUE(tasks_.has_put_off());
  turn_.Begin();
  EXPECT_EQ(tasks_.TakePutOff(), &b_);
  EXPECT_EQ(tasks_.TakePutOff(), nullptr);
  turn_.CountWork(kWorkBytesMax + 1);
  int port = 0;
  a_.port = reinterpret_cast<DatagramPort*>(&port);
  EXPECT_FALSE(tasks_.PutsOff(a_));
}

// Goal: closed sessions are forgotten wherever they wait.
TEST_F(Tasks, ClosedOnesAreForgotten) {
  Give(a_);
  Give(b_);
  b_.out.assign(kUnsentMax + 1, 'x');
  Step();
  turn_.CountWork(kWorkBytesMax + 1);
  EXPECT_TRUE(tasks_.PutsOff(c_));
  for (Session* const session : {&a_, &b_, &c_}) session->closed = true;
  tasks_.DropClosed();
  EXPECT_FALSE(tasks_.has_ready() || tasks_.has_put_off());
  turn_.Begin();
  EXPECT_EQ(tasks_.TakePutOff(), nullptr);
}

// Goal: when memory is scarce, a stalled task whose peer takes nothing gives up its pin, if that
// frees memory; others keep theirs.
TEST_F(Tasks, PinsAreGivenUpWhereMemoryIsScarce) {
  Engine& engine = state_.keyspaces().at(0);
  const auto write_all = [&engine] {
    Batch batch;
    for (int i = 0; i < 2000; ++i) batch.Put(batch.scratch().Copy(std::to_string(i)), "value");
    engine.Execute(batch);
  };
  write_all();
  const auto pin = engine.OpenSnapshot(turn_.now().ms);
  ASSERT_TRUE(pin.has_value());
  write_all();
  ASSERT_GT(engine.Statistics().old_versions, 0u) << "the snapshot holds something back";
  for (Session* const session : {&a_, &b_}) {
    Give(*session);
    session->out.assign(kUnsentMax + 1, 'x');
  }
  Step();
  a_.write_blocked = true;
  const auto* const task_a = static_cast<const NamedTask*>(a_.task.get());
  const auto* const task_b = static_cast<const NamedTask*>(b_.task.get());
  sim_.clock().Advance(10'000'000'000);
  turn_.Begin();
  MemoryBudget& budget = state_.keyspaces().budget();
  tasks_.GiveUpStalledPins();
  EXPECT_FALSE(task_a->gave_up) << "there is no limit";
  budget.set_limit(budget.used() + 1);
  tasks_.GiveUpStalledPins();
  EXPECT_TRUE(task_a->gave_up);
  EXPECT_FALSE(task_b->gave_up);
  engine.CloseSnapshot(*pin);
}

}  // namespace
}  // namespace skep

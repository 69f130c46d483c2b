#include "sim/simulation.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/echo.h"

namespace skep {
namespace {

using End = Simulation::End;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

// An echo server that logs to a disk how much it has echoed, its clients, and a power loss in the
// middle, after which the server starts again from its log.
class EchoCluster {
 public:
  EchoCluster(uint64_t seed, const SimulationOptions& options) : sim_(seed, options) {
    Start();
    for (int i = 0; i < 8; ++i) AddClient();
  }

  End Run() {
    return sim_.RunUntil([this] { return done_ == clients_.size(); }, 60s);
  }
  uint64_t trace_hash() const { return sim_.trace_hash(); }
  uint64_t now_ns() { return sim_.clock().MonotonicNs(); }
  std::string log() { return sim_.disk().ReadAll("log").value_or(""); }
  const auto& clients() const { return clients_; }

 private:
  static constexpr const char* kAddress = "127.0.0.1:7";
  static constexpr uint64_t kBytesBeforeLoss = 100'000;  // of the 160'000 at least that are sent

  void Start() {
    log_ = std::move(*sim_.disk().Open("log", FileSystem::Mode::kReadWrite));
    server_ =
        std::make_unique<EchoServer>(sim_.network(), std::move(*sim_.network().Listen(kAddress)));
    actor_ = sim_.AddActor("server", [this] { return ServerTurn(); });
  }
  bool ServerTurn() {
    if (!server_->Turn(0)) return false;
    const std::string line = std::to_string(server_->bytes_echoed()) + "\n";
    EXPECT_TRUE(log_->Append(line).ok());
    if (sim_.random().Chance(1, 4)) {
      EXPECT_TRUE(log_->Sync().ok());
    }
    if (!power_lost_ && server_->bytes_echoed() > kBytesBeforeLoss) {
      power_lost_ = true;
      sim_.At(sim_.clock().MonotonicNs(), [this] { LosePower(); });
    }
    return true;
  }
  void LosePower() {
    sim_.RemoveActor(actor_);
    sim_.network().ResetAll();
    server_.reset();
    sim_.disk().Crash();
    Start();
  }
  void AddClient() {
    auto stream = sim_.network().Connect(kAddress, 0);
    ASSERT_TRUE(stream);
    clients_.push_back(std::make_unique<EchoClient>(std::move(*stream), sim_.random(),
                                                    20'000 + sim_.random().Below(100'000)));
    EchoClient* const client = clients_.back().get();
    sim_.AddActor("client", [this, client] {
      const bool moved = client->Move();
      done_ += moved && client->done();
      return moved;
    });
  }

  Simulation sim_;
  std::unique_ptr<File> log_;
  std::unique_ptr<EchoServer> server_;
  Simulation::ActorId actor_ = 0;
  std::vector<std::unique_ptr<EchoClient>> clients_;
  size_t done_ = 0;
  bool power_lost_ = false;
};

struct Record {
  explicit Record(uint64_t seed) {
    SimulationOptions options;
    options.network.resets_ppm = 1'000;
    EchoCluster cluster(seed, options);
    end = cluster.Run();
    trace_hash = cluster.trace_hash();
    now_ns = cluster.now_ns();
    log = cluster.log();
    for (const auto& client : cluster.clients()) {
      received.push_back(client->received());
      errors.push_back(client->error());
    }
  }
  friend bool operator==(const Record&, const Record&) = default;

  End end;
  uint64_t trace_hash;
  uint64_t now_ns;
  std::string log;
  std::vector<std::string> received;
  std::vector<int> errors;
};

// Goal: one seed is one run, to the last byte; another seed is another.
// Method: a server, clients, a disk, resets and a power loss; every seed runs twice. Memory that is
// held between the runs moves all later objects, so that anything ordered by address is found.
TEST(Simulation, SeedIsTheRun) {
  const uint64_t first = std::random_device{}();
  std::set<uint64_t> hashes;
  std::vector<std::unique_ptr<char[]>> held;
  for (uint64_t seed = first; seed < first + 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Record run(seed);
    EXPECT_EQ(run.end, End::kDone);
    for (size_t bytes = 8; bytes < 4'096; bytes += 24) held.emplace_back(new char[bytes]);
    EXPECT_TRUE(run == Record(seed));
    hashes.insert(run.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 10);
}

// Goal: a client gets back what it sent, or a prefix of it and an error.
TEST(Simulation, EchoSurvivesResetsAndAPowerLoss) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  EchoCluster cluster(seed, {});
  ASSERT_EQ(cluster.Run(), End::kDone);
  size_t cut = 0;
  for (const auto& client : cluster.clients()) {
    EXPECT_TRUE(client->sent().starts_with(client->received()));
    EXPECT_TRUE(client->error() != 0 || client->received() == client->sent());
    cut += client->error() != 0;
  }
  EXPECT_GT(cut, 0);  // at least by the power loss
}

// Goal: the seed alone chooses among the actors that can run.
TEST(Simulation, SeedChoosesTheOrderOfSteps) {
  const auto order = [](uint64_t seed) {
    Simulation sim(seed);
    std::string steps;
    for (const char name : {'a', 'b', 'c'}) {
      sim.AddActor(std::string(1, name), [&steps, name] { return steps += name, true; });
    }
    EXPECT_EQ(sim.RunUntil([&] { return steps.size() == 30; }, 1s), End::kDone);
    return steps;
  };
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(order(seed), order(seed));
    for (const char name : {'a', 'b', 'c'}) EXPECT_NE(order(seed).find(name), std::string::npos);
    orders.insert(order(seed));
  }
  EXPECT_EQ(orders.size(), 20);
}

// Goal: an actor that does nothing is run again only when something has happened (S1), and when
// nothing ever will, the run ends.
TEST(Simulation, IdleActorsWaitForEachOther) {
  Simulation sim(1);
  int left = 3, idle_steps = 0;
  sim.AddActor("waits", [&] { return ++idle_steps, false; });
  sim.AddActor("works", [&] { return left > 0 && left-- > 0; });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_EQ(left, 0);
  EXPECT_GE(idle_steps, 1);
  EXPECT_LE(idle_steps, 4);  // at first, and after each of the three other steps
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_LE(idle_steps, 4);
}

TEST(Simulation, WakeMakesAnIdleActorRun) {
  Simulation sim(1);
  const auto poller = sim.network().NewPoller();
  int steps = 0;
  sim.AddActor("waits", [&] { return ++steps, false; });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_EQ(steps, 1);
  poller->Wake();
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_EQ(steps, 2);
}

// Goal: an event loop that waits with a timeout gets its turn when the timeout is over.
TEST(Simulation, TimeoutsOfPollersGiveTurns) {
  Simulation sim(1);
  const auto poller = sim.network().NewPoller();
  const uint64_t start = sim.clock().MonotonicMs();
  std::set<uint64_t> turns_ms;
  sim.AddActor("loop", [&] {
    turns_ms.insert(sim.clock().MonotonicMs() - start);
    return !poller->Wait(100).empty();
  });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 350ms), End::kTimeLimit);
  EXPECT_EQ(turns_ms, (std::set<uint64_t>{0, 100, 200, 300}));
  EXPECT_EQ(sim.clock().MonotonicMs() - start, 350);
}

TEST(Simulation, BusyActorsDoNotStopTime) {
  Simulation sim(1);
  sim.AddActor("busy", [] { return true; });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1ms), End::kTimeLimit);
}

TEST(Simulation, EventsRunInOrderAtTheirTimes) {
  Simulation sim(1);
  const uint64_t start = sim.clock().MonotonicNs();
  std::string order;
  std::vector<uint64_t> times;
  const auto event = [&](char name) {
    return [&, name] {
      order += name;
      times.push_back(sim.clock().MonotonicNs() - start);
    };
  };
  sim.At(start + 20, event('c'));
  sim.At(start + 10, event('a'));
  sim.At(start + 10, event('b'));
  sim.At(start + 15, [&] { sim.At(start + 17, event('!')); });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_EQ(order, "ab!c");
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 10, 17, 20}));
}

TEST(Simulation, ActorsComeAndGoFromSteps) {
  Simulation sim(1);
  int child_steps = 0;
  Simulation::ActorId parent = 0;
  parent = sim.AddActor("parent", [&] {
    for (int i = 0; i < 100; ++i) {
      sim.AddActor("child", [&child_steps] { return ++child_steps, false; });
    }
    sim.RemoveActor(parent);
    return true;
  });
  EXPECT_EQ(sim.RunUntil([] { return false; }, 1s), End::kIdle);
  EXPECT_EQ(child_steps, 100);
}

TEST(Trace, TellsRunsApart) {
  using Event = Trace::Event;
  Trace a, b;
  a.Note(Event::kRead, 1, 2);
  b.Note(Event::kRead, 2, 1);
  EXPECT_NE(a.hash(), b.hash());
  a.Note(Event::kRead, 2, 1);
  b.Note(Event::kRead, 1, 2);
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_NE(Trace::Of("ab"), Trace::Of("ba"));
  EXPECT_NE(Trace::Of(""), Trace::Of(std::string_view("\0", 1)));

  const uint64_t events = a.events();
  a.Mix(Event::kStep);
  EXPECT_EQ(a.events(), events);
}

}  // namespace
}  // namespace skep

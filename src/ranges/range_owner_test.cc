// Servers that know a map of ranges, and move ranges, beside a simulated coordinator.
#include "ranges/range_owner.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/memory_budget.h"
#include "engine/forwarding_engine.h"
#include "model/model_engine.h"
#include "sim/seeds.h"
#include "sim/sim_coordinator_world_test.h"

namespace skep::ranges {
namespace {

using Phase = RangeMap::Phase;

constexpr uint64_t kMs = 1'000'000;

// An engine of which a test may do something in the middle of a batch.
class MeddledEngine final : public ForwardingEngine {
 public:
  explicit MeddledEngine(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}
  Version Execute(Batch& batch) override {
    const auto meddle = std::exchange(meddle_, nullptr);
    if (meddle) meddle();
    const Version ticket = inner().Execute(batch);
    gate_.Release(inner().gate().released());
    return ticket;
  }
  void Release() override { gate_.Release(inner().gate().released()); }
  void MeddleOnce(std::function<void()> meddle) { meddle_ = std::move(meddle); }

 private:
  std::function<void()> meddle_;
};

// Servers "s0:1", "s1:1" ... of the map "m", in one thread.
class World {
 public:
  static constexpr uint32_t kSessionMs = 1000;

  // Keeps the newest session of its server, so that a test can part it from the service.
  struct Service final : Coordinator {
    explicit Service(SimCoordinator& all) : inner(all) {}
    Result<std::unique_ptr<CoordinatorSession>> Open(
        const CoordinatorSessionOptions& options) override {
      auto opened = inner.Open(options);
      session = opened->get();
      return opened;
    }
    SimCoordinator& inner;
    CoordinatorSession* session = nullptr;
  };
  struct Server {
    explicit Server(SimCoordinator& all) : service(all) {}
    Service service;
    MemoryBudget budget;
    MeddledEngine engine{std::make_unique<ModelEngine>(EngineOptions{.budget = &budget})};
    std::unique_ptr<RangeOwner> owner;
  };

  explicit World(size_t servers, uint64_t seed = 1, SimCoordinatorOptions options = {})
      : sim(seed, options), client(sim.Connect(60'000)) {
    for (size_t i = 0; i < servers; ++i) servers_.emplace_back(sim.service);
    for (size_t i = 0; i < servers; ++i) Start(i);
  }

  static std::string NameOf(size_t server) { return "s" + std::to_string(server) + ":1"; }
  RangeOwner& owner(size_t server) { return *servers_[server].owner; }
  MeddledEngine& engine(size_t server) { return servers_[server].engine; }
  void Kill(size_t server) { servers_[server].owner.reset(); }
  void Start(size_t server) {
    servers_[server].owner = std::make_unique<RangeOwner>(
        RangeOwnerOptions{.name = "m", .self = NameOf(server), .session_ms = kSessionMs},
        servers_[server].service, sim.clock, servers_[server].engine,
        [this, server](const RangeToCopy& range) { return Begin(server, range); });
  }

  // ---- The map, by a client that waits

  void Make(const RangeMap& map) {
    CoordinatorOutcome outcome = CoordinatorOutcome::kNotSent;
    while (outcome != CoordinatorOutcome::kDone && outcome != CoordinatorOutcome::kExists) {
      client->Create(1, "/skep-ranges", "", CoordinatorNode::kPersistent);
      client->Create(2, MapPathOf("m"), map.Encode(), CoordinatorNode::kPersistent);
      outcome = Await(2).outcome;
    }
  }
  RangeMap Map() {
    CoordinatorEvent event;
    do {
      client->Confirm(0);
      client->Get(3, MapPathOf("m"), CoordinatorWatch::kNone);
      event = Await(3);
    } while (event.outcome != CoordinatorOutcome::kDone);
    RangeMap map;
    EXPECT_TRUE(RangeMap::Decode(event.bytes, &map));
    map.version = event.version;
    return map;
  }
  bool Replace(const RangeMap& map) {
    client->Set(4, MapPathOf("m"), map.Encode(), map.version);
    return Await(4).outcome == CoordinatorOutcome::kDone;
  }
  Status BeginMove(std::string_view lower, size_t server) {
    RangeMap map = Map();
    const Status status = map.BeginMove(lower, NameOf(server));
    EXPECT_TRUE(!status.ok() || Replace(map));
    return status;
  }

  // ---- Time

  void Step() {
    sim.Pass();
    for (Server& server : servers_) {
      if (server.owner != nullptr && !stopped_.contains(server.owner.get())) server.owner->Turn();
    }
  }
  void Run(uint64_t ms) {
    const uint64_t end_ns = sim.Now() + ms * kMs;
    while (sim.Now() < end_ns) Step();
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    for (int steps = 0; steps < 10'000; ++steps) {
      if (condition()) return true;
      Step();
    }
    return false;
  }
  void SetLink(size_t server, SimCoordinatorLink link) {
    sim.service.SetLink(*servers_[server].service.session, link);
  }
  void Stop(size_t server) { stopped_.insert(&owner(server)); }
  void Resume(size_t server) { stopped_.erase(&owner(server)); }

  // ---- Operations at one server

  Outcome Do(size_t server, const Request& request) {
    batch.Clear();
    batch.Add(request);
    owner(server).Execute(batch);
    return batch.outcome(0);
  }
  Outcome Get(size_t server, std::string_view key) {
    return Do(server, {.op = Op::kGet, .key = key});
  }
  Outcome Put(size_t server, std::string_view key, std::string_view value) {
    return Do(server, {.op = Op::kPut, .key = key, .value = value});
  }
  uint64_t ItemsAt(size_t server) { return engine(server).Statistics().items; }

  SimCoordinatorWorld sim;
  std::unique_ptr<CoordinatorSession> client;
  Batch batch;
  std::function<void()> before_copy;  // called once
  int copies = 0;
  uint64_t copy_ns = 0;  // how long a copy takes

 private:
  // The client's session may not be connected, or the service may have ended it.
  CoordinatorEvent Await(uint64_t token) {
    sim.Pass();
    const CoordinatorEvent event = sim.Await(*client, token);
    if (client->state() == CoordinatorSession::State::kExpired) client = sim.Connect(60'000);
    return event;
  }

  // Copies by what a client may do at the other server, when the time has passed.
  class Copy final : public RangeCopy {
   public:
    Copy(World& world, size_t server, RangeToCopy range)
        : world_(world),
          server_(server),
          range_(std::move(range)),
          done_ns_(world.sim.Now() + world.copy_ns) {
      result_ = Run();
    }
    std::optional<Status> Poll() override {
      if (world_.sim.Now() < done_ns_) return std::nullopt;
      return result_;
    }

   private:
    Status Run() {
      Batch scan;
      scan.Scan(range_.upper ? Range::Between(range_.lower, *range_.upper)
                             : Range::From(range_.lower));
      for (size_t from = 0; from < world_.servers_.size(); ++from) {
        if (NameOf(from) == range_.from) world_.owner(from).Execute(scan);
      }
      if (scan.outcome(0).verdict != Verdict::kDone) return scan.outcome(0).status;
      Batch puts;
      for (const Item& item : scan.items(0)) puts.Put(item.key, item.value);
      if (!puts.empty()) world_.engine(server_).Execute(puts);
      return {};
    }

    World& world_;
    const size_t server_;
    const RangeToCopy range_;
    const uint64_t done_ns_;
    Status result_;
  };

  std::unique_ptr<RangeCopy> Begin(size_t server, const RangeToCopy& range) {
    ++copies;
    const auto before = std::exchange(before_copy, nullptr);
    if (before) before();
    return std::make_unique<Copy>(*this, server, range);
  }

  std::deque<Server> servers_;
  std::set<RangeOwner*> stopped_;
};

const RangeMap kTwo = {
    .entries = {{.lower = "", .target = "s0:1"}, {.lower = "m", .target = "s1:1"}}};

bool Serves(World& world, size_t server, std::string_view key) {
  return world.Get(server, key).verdict != Verdict::kRefused;
}
Code CodeOf(const Outcome& outcome) { return outcome.status.code(); }

TEST(RangeOwnerTest, ServesWhatTheMapSays) {
  World world(2);
  EXPECT_EQ(CodeOf(world.Get(0, "a")), Code::kUnavailable) << "there is no map yet";
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  EXPECT_EQ(world.Put(0, "a", "1").verdict, Verdict::kDone);
  EXPECT_EQ(CodeOf(world.Put(1, "a", "2")), Code::kMoved);
  world.Run(10'000);
  EXPECT_TRUE(Serves(world, 0, "a")) << "leases are renewed";
}

TEST(RangeOwnerTest, OneBatchOfSeveralRanges) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  Batch batch;
  batch.Put("a", "1");
  batch.Put("x", "2");
  batch.Get("a");
  world.owner(0).Execute(batch);
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(CodeOf(batch.outcome(1)), Code::kMoved);
  EXPECT_EQ(batch.outcome(2).value, "1");
  Batch atomic(Batch::Kind::kAtomic);
  atomic.Put("a", "3");
  atomic.Put("x", "4");
  world.owner(0).Execute(atomic);
  EXPECT_FALSE(atomic.applied());
  EXPECT_EQ(world.Get(0, "a").value, "1");
}

TEST(RangeOwnerTest, AFloorBelowItsRangesIsNotFound) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "x"); }));
  Batch left;  // as a copy that was broken off has left them
  left.Put("b", "foreign");
  world.engine(1).Execute(left);
  for (const char* const key : {"p", "q", "r"}) world.Put(1, key, "own");
  const auto scan = [&](std::string_view key, uint32_t limit) {
    Request request = {.op = Op::kScan,
                       .flags = Request::kSeekFloor | Request::kNoUpperBound,
                       .limit = limit,
                       .key = key};
    world.Do(1, request);
    std::string keys;
    for (const Item& item : world.batch.items(0)) keys += std::string(item.key) + " ";
    return keys;
  };
  EXPECT_EQ(scan("n", 3), "p q ");
  EXPECT_EQ(scan("n", kNoLimit), "p q r ");
  EXPECT_EQ(scan("q1", kNoLimit), "q r ");
  EXPECT_EQ(scan("n", 1), "");
  EXPECT_TRUE(world.batch.outcome(0).more);
  EXPECT_GE(world.batch.outcome(0).value, "m");
}

TEST(RangeOwnerTest, MovesARange) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  for (const char* const key : {"a", "f", "g", "l", "lz"}) world.Put(0, key, key);
  world.Put(1, "x", "x");
  Batch stale;  // an earlier copy has left it
  stale.Put("h", "stale");
  world.engine(1).Execute(stale);
  bool was_read_only = false;
  world.before_copy = [&] {
    was_read_only = CodeOf(world.Put(0, "g", "new")) == Code::kUnavailable &&
                    world.Get(0, "g").value == "g" &&
                    world.Put(0, "a", "A").verdict == Verdict::kDone;
  };
  ASSERT_TRUE(world.BeginMove("g", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "g"); }));
  EXPECT_TRUE(was_read_only);
  EXPECT_EQ(CodeOf(world.Get(0, "g")), Code::kMoved);
  EXPECT_EQ(world.Get(1, "lz").value, "lz");
  EXPECT_EQ(world.Get(1, "h").verdict, Verdict::kAbsent);
  EXPECT_EQ(world.Get(0, "f").value, "f");
  world.Run(100);
  EXPECT_EQ(world.ItemsAt(0), 2u) << "the keys are deleted where they were";
  EXPECT_EQ(world.ItemsAt(1), 4u);
  const RangeMap after = {.entries = {{.lower = "", .target = "s0:1"},
                                      {.lower = "g", .target = "s1:1"},
                                      {.lower = "m", .target = "s1:1"}}};
  RangeMap merged = after;
  merged.Merge();
  EXPECT_EQ(world.Map(), merged);
  // And back.
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "A");
}

// Goal: a write that is under way when the range becomes read-only is in the copy.
TEST(RangeOwnerTest, WaitsForBatchesUnderWay) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.engine(0).MeddleOnce([&] {
    ASSERT_TRUE(world.BeginMove("", 1).ok());
    world.Run(500);
    EXPECT_EQ(world.copies, 0);
  });
  EXPECT_EQ(world.Put(0, "a", "1").verdict, Verdict::kDone);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

// Goal: nobody serves a range while a read of it by the older map is under way.
TEST(RangeOwnerTest, OpensBehindReadsUnderWay) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  ASSERT_TRUE(Serves(world, 0, "a")) << "it is read-only";
  world.engine(0).MeddleOnce([&] {
    world.Run(500);
    EXPECT_FALSE(Serves(world, 1, "a"));
  });
  world.Get(0, "a");
  EXPECT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
}

// Goal: a server that is cut off stops before its range is given to another one, and says nothing
// that it has done without a lease.
TEST(RangeOwnerTest, StopsWithItsLease) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.Stop(0);  // its thread, so that it asks for no lease
  const uint64_t stopped_ns = world.sim.Now();
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  while (Serves(world, 0, "a")) {
    ASSERT_FALSE(Serves(world, 1, "a"));
    world.Step();
  }
  EXPECT_LE(world.sim.Now() - stopped_ns, World::kSessionMs * kMs * 3 / 4 + 5 * kMs);
  EXPECT_EQ(CodeOf(world.Get(0, "a")), Code::kUnavailable);
}

// Goal: a server of the service that is cut off from the majority gives no lease.
TEST(RangeOwnerTest, AMinorityGivesNoLease) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Run(
      200);  // it has told its version: a request that a majority must answer is never answered
  world.SetLink(0, SimCoordinatorLink::kMinority);
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  while (!Serves(world, 1, "a")) world.Step();
  EXPECT_FALSE(Serves(world, 0, "a"));
}

TEST(RangeOwnerTest, TellsNothingThatWasDoneAfterItsLease) {
  World world(1);
  world.Make({.entries = {{.lower = "", .target = "s0:1"}}});
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a"); }));
  world.Stop(0);
  world.engine(0).MeddleOnce([&] { world.Run(World::kSessionMs); });
  EXPECT_EQ(CodeOf(world.Put(0, "a", "1")), Code::kUnavailable);
}

// Goal: the range of a server that is gone can be given away, once its session has ended.
TEST(RangeOwnerTest, OpensWhenTheOtherIsGone) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  RangeMap map = world.Map();
  map.entries[0] = {.lower = "", .target = "s1:1", .phase = Phase::kOpening, .peer = "s0:1"};
  ASSERT_TRUE(world.Replace(map));
  world.Kill(0);
  EXPECT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
}

// Goal: a range that went back to its server while it was copied is copied anew.
TEST(RangeOwnerTest, ACopyOfAnEarlierMoveIsNotUsed) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "old");
  world.copy_ns = 200 * kMs;
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  world.Stop(1);
  RangeMap map = world.Map();
  ASSERT_TRUE(map.CancelMove("").ok());
  ASSERT_TRUE(world.Replace(map));
  ASSERT_TRUE(world.RunUntil([&] { return world.Put(0, "a", "new").verdict == Verdict::kDone; }));
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  world.Run(100);
  world.Resume(1);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "new");
  EXPECT_EQ(world.copies, 2);
}

TEST(RangeOwnerTest, ACancelledMoveLeavesNothing) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.copy_ns = 1000 * kMs;
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return world.copies == 1; }));
  EXPECT_EQ(world.ItemsAt(1), 1u);
  EXPECT_EQ(world.BeginMove("", 1).code(), Code::kUnavailable);
  RangeMap map = world.Map();
  ASSERT_TRUE(map.CancelMove("").ok());
  ASSERT_TRUE(world.Replace(map));
  world.Run(2000);
  EXPECT_EQ(world.ItemsAt(1), 0u);
  EXPECT_EQ(world.Put(0, "a", "2").verdict, Verdict::kDone);
}

TEST(RangeOwnerTest, AServerThatComesBackIsCopied) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.Stop(0);
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  world.Run(2 * World::kSessionMs);  // the service has ended its session
  EXPECT_EQ(world.copies, 0);
  world.Resume(0);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

TEST(RangeOwnerTest, ACopyThatFailsIsBegunAgain) {
  World world(2);
  world.Make(kTwo);
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 0, "a") && Serves(world, 1, "x"); }));
  world.Put(0, "a", "1");
  world.before_copy = [&] {
    world.engine(0).MeddleOnce(
        [&] { world.Stop(0), world.Run(World::kSessionMs), world.Resume(0); });
  };
  ASSERT_TRUE(world.BeginMove("", 1).ok());
  ASSERT_TRUE(world.RunUntil([&] { return Serves(world, 1, "a"); }));
  EXPECT_EQ(world.copies, 2);
  EXPECT_EQ(world.Get(1, "a").value, "1");
}

// Goal: whatever happens to servers, their sessions and the service while ranges are moved, a key
// has the value that was written last, wherever it is read.
// Method: steps of one thread, so what is done in a step is done at one instant, and an answer is
// right if it is the model's.
void RunHistory(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
  constexpr size_t kServers = 3;
  World world(kServers, seed,
              {.slow_ppm = 5000,
               .slow_ns_max = 700 * kMs,
               .lag_ns_max = 300 * kMs,
               .losses_ppm = 3000,
               .partitions_ppm = 1000});
  SeededRandom random(seed);
  world.Make({.entries = {{.lower = "", .target = "s0:1"},
                          {.lower = "h", .target = "s1:1"},
                          {.lower = "p", .target = "s2:1"}}});
  std::map<std::string, std::string> model;
  uint64_t answers = 0;
  uint64_t written = 0;
  uint64_t moves = 0;
  std::optional<size_t> down;
  for (int step = 0; step < 4000; ++step) {
    world.Step();
    const std::string key(1, static_cast<char>('a' + random.Below(26)));
    const size_t server = random.Below(kServers);
    if (step % 400 == 399) {
      world.copy_ns = random.Below(400) * kMs;
      RangeMap map = world.Map();
      if (map.BeginMove(key, World::NameOf(random.Below(kServers))).ok())
        moves += world.Replace(map);
    }
    if (random.Below(500) == 0 && !down) {
      down = server;
      world.Stop(server);
    } else if (random.Below(100) == 0 && down) {
      world.Resume(*std::exchange(down, std::nullopt));
    }
    const Outcome got = world.Get(server, key);
    if (got.verdict != Verdict::kRefused) {
      ++answers;
      const auto is = model.find(key);
      const bool is_right = is == model.end()
                                ? got.verdict == Verdict::kAbsent
                                : got.verdict == Verdict::kDone && got.value == is->second;
      ASSERT_TRUE(is_right) << key << " at step " << step;
    }
    const size_t writer = random.Below(kServers);
    const std::string value = std::to_string(++written);
    if (world.Put(writer, key, value).verdict == Verdict::kDone) model[key] = value;
  }
  EXPECT_GT(answers, 200u);
  EXPECT_GT(moves, 0u);
  if (down) world.Resume(*down);
  const auto is_at_rest = [&] {
    for (const RangeMap::Entry& entry : world.Map().entries) {
      if (entry.phase != Phase::kServed) return false;
    }
    return true;
  };
  EXPECT_TRUE(world.RunUntil(is_at_rest)) << "every move ends";
}

TEST(RangeOwnerTest, AnyHistory) {
  for (const uint64_t seed : Seeds(30)) {
    RunHistory(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace skep::ranges

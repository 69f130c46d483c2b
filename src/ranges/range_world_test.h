// range_world_test.h: servers that know a map of ranges, beside a simulated coordinator, in one
// thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory_budget.h"
#include "engine/forwarding_engine.h"
#include "model/model_engine.h"
#include "ranges/range_owner.h"
#include "sim/sim_coordinator_world_test.h"

namespace skep::ranges {

inline constexpr uint64_t kMs = 1'000'000;

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
class RangeWorld {
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

  explicit RangeWorld(size_t servers, uint64_t seed = 1, SimCoordinatorOptions options = {})
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
    Copy(RangeWorld& world, size_t server, RangeToCopy range)
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

    RangeWorld& world_;
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

}  // namespace skep::ranges

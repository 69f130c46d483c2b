// The simulated coordination service, for the conformance tests.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <utility>

#include "base/check.h"
#include "sim/sim_clock.h"
#include "sim/sim_coordinator.h"
#include "sim/trace.h"
#include "tests/coordinator/coordinator_world.h"

namespace skep {
namespace {

class SimWorld final : public CoordinatorWorld {
 public:
  ~SimWorld() override {
    if (testing::Test::HasFailure()) std::cout << "the coordinator's seed: " << seed_ << "\n";
  }

  std::unique_ptr<CoordinatorSession> Open(const CoordinatorSessionOptions& options) override {
    return *service_.Open(options);
  }

  void SetLink(CoordinatorSession& session, Link link) override {
    constexpr SimCoordinatorLink kLinks[] = {SimCoordinatorLink::kOpen, SimCoordinatorLink::kParted,
                                             SimCoordinatorLink::kOneWay,
                                             SimCoordinatorLink::kParted};
    service_.SetLink(session, kLinks[static_cast<size_t>(link)]);
    if (link == Link::kOpen) service_.Reset(session);
  }

  std::unique_ptr<OtherProcess> StartProcess(const std::string& path, uint32_t timeout_ms) override;

  void FailService() override {
    service_.Stop();
    clock_.Advance(100'000'000);
    service_.Start();
  }

  bool PassTime() override {
    if (!clock_.AdvanceToReminder()) clock_.Advance(1'000'000);
    return clock_.MonotonicNs() < SimClock::kStartNs + kLimitNs;
  }
  uint64_t NowNs() override { return clock_.MonotonicNs(); }
  void Wake() override {}

  SimCoordinator& service() { return service_; }

 private:
  static constexpr uint64_t kLimitNs = 1'000'000'000'000;

  const uint64_t seed_ = std::random_device{}();
  SimClock clock_;
  Trace trace_;
  SimCoordinator service_{seed_, clock_, trace_};
};

class SimProcess final : public OtherProcess {
 public:
  SimProcess(SimWorld& world, std::unique_ptr<CoordinatorSession> session)
      : world_(world), session_(std::move(session)) {}
  void Kill() override {
    world_.SetLink(*session_, CoordinatorWorld::Link::kParted);
    session_.reset();
  }

 private:
  SimWorld& world_;
  std::unique_ptr<CoordinatorSession> session_;
};

std::unique_ptr<OtherProcess> SimWorld::StartProcess(const std::string& path, uint32_t timeout_ms) {
  auto session = Open({.timeout_ms = timeout_ms});
  const auto wait_for = [&](CoordinatorEvent::Kind kind) {
    while (true) {
      for (const CoordinatorEvent& event : session->TakeEvents()) {
        if (event.kind == kind) return event;
      }
      SKEP_CHECK(PassTime());
    }
  };
  wait_for(CoordinatorEvent::Kind::kConnected);
  session->Create(1, path, "", CoordinatorNode::kEphemeral);
  SKEP_CHECK(wait_for(CoordinatorEvent::Kind::kAnswer).outcome == CoordinatorOutcome::kDone);
  return std::make_unique<SimProcess>(*this, std::move(session));
}

}  // namespace

std::vector<CoordinatorWorldInfo> CoordinatorWorlds() {
  return {{.name = "Simulated",
           .missing = [] { return std::string(); },
           .make = [] { return std::make_unique<SimWorld>(); }}};
}

}  // namespace skep

// Leases of roles in a simulated coordination service: the argument of S4 of base/coordinator.h,
// and what happens to those that leave out a part of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "sim/seeds.h"
#include "sim/sim_coordinator.h"
#include "sim/sim_coordinator_world_test.h"

namespace skep {
namespace {

using Event = CoordinatorEvent;
using Link = SimCoordinatorLink;
using Outcome = CoordinatorOutcome;
using State = CoordinatorSession::State;
using World = SimCoordinatorWorld;

constexpr uint64_t kMs = 1'000'000;

// What a process that wants a role holds to be its right to act.
enum class Rule {
  kLease,                // that of S4
  kWithoutWaiting,       // acts as soon as the node is its own
  kWhileConnected,       // acts until it is told that the session is not connected
  kAnyAnswerIsAContact,  // takes the answer of one server for that of the majority
};

// Has the role while the ephemeral node "/role" is its own.
class Process {
 public:
  static constexpr uint64_t kLeaseNs = 500 * kMs;

  Process(World& world, Rule rule) : world_(world), rule_(rule) {}

  CoordinatorSession* session() { return session_.get(); }

  bool Acts() {
    if (!created_ns_) return false;
    const uint64_t now_ns = world_.Now();
    if (rule_ != Rule::kWithoutWaiting && now_ns < *created_ns_ + kLeaseNs) return false;
    if (rule_ == Rule::kWhileConnected) return session_->state() == State::kConnected;
    uint64_t contact_ns = session_->LastContactNs();
    if (rule_ == Rule::kAnyAnswerIsAContact) contact_ns = std::max(contact_ns, answered_ns_);
    return now_ns < contact_ns + kLeaseNs;
  }

  void Step() {
    if (session_ == nullptr || session_->state() == State::kExpired) Reopen();
    for (const Event& event : session_->TakeEvents()) Handle(event);
    if (session_->state() != State::kConnected || is_asking_) return;
    is_asking_ = true;
    asked_ns_ = world_.Now();
    if (!created_ns_) {
      session_->Create(kCreate, "/role", "", CoordinatorNode::kEphemeral);
      session_->Get(kGet, "/role", CoordinatorWatch::kNone);
    } else {
      session_->Get(kGet, "/role", CoordinatorWatch::kNone);
      if (rule_ != Rule::kAnyAnswerIsAContact) session_->Confirm(kConfirm);
    }
  }

 private:
  enum Token : uint64_t { kCreate, kGet, kConfirm };

  void Reopen() {
    session_ = world_.Open(400);
    created_ns_.reset();
    is_asking_ = false;
    answered_ns_ = 0;
  }

  void Handle(const Event& event) {
    if (event.kind != Event::Kind::kAnswer) return;
    if (event.token != kGet) return;
    is_asking_ = false;
    if (event.outcome != Outcome::kDone) return;
    answered_ns_ = asked_ns_;
    if (event.owner == session_->id() && !created_ns_) created_ns_ = world_.Now();
  }

  World& world_;
  const Rule rule_;
  std::unique_ptr<CoordinatorSession> session_;
  std::optional<uint64_t> created_ns_;  // at the latest
  bool is_asking_ = false;
  uint64_t asked_ns_ = 0;
  uint64_t answered_ns_ = 0;
};

struct Acted {
  uint64_t steps = 0;      // in which one process acted
  uint64_t overlaps = 0;   // in which two did
  uint64_t takeovers = 0;  // how often another one than before did
};

// Two processes want the role; their links to the service change all the time.
Acted PlayRoles(uint64_t seed, Rule rule) {
  World world(seed, {.lag_ns_max = 20 * kMs, .losses_ppm = 2'000});
  std::deque<Process> processes;
  for (int i = 0; i < 2; ++i) processes.emplace_back(world, rule);
  Acted acted;
  const Process* last = nullptr;
  for (int step = 0; step < 8000; ++step) {
    world.Pass();
    for (Process& process : processes) {
      process.Step();
      if (!world.random.Chance(1, 150)) continue;
      constexpr Link kLinks[] = {Link::kOpen,   Link::kOpen,   Link::kOpen,
                                 Link::kParted, Link::kOneWay, Link::kMinority};
      world.service.SetLink(*process.session(), kLinks[world.random.Below(std::size(kLinks))]);
    }
    const auto count = std::ranges::count_if(processes, &Process::Acts);
    acted.steps += count > 0;
    acted.overlaps += count > 1;
    const auto who = std::ranges::find_if(processes, &Process::Acts);
    if (who == processes.end()) continue;
    acted.takeovers += std::exchange(last, &*who) != &*who;
  }
  return acted;
}

Acted PlayRoles(const SeedRange& seeds, Rule rule) {
  Acted sum;
  for (const uint64_t seed : seeds) {
    const Acted acted = PlayRoles(seed, rule);
    EXPECT_TRUE(rule != Rule::kLease || acted.overlaps == 0) << "seed " << seed;
    sum.steps += acted.steps;
    sum.overlaps += acted.overlaps;
    sum.takeovers += acted.takeovers;
  }
  return sum;
}

// S4: a lease that counts from the last contact is never held twice, and is held most of the time.
TEST(SimCoordinator, ALeaseFromTheLastContactIsHeldOnce) {
  const SeedRange seeds = Seeds(50);
  const Acted acted = PlayRoles(seeds, Rule::kLease);
  EXPECT_EQ(acted.overlaps, 0U);
  if (!AreMany(seeds)) return;
  EXPECT_GT(acted.takeovers, seeds.size());
  EXPECT_GT(acted.steps, 0U);
}

// Goal: the simulation is bad enough: what leaves out a part of the argument of S4 is found.
TEST(SimCoordinator, LeasesThatAreWrongAreFound) {
  const SeedRange seeds = Seeds(100);  // the first one that finds it ends the search
  for (const Rule rule :
       {Rule::kWithoutWaiting, Rule::kWhileConnected, Rule::kAnyAnswerIsAContact}) {
    const auto is_found = [&](uint64_t seed) { return PlayRoles(seed, rule).overlaps > 0; };
    EXPECT_TRUE(std::ranges::any_of(seeds, is_found)) << static_cast<int>(rule);
  }
}

}  // namespace
}  // namespace skep

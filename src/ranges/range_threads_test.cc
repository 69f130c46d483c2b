// Threads that use two servers while their ranges are moved from one to the other and back.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_budget.h"
#include "base/sanitized.h"
#include "model/model_engine.h"
#include "ranges/range_owner.h"
#include "sim/sim_coordinator_world_test.h"

namespace skep::ranges {
namespace {

// The simulated time, for threads.
class SharedClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return now_ns_.load(std::memory_order_acquire); }
  uint64_t WallUs() override { return MonotonicNs() / 1000; }
  void Set(uint64_t now_ns) { now_ns_.store(now_ns, std::memory_order_release); }

 private:
  std::atomic<uint64_t> now_ns_{0};
};

// A copy that is made within the call that begins it.
class DoneCopy final : public RangeCopy {
 public:
  explicit DoneCopy(Status status) : status_(status) {}
  std::optional<Status> Poll() override { return status_; }

 private:
  const Status status_;
};

class TwoServers {
 public:
  TwoServers() {
    for (size_t i = 0; i < 2; ++i) {
      owners_[i] = std::make_unique<RangeOwner>(
          RangeOwnerOptions{.name = "m", .self = kNames[i], .session_ms = 1000}, sim_.service,
          clock_, engines_[i],
          [this, i](const RangeToCopy&) { return std::make_unique<DoneCopy>(Copy(i)); });
    }
    client_ = sim_.Connect(60'000);
    client_->Create(1, "/skep-ranges", "", CoordinatorNode::kPersistent);
    client_->Create(2, MapPathOf("m"),
                    RangeMap{.entries = {{.lower = "", .target = "s0:1"}}}.Encode(),
                    CoordinatorNode::kPersistent);
    sim_.Await(*client_, 2);
  }

  RangeOwner& owner(size_t server) { return *owners_[server]; }
  void Step() {
    sim_.Pass();
    clock_.Set(sim_.Now());
    for (const auto& owner : owners_) owner->Turn();
  }
  // Moves all keys to the other server, and waits until it has them. One thread.
  void Move() {
    RangeMap map = Map();
    EXPECT_TRUE(map.BeginMove("", map.entries[0].target == kNames[0] ? kNames[1] : kNames[0]).ok());
    client_->Set(3, MapPathOf("m"), map.Encode(), map.version);
    EXPECT_EQ(sim_.Await(*client_, 3).outcome, CoordinatorOutcome::kDone);
    while (Map().entries[0].phase != RangeMap::Phase::kServed) Step();
    for (int i = 0; i < 100; ++i) Step();
  }

 private:
  static constexpr std::array<const char*, 2> kNames = {"s0:1", "s1:1"};

  RangeMap Map() {
    client_->Confirm(0);
    client_->Get(4, MapPathOf("m"), CoordinatorWatch::kNone);
    const CoordinatorEvent event = sim_.Await(*client_, 4);
    RangeMap map;
    EXPECT_TRUE(RangeMap::Decode(event.bytes, &map));
    map.version = event.version;
    return map;
  }
  Status Copy(size_t to) {
    Batch scan;
    scan.Scan(Range::All());
    owners_[1 - to]->Execute(scan);
    if (scan.outcome(0).verdict != Verdict::kDone) return scan.outcome(0).status;
    Batch puts;
    for (const Item& item : scan.items(0)) puts.Put(item.key, item.value);
    if (!puts.empty()) engines_[to].Execute(puts);
    return {};
  }

  SimCoordinatorWorld sim_{1, {}};
  SharedClock clock_;
  std::array<MemoryBudget, 2> budgets_;
  std::array<ModelEngine, 2> engines_{ModelEngine({.budget = &budgets_[0]}),
                                      ModelEngine({.budget = &budgets_[1]})};
  std::array<std::unique_ptr<RangeOwner>, 2> owners_;
  std::unique_ptr<CoordinatorSession> client_;
};

// Writes and reads a key of its own at both servers until it is stopped.
void Use(TwoServers& servers, const std::string& key, const std::atomic<bool>& stops,
         std::atomic<uint64_t>& answers) {
  uint64_t written = 0;  // certainly
  uint64_t asked = 0;    // perhaps
  for (size_t i = 0; !stops.load(std::memory_order_relaxed); ++i) {
    RangeOwner& owner = servers.owner(i % 2);
    Batch batch;
    const std::string value = std::to_string(asked + 1);
    (i % 4 < 2) ? batch.Put(key, value) : batch.Get(key);
    asked += i % 4 < 2;
    owner.Execute(batch);
    const Outcome& outcome = batch.outcome(0);
    if (outcome.verdict == Verdict::kRefused) continue;
    answers.fetch_add(1, std::memory_order_relaxed);
    if (i % 4 < 2) {
      written = asked;
    } else if (outcome.verdict == Verdict::kAbsent) {
      ASSERT_EQ(written, 0u);
    } else {
      const uint64_t read = std::stoull(std::string(outcome.value));
      ASSERT_GE(read, written);
      ASSERT_LE(read, asked);
      written = read;
    }
  }
}

// Goal: what a thread has written is what it reads, at whichever server it is answered.
TEST(RangeOwnerThreads, ReadTheirWritesWhileRangesMove) {
  TwoServers servers;
  std::atomic<bool> stops = false;
  std::atomic<uint64_t> answers = 0;
  std::vector<std::thread> threads;
  for (const char* const key : {"a", "k", "z"}) {
    threads.emplace_back([&, key] { Use(servers, key, stops, answers); });
  }
  for (int i = 0; i < 300; ++i) servers.Step();
  const int moves = Rounds(100);
  for (int i = 0; i < moves; ++i) servers.Move();
  stops = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(answers, static_cast<uint64_t>(moves));
}

}  // namespace
}  // namespace skep::ranges

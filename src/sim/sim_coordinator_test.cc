// What the simulated coordination service does beyond base/coordinator.h: the same for the same
// seed, and everything that the rules allow, so that a protocol that is wrong is found.
#include "sim/sim_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/seeds.h"
#include "sim/sim_coordinator_world_test.h"

namespace skep {
namespace {

using Event = CoordinatorEvent;
using Link = SimCoordinatorLink;
using Outcome = CoordinatorOutcome;
using State = CoordinatorSession::State;
using World = SimCoordinatorWorld;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

SimCoordinatorOptions Faulty() {
  return {.slow_ppm = 1'000,
          .losses_ppm = 10'000,
          .partitions_ppm = 5'000,
          .partition_ns_max = 2 * kSecond};
}

// A node has a number for each client, and everybody adds to its own by versioned sets. A client
// whose set is kUnknown makes it again (R4), and believes that it was done when it is told so or
// reads so.
class Counter {
 public:
  Counter(World& world, char name) : world_(world), name_(name) {}

  char name() const { return name_; }
  uint64_t done() const { return done_; }
  uint64_t found_done() const { return found_done_; }
  uint64_t found_undone() const { return found_undone_; }
  uint64_t expired() const { return expired_; }

  bool is_settled() const { return !set_ && !is_asking_; }

  // `more`: begins another addition if there is none.
  void Step(bool more) {
    if (session_ == nullptr || session_->state() == State::kExpired) Reopen();
    for (const Event& event : session_->TakeEvents()) Handle(event);
    if (session_->state() != State::kConnected || is_asking_) return;
    if (set_) {
      Ask([&] { session_->Set(0, "/n", set_->bytes, set_->version); });
    } else if (more) {
      Ask([&] { session_->Get(0, "/n", CoordinatorWatch::kNone); });
    }
  }

  // The number of a client in the bytes of the node: "a3 b0 c17 ".
  static uint64_t NumberOf(char name, const std::string& bytes) {
    return std::strtoull(bytes.c_str() + bytes.find(name) + 1, nullptr, 10);
  }

 private:
  struct VersionedSet {
    int32_t version;
    std::string bytes;
  };

  template <typename F>
  void Ask(F ask) {
    is_asking_ = true;
    ask();
  }

  void Reopen() {
    expired_ += session_ != nullptr;
    session_ = world_.Open(400 + static_cast<uint32_t>(world_.random.Below(400)));
    seen_version_ = 0;
  }

  void Handle(const Event& event) {
    if (event.kind != Event::Kind::kAnswer) return;
    is_asking_ = false;
    const bool is_read = std::exchange(is_reading_back_, false) || !set_;
    if (event.outcome == Outcome::kUnknown || event.outcome == Outcome::kNotSent) return;
    is_read ? HandleRead(event) : HandleSet(event);
  }

  void HandleSet(const Event& event) {
    if (event.outcome == Outcome::kDone) {
      EXPECT_EQ(event.version, set_->version + 1);
      ++done_;
      return set_.reset();
    }
    EXPECT_EQ(event.outcome, Outcome::kStale);
    is_reading_back_ = true;
    Ask([&] { session_->Get(0, "/n", CoordinatorWatch::kNone); });
  }

  void HandleRead(const Event& event) {
    ASSERT_EQ(event.outcome, Outcome::kDone);
    EXPECT_GE(event.version, seen_version_);  // R3
    seen_version_ = event.version;
    const uint64_t number = NumberOf(name_, event.bytes);
    if (set_) {
      EXPECT_GT(event.version, set_->version);
      ASSERT_TRUE(number == done_ || number == done_ + 1);
      ++(number == done_ ? found_undone_ : found_done_);
      set_.reset();
      if (number > done_) return static_cast<void>(++done_);
    }
    set_ = {.version = event.version, .bytes = Added(event.bytes)};
  }

  std::string Added(const std::string& bytes) const {
    const size_t begin = bytes.find(name_) + 1;
    const size_t end = bytes.find(' ', begin);
    return bytes.substr(0, begin) + std::to_string(NumberOf(name_, bytes) + 1) + bytes.substr(end);
  }

  World& world_;
  const char name_;
  std::unique_ptr<CoordinatorSession> session_;
  std::optional<VersionedSet> set_;  // not known yet whether it was done
  bool is_asking_ = false;
  bool is_reading_back_ = false;
  int32_t seen_version_ = 0;
  uint64_t done_ = 0;
  uint64_t found_done_ = 0;
  uint64_t found_undone_ = 0;
  uint64_t expired_ = 0;
};

// Always has a watch on the node, and reads it in between.
class Watcher {
 public:
  explicit Watcher(World& world) : world_(world) {}

  int32_t newest_version() const { return newest_version_; }
  uint64_t fired() const { return fired_; }

  void Step() {
    if (session_ == nullptr || session_->state() == State::kExpired) {
      session_ = world_.Open(600);
      watched_version_.reset();
      asked_watch_ = false;
    }
    for (const Event& event : session_->TakeEvents()) Handle(event);
    if (session_->state() != State::kConnected) return;
    if (!watched_version_ && !std::exchange(asked_watch_, true)) {
      session_->Get(kWatchToken, "/n", CoordinatorWatch::kWatch);
    }
    if (world_.random.Chance(1, 4)) session_->Get(kReadToken, "/n", CoordinatorWatch::kNone);
  }

 private:
  static constexpr uint64_t kWatchToken = 1;
  static constexpr uint64_t kReadToken = 2;

  void Handle(const Event& event) {
    if (event.kind == Event::Kind::kChanged) {
      EXPECT_TRUE(watched_version_.has_value());  // W1: once
      watched_version_.reset();
      ++fired_;
    }
    if (event.kind != Event::Kind::kAnswer) return;
    if (event.token == kWatchToken) asked_watch_ = false;
    if (event.outcome != Outcome::kDone) return;
    EXPECT_EQ(event.version, watched_version_.value_or(event.version));  // W2
    if (event.token == kWatchToken) watched_version_ = event.version;
    newest_version_ = std::max(newest_version_, event.version);
  }

  World& world_;
  std::unique_ptr<CoordinatorSession> session_;
  std::optional<int32_t> watched_version_;
  bool asked_watch_ = false;
  int32_t newest_version_ = 0;
  uint64_t fired_ = 0;
};

// What the clients of a run have met.
struct Met {
  uint64_t found_done = 0;
  uint64_t found_undone = 0;
  uint64_t expired = 0;
  uint64_t fired = 0;
};

// Three clients that add, and a watcher.
class Additions {
 public:
  explicit Additions(uint64_t seed) : world_(seed, {}), watcher_(world_) {
    const auto session = world_.Connect(400);
    session->Create(1, "/n", "a0 b0 c0 ", CoordinatorNode::kPersistent);
    world_.Await(*session, 1);
    world_.clock.Advance(SimCoordinatorOptions().lag_ns_max);  // every server knows it
    for (const char name : {'a', 'b', 'c'}) counters_.emplace_back(world_, name);
  }

  // Messages and connections get lost, sessions expire, the service is gone at times.
  void RunFaulty() {
    world_.service.set_options(Faulty());
    for (int step = 0; step < 3000; ++step) {
      if (step % 1000 == 500) world_.service.Stop();
      if (step % 1000 == 600) world_.service.Start();
      Step(true);
    }
    world_.service.set_options({});
  }

  // Everything works again.
  void Settle() {
    const auto all_settled = [&] { return std::ranges::all_of(counters_, &Counter::is_settled); };
    for (int step = 0; step < 10'000 && !all_settled(); ++step) Step(false);
    ASSERT_TRUE(all_settled());
  }

  // The node says what its clients say, and the watcher has heard of it.
  void Check() {
    const auto reader = world_.Connect(10'000);
    reader->Confirm(0);
    reader->Get(1, "/n", CoordinatorWatch::kNone);
    const Event last = world_.Await(*reader, 1);
    uint64_t sum = 0;
    for (const Counter& counter : counters_) {
      EXPECT_EQ(Counter::NumberOf(counter.name(), last.bytes), counter.done()) << counter.name();
      sum += counter.done();
    }
    EXPECT_GT(sum, 0U);
    EXPECT_EQ(static_cast<uint64_t>(last.version), sum);
    for (int step = 0; step < 10'000 && watcher_.newest_version() < last.version; ++step) {
      Step(false);
    }
    EXPECT_EQ(watcher_.newest_version(), last.version);
  }

  void AddTo(Met& met) const {
    for (const Counter& counter : counters_) {
      met.found_done += counter.found_done();
      met.found_undone += counter.found_undone();
      met.expired += counter.expired();
    }
    met.fired += watcher_.fired();
  }

 private:
  void Step(bool more) {
    world_.Pass();
    for (Counter& counter : counters_) counter.Step(more);
    watcher_.Step();
  }

  World world_;
  std::deque<Counter> counters_;
  Watcher watcher_;
};

// Goal: whatever gets lost, additions are done as often as their clients believe (R4), reads never
// go back (R3), and a watch is never silent (W1, W2, W3).
TEST(SimCoordinator, VersionedSetsAreDoneOnce) {
  const SeedRange seeds = Seeds(100);
  Met met;
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Additions additions(seed);
    additions.RunFaulty();
    additions.Settle();
    additions.Check();
    additions.AddTo(met);
    if (HasFailure()) return;
  }
  if (!AreMany(seeds)) return;
  EXPECT_GT(met.found_done, 0U);
  EXPECT_GT(met.found_undone, 0U);
  EXPECT_GT(met.expired, 0U);
  EXPECT_GT(met.fired, 0U);
}

// R4: what was kUnknown and is not done when the session is connected again is never done.
// Method: a request is under way for longer than its client waits, so it arrives, by the connection
// that was given up, when the session has another one.
TEST(SimCoordinator, WhatIsUnknownIsDoneBeforeTheNextConnectionOrNever) {
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    World world(seed, {});
    const auto session = world.Connect(2000);
    world.service.set_options({.delay_ns_min = 5 * kSecond, .delay_ns_max = 5 * kSecond});
    session->Create(1, "/late", "", CoordinatorNode::kPersistent);
    world.service.set_options({});
    world.service.SetLink(*session, Link::kOneWay);
    EXPECT_EQ(world.Await(*session, 1).outcome, Outcome::kUnknown);
    world.service.SetLink(*session, Link::kOpen);
    while (session->state() != State::kConnected) {
      world.Pass();
      session->TakeEvents();
    }
    for (const uint64_t token : {2, 3}) {
      session->Confirm(0);
      session->Get(token, "/late", CoordinatorWatch::kNone);
      EXPECT_EQ(world.Await(*session, token).outcome, Outcome::kAbsent);
      for (int pass = 0; pass < 2500; ++pass) world.Pass();
    }
  }
}

// Goal: a server that is cut off from the majority goes on answering reads, and moves no contact,
// while the majority ends the session.
TEST(SimCoordinator, AServerWithoutTheMajorityAnswersReads) {
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    World world(seed, {});
    const auto cut_off = world.Connect(400);
    cut_off->Create(1, "/e", "old", CoordinatorNode::kEphemeral);
    ASSERT_EQ(world.Await(*cut_off, 1).outcome, Outcome::kDone);
    world.service.SetLink(*cut_off, Link::kMinority);
    while (world.service.Lives(*cut_off)) world.Pass();
    const uint64_t ended_ns = world.Now();
    cut_off->Get(2, "/e", CoordinatorWatch::kNone);
    EXPECT_EQ(world.Await(*cut_off, 2).bytes, "old");
    EXPECT_EQ(cut_off->state(), State::kConnected);
    EXPECT_LT(cut_off->LastContactNs(), ended_ns);
    const uint64_t contact_ns = cut_off->LastContactNs();
    cut_off->Confirm(3);
    for (int i = 0; i < 100; ++i) world.Pass();
    EXPECT_TRUE(cut_off->TakeEvents().empty());
    world.service.SetLink(*cut_off, Link::kOpen);
    EXPECT_EQ(world.Await(*cut_off, 3).outcome, Outcome::kUnknown);
    while (cut_off->state() != State::kExpired) {
      world.Pass();
      cut_off->TakeEvents();
    }
    EXPECT_EQ(cut_off->LastContactNs(), contact_ns);
  }
}

// Goal: a read may be old, though not after a Confirm.
TEST(SimCoordinator, ReadsMayBeOld) {
  uint64_t old_reads = 0;
  for (const uint64_t seed : Seeds(50)) {
    World world(seed, {.lag_ns_max = 20 * kMs});
    const auto writer = world.Connect(1000);
    const auto reader = world.Connect(1000);
    writer->Create(1, "/n", "", CoordinatorNode::kPersistent);
    world.Await(*writer, 1);
    reader->Get(1, "/n", CoordinatorWatch::kNone);
    old_reads += world.Await(*reader, 1).outcome == Outcome::kAbsent;
    reader->Confirm(2);
    reader->Get(3, "/n", CoordinatorWatch::kNone);
    EXPECT_EQ(world.Await(*reader, 3).outcome, Outcome::kDone);
  }
  EXPECT_GT(old_reads, 0U);
}

// What a run was: everything that its clients were told, and when.
std::string Tell(uint64_t seed) {
  World world(seed, Faulty());
  std::vector<std::unique_ptr<CoordinatorSession>> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(world.Open(400));
  std::string told;
  for (uint64_t step = 0; step < 1000; ++step) {
    world.Pass();
    for (auto& session : sessions) {
      for (const Event& event : session->TakeEvents()) {
        told += std::to_string(world.Now()) + ":" + std::to_string(static_cast<int>(event.kind)) +
                std::to_string(event.token) + std::string(NameOf(event.outcome)) + event.path + " ";
      }
      session->Create(step, "/s", "", CoordinatorNode::kEphemeralSequential);
      session->Children(step, "/", CoordinatorWatch::kWatch);
    }
  }
  return told + std::to_string(world.trace.hash());
}

TEST(SimCoordinator, OneSeedIsOneRun) {
  for (const uint64_t seed : Seeds(5)) {
    const std::string told = Tell(seed);
    EXPECT_EQ(told, Tell(seed));
    EXPECT_NE(told, Tell(seed + 1));
  }
}

}  // namespace
}  // namespace skep

// What the simulated fabric does to reads, writes and messages, so that those who build on a fabric
// meet all that it may do.
#include "rma/testing/sim_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rma/testing/sim_endpoint.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

constexpr uint64_t kWords = 64;
constexpr uint64_t kSeeds = 400;

// A caller and a target of kWords words, connected.
class Pair {
 public:
  explicit Pair(uint64_t seed, const SimFabricOptions& options = {})
      : fabric_(seed, clock_, trace_, options) {
    target_ =
        fabric_.Open({.listen = "sim:target", .regions = {{&memory_, Access::kReadWrite}}}).value();
    peer_ = caller_->Connect("sim:target", 1000).value();
    while (joined_ < 2) Turn();
  }

  // Time passes to what comes next; both poll.
  void Turn() {
    if (!clock_.AdvanceToReminder()) clock_.Advance(1000);
    for (const Event& event : target_->Poll(0)) {
      if (event.kind == Kind::kJoined) ++joined_;
      if (event.kind == Kind::kJoined) self_ = event.peer;
      if (event.kind != Kind::kRequest) continue;
      ++requests_;
      target_->Reply(event.peer, event.token, event.bytes);
    }
    for (const Event& event : caller_->Poll(0)) {
      if (event.kind == Kind::kJoined) ++joined_;
      if (event.kind == Kind::kLeft) has_left_ = true;
      if (event.kind == Kind::kDone || event.kind == Kind::kReply) ended_.push_back(event.status);
    }
  }
  void Post(Operation::Kind kind, std::span<uint64_t> local) {
    const Operation operation = {
        .kind = kind, .bytes = static_cast<uint32_t>(local.size_bytes()), .local = local.data()};
    caller_->Post(peer_, 1, {&operation, 1});
  }
  // The event that ends the only Post or Call.
  Status AwaitEnd() {
    while (ended_.empty()) Turn();
    const Status status = ended_.front();
    ended_.clear();
    return status;
  }
  std::span<uint64_t> words() { return {reinterpret_cast<uint64_t*>(memory_.begin()), kWords}; }

  SimClock clock_;
  Trace trace_;
  SimFabric fabric_;
  SharedMemory memory_ = SharedMemory::Create(kWords * 8, SharedPages::kPlain).value();
  std::unique_ptr<Endpoint> target_;
  std::unique_ptr<Endpoint> caller_ = fabric_.Open({}).value();
  PeerId peer_ = 0;  // the target, as the caller calls it
  PeerId self_ = 0;  // the caller, as the target calls it
  int joined_ = 0;
  int requests_ = 0;
  bool has_left_ = false;
  std::vector<Status> ended_;
};

// Goal: a seed is a run.
TEST(SimFabric, EqualSeedsAreEqualRuns) {
  std::set<uint64_t> hashes;
  for (const uint64_t seed : {1, 1, 2, 2}) {
    Pair pair(seed);
    std::vector<uint64_t> local(kWords);
    pair.Post(Operation::Kind::kWrite, local);
    pair.caller_->Call(pair.peer_, 2, "call");
    pair.fabric_.CutOne();
    while (!pair.has_left_) pair.Turn();
    hashes.insert(pair.trace_.hash());
  }
  EXPECT_EQ(hashes.size(), 2u);
}

// Goal: parts of a read are taken at different instants, later ones first, too; all of them between
// the Post and kDone (F4), and often not at its end. Words are whole (F1).
// Method: all words of the target are one number, which rises with every turn.
TEST(SimFabric, ReadsAreTorn) {
  uint64_t rising = 0;
  uint64_t falling = 0;
  uint64_t in_lines = 0;
  uint64_t old = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed);
    uint64_t now = 1'000'000;
    std::ranges::fill(pair.words(), now);
    std::vector<uint64_t> local(kWords);
    pair.Post(Operation::Kind::kRead, local);
    while (pair.ended_.empty()) {
      std::ranges::fill(pair.words(), ++now);
      pair.Turn();
    }
    for (const uint64_t word : local) ASSERT_TRUE(word >= 1'000'000 && word <= now) << word;
    for (uint64_t i = 1; i < kWords; ++i) {
      rising += local[i] > local[i - 1] ? 1 : 0;
      falling += local[i] < local[i - 1] ? 1 : 0;
      in_lines += i % 8 != 0 && local[i] != local[i - 1] ? 1 : 0;
    }
    old += std::ranges::max(local) < now ? 1 : 0;
  }
  for (const uint64_t count : {rising, falling, in_lines, old}) EXPECT_GT(count, kSeeds / 8);
}

// Goal: a fabric that is not coherent says so, and gives lines that are older than the Post, but
// not older than it may; one that is coherent gives none.
TEST(SimFabric, StaleLines) {
  constexpr uint64_t kStaleNs = 50'000;
  for (const uint64_t stale_ns : {uint64_t{0}, kStaleNs}) {
    uint64_t stale = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      Pair pair(seed, {.stale_ns_max = stale_ns});
      EXPECT_EQ(pair.caller_->capabilities().coherent, stale_ns == 0);
      uint64_t word = 0;
      for (const uint64_t written : {uint64_t{1}, uint64_t{2}}) {
        pair.words()[0] = written;
        pair.Post(Operation::Kind::kRead, {&word, 1});
        ASSERT_TRUE(pair.AwaitEnd().ok());
        stale += word < written ? 1 : 0;
      }
      pair.clock_.Advance(kStaleNs + 1);
      pair.Post(Operation::Kind::kRead, {&word, 1});
      ASSERT_TRUE(pair.AwaitEnd().ok());
      ASSERT_EQ(word, 2u);
    }
    EXPECT_EQ(stale > kSeeds / 8, stale_ns > 0) << stale;
  }
}

// Goal: a write whose connection is cut is done, or not, or in part, and some of it later (F5); but
// nothing is done once Fence has been true.
TEST(SimFabric, WritesOfACutConnection) {
  uint64_t all = 0;
  uint64_t none = 0;
  uint64_t late = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed);
    std::vector<uint64_t> local(kWords, 7);
    pair.Post(Operation::Kind::kWrite, local);
    ASSERT_TRUE(pair.fabric_.CutOne());
    ASSERT_EQ(pair.AwaitEnd().code(), Code::kUnavailable);
    const auto done = [&] { return std::ranges::count(pair.words(), uint64_t{7}); };
    const auto before = done();
    const bool fences = seed % 2 == 0;
    while (fences && !pair.target_->Fence(pair.self_)) pair.Turn();
    const auto then = done();
    for (int i = 0; i < 100; ++i) pair.Turn();
    ASSERT_TRUE(!fences || done() == then);
    all += done() == kWords ? 1 : 0;
    none += done() == 0 ? 1 : 0;
    late += done() > before ? 1 : 0;
  }
  for (const uint64_t count : {all, none, late}) EXPECT_GT(count, kSeeds / 40);
}

// Goal: a call whose connection is cut was seen by the target, or not.
TEST(SimFabric, CallsOfACutConnection) {
  uint64_t seen = 0;
  uint64_t answered = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed);
    pair.caller_->Call(pair.peer_, 2, "call");
    ASSERT_TRUE(pair.fabric_.CutOne());
    answered += pair.AwaitEnd().ok() ? 1 : 0;
    while (!pair.has_left_) pair.Turn();
    seen += static_cast<uint64_t>(pair.requests_);
  }
  EXPECT_GT(answered, kSeeds / 40);
  EXPECT_GT(seen, answered + kSeeds / 40);
  EXPECT_LT(seen, kSeeds - kSeeds / 40);
}

// Goal: a Poll that waits calls the waiter until there is something, and lets it go when it must.
TEST(SimFabric, APollCallsTheWaiter) {
  Pair pair(1);
  int waits = 0;
  pair.fabric_.set_waiter([&](uint64_t until_ns, const std::function<bool()>& is_ready) {
    ++waits;
    while (!is_ready() && pair.clock_.MonotonicNs() < until_ns) {
      if (!pair.clock_.AdvanceToReminder()) pair.clock_.Advance(1'000);
      pair.fabric_.RunDue();
    }
  });
  uint64_t word = 0;
  pair.words()[0] = 5;
  pair.Post(Operation::Kind::kRead, {&word, 1});
  EXPECT_EQ(pair.caller_->Poll(-1).size(), 1u);
  EXPECT_EQ(word, 5u);
  const uint64_t then = pair.clock_.MonotonicNs();
  EXPECT_TRUE(pair.caller_->Poll(3).empty());
  EXPECT_GE(pair.clock_.MonotonicNs(), then + 3'000'000);
  EXPECT_EQ(waits, 2);
}

}  // namespace
}  // namespace skep::rma

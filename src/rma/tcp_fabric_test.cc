// tcp over a simulated network that resets and parts connections, from seeds.
#include "rma/tcp_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "rma/testing/fabric_test.h"
#include "sim/seeds.h"
#include "sim/sim_network.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

constexpr SimNetworkOptions kBadNetwork = {.segment_bytes_max = 2000,
                                           .resets_ppm = 3'000,
                                           .partitions_ppm = 10'000,
                                           .partition_resets_ppm = 500'000};

std::unique_ptr<SharedMemory> NewMemory() {
  auto memory = SharedMemory::Create(1 << 16, SharedPages::kPlain);
  EXPECT_TRUE(memory);
  return std::make_unique<SharedMemory>(std::move(*memory));
}

// One seed's run: a target, and callers that connect, write, read and call, and connect again.
class Session {
 public:
  explicit Session(uint64_t seed)
      : random_(seed), network_(random_.Below(~uint64_t{0}), clock_, trace_, kBadNetwork) {
    target_.emplace(std::move(
        *fabric_.Open({.listen = "10.0.0.1:0", .regions = {{memory_.get(), Access::kReadWrite}}})));
    target_->on_event = [this](const Told& t) { OnTarget(t); };
    for (uint64_t i = 0; i < callers_.size(); ++i) {
      Caller& caller = callers_[i];
      caller.word = i;
      caller.node.emplace(std::move(*fabric_.Open({})));
      caller.node->on_event = [this, &caller](const Told& t) { OnCaller(caller, t); };
    }
  }

  void Do(int steps) {
    for (int step = 0; step < steps; ++step) Step(callers_[random_.Below(callers_.size())]);
    for (Caller& caller : callers_) {
      if (caller.peer != 0) (*caller.node)->Disconnect(caller.peer);
    }
    for (int i = 0; i < 1000; ++i) PollSomebody();
    for (Caller& caller : callers_) {
      EXPECT_TRUE(caller.posts.empty() && caller.calls.empty());
      EXPECT_EQ(caller.peer, 0u);
    }
    EXPECT_TRUE(joined_.empty());
  }

  uint64_t connections = 0;
  uint64_t done = 0;
  uint64_t replies = 0;
  uint64_t unavailable = 0;

 private:
  struct Caller {
    std::optional<Node> node;
    uint64_t word = 0;
    PeerId peer = 0;  // 0: none
    bool is_joined = false;
    uint64_t last_token = 0;
    std::map<uint64_t, std::pair<PeerId, Operation::Kind>> posts;  // under way, by token
    std::map<uint64_t, PeerId> calls;
    bool is_writing = false;
    uint64_t written = 0;  // what is written to the word, by the write under way or the last one
    uint64_t read = 0;     // what reads go to
    bool is_uncertain = false;  // a write ended with an error: it may be done, now or later
  };

  uint64_t WordOf(const Caller& caller) const {
    return reinterpret_cast<const uint64_t*>(memory_->begin())[caller.word * 8];
  }

  void PollSomebody() {
    const uint64_t who = random_.Below(callers_.size() + 1);
    Node& node = who == 0 ? *target_ : *callers_[who - 1].node;
    if (!node.Poll() && !clock_.AdvanceToReminder()) clock_.Advance(100'000);
    node.told.clear();
  }

  void Step(Caller& caller) {
    PollSomebody();
    if (caller.peer == 0) {
      const auto peer = (*caller.node)->Connect((*target_)->address(), 1000);
      ASSERT_TRUE(peer);
      caller.peer = *peer;
      return;
    }
    if (!caller.is_joined) return;
    switch (random_.Below(8)) {
      case 0:
        caller.calls.emplace(++caller.last_token, caller.peer);
        return (*caller.node)
            ->Call(caller.peer, caller.last_token, std::string(random_.Below(5000), 'c'));
      case 1:
        return Post(caller, Operation::Kind::kRead, &caller.read, 8);
      case 2:
        return Post(caller, Operation::Kind::kRead, large_.data(), 8 * large_.size());
      case 3:
        return Write(caller);
      case 4:
        if (!random_.Chance(1, 20)) return;
        caller.is_joined = false;
        return (*caller.node)->Disconnect(caller.peer);
      default:
        return;
    }
  }

  void Post(Caller& caller, Operation::Kind kind, uint64_t* local, size_t bytes) {
    caller.posts.emplace(++caller.last_token, std::pair(caller.peer, kind));
    const Operation operation = {.kind = kind,
                                 .offset = caller.word * 64,
                                 .bytes = static_cast<uint32_t>(bytes),
                                 .local = local};
    (*caller.node)->Post(caller.peer, caller.last_token, {&operation, 1});
  }

  // One write at a time to the caller's word, and only if no earlier one can still come: else the
  // target fences all its peers first.
  void Write(Caller& caller) {
    if (caller.is_writing) return;
    if (caller.is_uncertain) {
      for (const PeerId peer : std::vector(joined_)) EXPECT_TRUE((*target_)->Fence(peer));
      caller.is_uncertain = false;
      return;
    }
    caller.is_writing = true;
    ++caller.written;
    Post(caller, Operation::Kind::kWrite, &caller.written, 8);
  }

  void OnTarget(const Told& t) {
    if (t.kind == Kind::kJoined) joined_.push_back(t.peer);
    if (t.kind == Kind::kRequest) (*target_)->Reply(t.peer, t.token, t.bytes);
    if (t.kind != Kind::kLeft) return;
    EXPECT_EQ(std::erase(joined_, t.peer), 1u);
  }

  void OnCaller(Caller& caller, const Told& t) {
    EXPECT_TRUE(t.status.ok() || t.status.code() == Code::kUnavailable || t.kind == Kind::kLeft);
    unavailable += t.status.ok() ? 0 : 1;
    switch (t.kind) {
      case Kind::kJoined:
        EXPECT_EQ(t.peer, caller.peer);
        EXPECT_FALSE(caller.is_joined);
        caller.is_joined = true;
        ++connections;
        return;
      case Kind::kReply:
        replies += t.status.ok() ? 1 : 0;
        EXPECT_EQ(caller.calls.at(t.token), t.peer);
        caller.calls.erase(t.token);
        return;
      case Kind::kDone:
        return OnDone(caller, t);
      case Kind::kLeft:
        EXPECT_EQ(t.peer, caller.peer);
        EXPECT_TRUE(std::ranges::none_of(caller.posts,
                                         [&](const auto& p) { return p.second.first == t.peer; }));
        EXPECT_TRUE(
            std::ranges::none_of(caller.calls, [&](const auto& c) { return c.second == t.peer; }));
        caller.peer = 0;
        caller.is_joined = false;
        return;
      default:
        ADD_FAILURE() << "nobody calls a caller";
    }
  }

  void OnDone(Caller& caller, const Told& t) {
    const auto [peer, kind] = caller.posts.at(t.token);
    EXPECT_EQ(peer, t.peer);
    caller.posts.erase(t.token);
    done += t.status.ok() ? 1 : 0;
    if (kind == Operation::Kind::kRead) return;
    caller.is_writing = false;
    if (t.status.ok()) {
      EXPECT_EQ(WordOf(caller), caller.written) << "F3";
    } else {
      caller.is_uncertain = true;
    }
  }

  SeededRandom random_;
  SimClock clock_;
  Trace trace_;
  SimNetwork network_;
  TcpFabric fabric_{network_, clock_};
  std::unique_ptr<SharedMemory> memory_ = NewMemory();
  std::optional<Node> target_;
  std::array<Caller, 3> callers_;
  std::vector<PeerId> joined_;  // the target's peers
  std::array<uint64_t, 1000> large_;
};

// Goal: whatever the network does, each Post and each Call ends in one event, before the kLeft of
// its connection; what is acknowledged is there (F3); a fence ends what is not (F5); and there is
// always a next connection.
TEST(TcpFabric, BadNetworks) {
  uint64_t connections = 0;
  uint64_t unavailable = 0;
  const auto seeds = Seeds(100);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Session run(seed);
    run.Do(3000);
    EXPECT_GT(run.done, 10u);
    EXPECT_GT(run.replies, 0u);
    connections += run.connections;
    unavailable += run.unavailable;
    if (testing::Test::HasFailure()) return;
  }
  if (!AreMany(seeds)) return;
  EXPECT_GT(connections, 4 * seeds.size());
  EXPECT_GT(unavailable, 10 * seeds.size());
}

// Goal: where the system has no more descriptors, endpoints still accept once it has some again.
TEST(TcpFabric, AcceptsAgain) {
  SimClock clock;
  Trace trace;
  SimNetwork network(1, clock, trace);
  TcpFabric fabric(network, clock);
  Node target(std::move(*fabric.Open({.listen = "10.0.0.1:0"})));
  Node caller(std::move(*fabric.Open({})));
  network.FailAccepts(EMFILE, 3);
  ASSERT_TRUE(caller->Connect(target->address(), -1));
  for (int i = 0; i < 10'000 && caller.told.empty(); ++i) {
    const bool is_busy = target.Poll(1000) || caller.Poll();
    if (!is_busy) clock.AdvanceToReminder();
  }
  ASSERT_EQ(caller.Count(Kind::kJoined), 1u);
  EXPECT_GT(clock.MonotonicMs(), 300u) << "it pauses between";
}

}  // namespace
}  // namespace skep::rma

// What every fabric does about peers: how they come, how they go, and what a bad one costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "rma/testing/fabric_test.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

class FabricPeers : public FabricTest {
 protected:
  Node* OpenPlainTarget(EndpointOptions options = {}) {
    return OpenTarget({{memory_.get(), Access::kReadWrite}}, options);
  }
  // What a node is told at the end of a connection on which these were under way: each ends once,
  // with kUnavailable, and kLeft is the last.
  void ExpectEnd(Node* node, PeerId peer, size_t calls, size_t posts_max) {
    ASSERT_TRUE(Await([&] { return node->Count(Kind::kLeft) > 0; }));
    const auto& told = node->told;
    EXPECT_EQ(node->Count(Kind::kLeft), 1u);
    EXPECT_EQ(told.back().kind, Kind::kLeft);
    EXPECT_EQ(told.back().peer, peer);
    EXPECT_FALSE(told.back().status.ok());
    EXPECT_EQ(node->Count(Kind::kReply), calls);
    EXPECT_LE(node->Count(Kind::kDone), posts_max);
    for (const Told& t : told) {
      EXPECT_EQ(t.peer, peer);
      if (t.kind != Kind::kReply) continue;
      EXPECT_EQ(t.status.code(), Code::kUnavailable);
    }
    node->told.clear();
  }
  // Ten calls and ten Posts that the target does not see.
  void Begin(Node* node, PeerId peer) {
    for (uint64_t i = 0; i < 10; ++i) {
      (*node)->Call(peer, i, "call");
      const std::vector operations = {Read(i, 1, &words_[i])};
      (*node)->Post(peer, i, operations);
    }
  }

  std::unique_ptr<SharedMemory> memory_ = NewMemory();
  std::vector<uint64_t> words_ = std::vector<uint64_t>(1000);
};

// Goal: the errors of Open name what is wrong, and nothing is left behind.
TEST_P(FabricPeers, OpenRefuses) {
  const auto code = [&](const EndpointOptions& options) {
    const auto endpoint = world_->fabric().Open(options);
    return endpoint ? Code::kOk : endpoint.error().code();
  };
  EXPECT_EQ(code({.listen = "nonsense"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.regions = {{nullptr, Access::kRead}}}), Code::kInvalidArgument);
  const std::vector<Region> many(kRegionsMax + 1, {memory_.get(), Access::kRead});
  EXPECT_EQ(code({.regions = many}), Code::kInvalidArgument);
  auto reader = SharedMemory::Map(std::move(*memory_->ReadOnlyDescriptor()));
  EXPECT_EQ(code({.regions = {{&*reader, Access::kReadWrite}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.regions = {{&*reader, Access::kRead}}}), Code::kOk);
  Node* const target = OpenPlainTarget();
  EXPECT_EQ(code({.listen = (*target)->address()}), Code::kIo) << "the address is taken";
}

// Goal: as many regions as there may be are told.
TEST_P(FabricPeers, ManyRegions) {
  std::vector<std::unique_ptr<SharedMemory>> memories;
  std::vector<Region> regions;
  for (size_t i = 0; i < kRegionsMax; ++i) {
    memories.push_back(NewMemory(1));
    Words(*memories.back())[0] = i;
    regions.push_back({memories.back().get(), i % 2 == 0 ? Access::kRead : Access::kReadWrite});
  }
  Node* const target = OpenTarget(regions);
  Node* const caller = Open({});
  const PeerId peer = Connect(caller, target).first;
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < kRegionsMax; ++i) operations.push_back(Read(0, 1, &words_[i], i));
  ASSERT_TRUE(Do(caller, peer, operations).ok());
  for (size_t i = 0; i < kRegionsMax; ++i) EXPECT_EQ(words_[i], i);
}

// Goal: an address that makes no sense, and one where nobody is, are told apart at once.
TEST_P(FabricPeers, ConnectToNobody) {
  Node* const caller = Open({});
  EXPECT_EQ((*caller)->address(), "");
  EXPECT_EQ((*caller)->Connect("nonsense", 1000).error().code(), Code::kInvalidArgument);
  EXPECT_EQ((*caller)->Connect(world_->NobodysAddress(), 1000).error().code(), Code::kUnavailable);
  ExpectSilence();
}

// Goal: an endpoint that does not answer is given up in time; until then nothing can be asked of
// it.
TEST_P(FabricPeers, ConnectTimesOut) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const auto peer = (*caller)->Connect((*target)->address(), 50);
  ASSERT_TRUE(peer);
  EXPECT_EQ((*caller)->RegionBytes(*peer, 0), 0u);
  (*caller)->Call(*peer, 1, "early");
  target->is_stopped = true;
  EXPECT_EQ(Take(caller, Kind::kReply).status.code(), Code::kUnavailable);
  const Told left = Take(caller, Kind::kLeft);
  EXPECT_EQ(left.peer, *peer);
  EXPECT_EQ(left.status.code(), Code::kUnavailable);
  target->is_stopped = false;
  for (int i = 0; i < 20; ++i) Turn();
  EXPECT_EQ(target->Count(Kind::kJoined), target->Count(Kind::kLeft));
  target->told.clear();
  ExpectSilence();
}

// Goal: two endpoints that connect to each other at once both succeed: neither waits for the other.
TEST_P(FabricPeers, ConnectToEachOther) {
  Node* const a = OpenPlainTarget();
  Node* const b = OpenPlainTarget();
  const auto to_b = (*a)->Connect((*b)->address(), 10'000);
  const auto to_a = (*b)->Connect((*a)->address(), 10'000);
  ASSERT_TRUE(to_a && to_b);
  ASSERT_TRUE(Await([&] { return a->Count(Kind::kJoined) == 2 && b->Count(Kind::kJoined) == 2; }));
  EXPECT_TRUE(Do(a, *to_b, {Read(0, 1, words_.data())}).ok());
  EXPECT_TRUE(Do(b, *to_a, {Read(0, 1, words_.data())}).ok());
}

// Goal: when the target's endpoint goes, what was under way ends once each, then comes kLeft, and
// what is begun later ends with kUnavailable.
TEST_P(FabricPeers, TargetGoes) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const PeerId peer = Connect(caller, target).first;
  Begin(caller, peer);
  Close(target);
  ExpectEnd(caller, peer, 10, 10);
  Begin(caller, peer);
  (*caller)->Reply(peer, 1, "reply");
  (*caller)->Disconnect(peer);
  ASSERT_TRUE(Await([&] { return caller->told.size() >= 20; }));
  for (const Told& t : caller->told) EXPECT_EQ(t.status.code(), Code::kUnavailable);
  EXPECT_EQ((*caller)->RegionBytes(peer, 0), 0u);
  caller->told.clear();
  ExpectSilence();
}

// Goal: the same when the target disconnects, and it is told too.
TEST_P(FabricPeers, TargetDisconnects) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const auto [peer, self] = Connect(caller, target);
  Begin(caller, peer);
  Begin(target, self);
  target->told.clear();
  (*target)->Disconnect(self);
  (*target)->Disconnect(self);
  ExpectEnd(target, self, 10, 20);
  ASSERT_TRUE(Await([&] { return caller->Count(Kind::kLeft) > 0; }));
  std::erase_if(caller->told, [](const Told& t) { return t.kind == Kind::kRequest; });
  ExpectEnd(caller, peer, 10, 10);
  ExpectSilence();
}

// Goal: the same when the caller does; each Post and each Call has had exactly one event.
TEST_P(FabricPeers, CallerDisconnects) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const auto [peer, self] = Connect(caller, target);
  Begin(caller, peer);
  (*caller)->Disconnect(peer);
  EXPECT_EQ((*caller)->RegionBytes(peer, 0), 0u);
  ASSERT_TRUE(Await([&] { return caller->Count(Kind::kLeft) > 0; }));
  EXPECT_EQ(caller->Count(Kind::kDone), 10u);
  ExpectEnd(caller, peer, 10, 10);
  EXPECT_EQ(Take(target, Kind::kLeft).peer, self);
}

// Goal: a Disconnect while events of the same Poll are looked at leaves their bytes as they are;
// the end comes with the next Poll.
TEST_P(FabricPeers, DisconnectWhileEventsAreLookedAt) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const auto [peer, self] = Connect(caller, target);
  (*caller)->Call(peer, 1, "first");
  (*caller)->Call(peer, 2, "second");
  std::string seen;
  target->on_event = [&, self = self](const Told& t) {
    if (t.kind == Kind::kRequest) {
      (*target)->Disconnect(self);
      (*target)->Reply(self, t.token, "too late");
    }
    seen += t.bytes + (t.kind == Kind::kLeft ? "left" : " ");
  };
  ASSERT_TRUE(Await([&] { return target->Count(Kind::kLeft) == 1; }));
  EXPECT_TRUE(seen == "first second left" || seen == "first left") << seen;
  EXPECT_EQ(Take(caller, Kind::kLeft).peer, peer);
}

// Goal: a peer id is never used again, and each connection has its own.
TEST_P(FabricPeers, IdsAreNeverUsedAgain) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  std::vector<PeerId> ids;
  for (int i = 0; i < 20; ++i) {
    const auto [peer, self] = Connect(caller, target);
    ids.push_back(peer);
    (*(i % 2 == 0 ? caller : target))->Disconnect(i % 2 == 0 ? peer : self);
    Take(target, Kind::kLeft, self);
    Take(caller, Kind::kLeft, peer);
  }
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
  EXPECT_NE(ids.front(), 0u);
}

// Goal: more peers than there may be are refused, and told so; one that leaves makes room.
TEST_P(FabricPeers, NoMorePeersThanThereMayBe) {
  Node* const target = OpenPlainTarget({.peers_max = 2});
  Node* const caller = Open({});
  const auto first = Connect(caller, target);
  Connect(caller, target);
  const auto refused = (*caller)->Connect((*target)->address(), 10'000);
  ASSERT_TRUE(refused);
  const Told left = Take(caller, Kind::kLeft, *refused);
  EXPECT_EQ(left.status.code(), Code::kUnavailable);
  (*caller)->Disconnect(first.first);
  Take(target, Kind::kLeft);
  Take(caller, Kind::kLeft);
  Connect(caller, target);
  ExpectSilence();
}

// Goal: a peer that does not take its messages is disconnected when too many bytes wait for it, and
// costs no more than that; another peer does not notice.
TEST_P(FabricPeers, SlowPeersAreDisconnected) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({.unsent_bytes_max = size_t{1} << 20});
  Node* const other = OpenPlainTarget();
  const PeerId slow = Connect(caller, target).first;
  const PeerId quick = Connect(caller, other).first;
  target->is_stopped = true;
  const std::string message(100'000, 'm');
  size_t calls = 0;
  while (calls < 1000 && caller->Count(Kind::kLeft) == 0) {
    (*caller)->Call(slow, ++calls, message);
    caller->Poll();
  }
  ASSERT_LT(calls, 1000u);
  EXPECT_EQ(caller->told.back().status.code(), Code::kTooLarge);
  EXPECT_EQ(caller->told.back().status.detail(), size_t{1} << 20);
  ExpectEnd(caller, slow, calls, 0);
  EXPECT_TRUE(Do(caller, quick, {Read(0, 1, words_.data())}).ok());
}

// Goal: Wake ends the next Poll; a Poll that is not woken waits as long as it is asked to.
TEST_P(FabricPeers, WakeAndTimeouts) {
  Node* const node = OpenPlainTarget();
  (*node)->Wake();
  EXPECT_FALSE(node->Poll(-1));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(node->Poll(0));
  EXPECT_FALSE(node->Poll(30));
  const auto passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(passed, std::chrono::seconds(10));
  if (GetParam().name == "Mem" || GetParam().name == "Tcp") {
    EXPECT_GE(passed, std::chrono::milliseconds(29));
  }
}

// Goal: an address can be used again once its endpoint is gone.
TEST_P(FabricPeers, ListensAgain) {
  Node* const first = OpenPlainTarget();
  const Address address = (*first)->address();
  Close(first);
  Node* const second = Open({.listen = address});
  ASSERT_NE(second, nullptr);
  Node* const caller = Open({});
  Connect(caller, second);
}

// Goal: after Fence is true, nothing that the peer began reaches the regions.
// Method: Posts that are under way in every state when the target fences: each word is old or new
// when Fence is true, and stays so.
TEST_P(FabricPeers, FenceEndsWrites) {
  Node* const target = OpenPlainTarget();
  Node* const caller = Open({});
  const auto [peer, self] = Connect(caller, target);
  for (uint64_t i = 0; i < 100; ++i) {
    words_[i] = i + 1;
    const std::vector operations = {Write(i, 1, &words_[i])};
    (*caller)->Post(peer, i, operations);
    if (i == 50) Turn();
  }
  caller->Poll();
  while (!(*target)->Fence(self)) Turn();
  const std::vector<uint64_t> then(Words(*memory_), Words(*memory_) + 100);
  for (int i = 0; i < 20; ++i) Turn();
  EXPECT_TRUE(std::ranges::equal(then, std::span(Words(*memory_), 100)));
  EXPECT_EQ(Take(target, Kind::kLeft).peer, self);
  EXPECT_EQ(Take(caller, Kind::kLeft).peer, peer);
  EXPECT_TRUE((*target)->Fence(self));
  const std::vector operations = {Write(0, 1, &words_[99])};
  (*caller)->Post(peer, 1000, operations);
  EXPECT_EQ(Take(caller, Kind::kDone, peer, 1000).status.code(), Code::kUnavailable);
  EXPECT_EQ(Words(*memory_)[0], then[0]);
}

INSTANTIATE_TEST_SUITE_P(All, FabricPeers, testing::ValuesIn(AllBackends()), NameOfBackend);

}  // namespace
}  // namespace skep::rma

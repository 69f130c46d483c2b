// fabric_test.h: endpoints that a test polls in turns, and what they were told.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rma/fabric.h"
#include "rma/testing/fabric_world.h"

namespace skep::rma {

// An event with bytes of its own.
struct Told {
  Event::Kind kind;
  PeerId peer;
  uint64_t token;
  Status status;
  std::string bytes;
};

// An endpoint, and what it has been told and no test has taken yet.
class Node {
 public:
  explicit Node(std::unique_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}

  Endpoint* operator->() const { return endpoint_.get(); }
  // Whether anything happened.
  bool Poll(int timeout_ms = 0) {
    const auto events = endpoint_->Poll(timeout_ms);
    for (const Event& e : events) {
      told.push_back({e.kind, e.peer, e.token, e.status, std::string(e.bytes)});
      if (on_event) on_event(told.back());
    }
    return !events.empty();
  }
  size_t Count(Event::Kind kind) const {
    size_t count = 0;
    for (const Told& t : told) count += t.kind == kind ? 1 : 0;
    return count;
  }

  bool is_stopped = false;  // nobody polls it
  std::deque<Told> told;
  std::function<void(const Told&)> on_event;

 private:
  std::unique_ptr<Endpoint> endpoint_;
};

class FabricTest : public testing::TestWithParam<FabricBackend> {
 protected:
  static constexpr size_t kRegionBytes = size_t{4} << 20;
  static constexpr uint64_t kWords = kRegionBytes / 8;

  FabricTest() : world_(GetParam().make()) {}
  void TearDown() override {
    if (HasFailure()) std::cout << world_->Describe() << "\n";
  }

  static std::unique_ptr<SharedMemory> NewMemory(size_t bytes = kRegionBytes) {
    auto memory = SharedMemory::Create(bytes, SharedPages::kPlain);
    EXPECT_TRUE(memory) << memory.error().ToString();
    return std::make_unique<SharedMemory>(std::move(*memory));
  }

  Node* Open(const EndpointOptions& options) {
    auto endpoint = world_->fabric().Open(options);
    if (!endpoint) {
      ADD_FAILURE() << endpoint.error().ToString();
      return nullptr;
    }
    nodes_.push_back(std::make_unique<Node>(std::move(*endpoint)));
    return nodes_.back().get();
  }
  Node* OpenTarget(std::vector<Region> regions, EndpointOptions options = {}) {
    options.listen = world_->NewAddress();
    options.regions = std::move(regions);
    return Open(options);
  }
  void Close(Node* node) {
    std::erase_if(nodes_, [&](const auto& n) { return n.get() == node; });
  }

  // Polls everybody once, and lets time pass if nobody had anything to do.
  void Turn() {
    bool is_busy = false;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i]->is_stopped) is_busy = nodes_[i]->Poll() || is_busy;
    }
    if (!is_busy) world_->PassTime();
  }
  bool Await(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      Turn();
    }
    return true;
  }
  // Takes the oldest event of the kind, of the peer and the token if they are given.
  Told Take(Node* node, Event::Kind kind, PeerId peer = 0, uint64_t token = kAny) {
    const auto is_it = [&](const Told& t) {
      return t.kind == kind && (peer == 0 || t.peer == peer) && (token == kAny || t.token == token);
    };
    auto& told = node->told;
    EXPECT_TRUE(Await([&] { return std::ranges::any_of(told, is_it); })) << "no event";
    const auto at = std::ranges::find_if(told, is_it);
    if (at == told.end()) return {kind, 0, 0, Status(Code::kIo, "no event"), ""};
    Told taken = std::move(*at);
    told.erase(at);
    return taken;
  }
  // Connected on both sides: what each calls the other one.
  std::pair<PeerId, PeerId> Connect(Node* from, Node* to) {
    const auto peer = (*from)->Connect((*to)->address(), 10'000);
    EXPECT_TRUE(peer) << peer.error().ToString();
    if (!peer) return {};
    EXPECT_TRUE(Take(from, Event::Kind::kJoined, *peer).status.ok());
    return {*peer, Take(to, Event::Kind::kJoined).peer};
  }
  Status Do(Node* node, PeerId peer, const std::vector<Operation>& operations) {
    const uint64_t token = ++last_token_;
    (*node)->Post(peer, token, operations);
    return Take(node, Event::Kind::kDone, peer, token).status;
  }
  // Nothing more comes.
  void ExpectSilence() {
    for (int i = 0; i < 20; ++i) Turn();
    for (const auto& node : nodes_) EXPECT_TRUE(node->told.empty());
  }

  static uint64_t* Words(SharedMemory& memory) {
    return reinterpret_cast<uint64_t*>(memory.begin());
  }
  static Operation Read(uint64_t word, uint64_t words, uint64_t* to, uint32_t region = 0) {
    return {.kind = Operation::Kind::kRead,
            .region = region,
            .offset = word * 8,
            .bytes = static_cast<uint32_t>(words * 8),
            .local = to};
  }
  static Operation Write(uint64_t word, uint64_t words, uint64_t* from, uint32_t region = 0) {
    Operation operation = Read(word, words, from, region);
    operation.kind = Operation::Kind::kWrite;
    return operation;
  }

  static constexpr uint64_t kAny = ~uint64_t{0};

  std::unique_ptr<FabricWorld> world_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t last_token_ = 1'000'000;
};

inline std::string NameOfBackend(const testing::TestParamInfo<FabricBackend>& backend) {
  return backend.param.name;
}

}  // namespace skep::rma

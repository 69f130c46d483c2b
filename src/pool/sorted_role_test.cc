// What a sorted server puts off.
#include "pool/sorted_role.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/model_engine.h"
#include "pool/fields.h"
#include "sim/sim_clock.h"

namespace skep::pool {
namespace {

constexpr uint64_t kEpoch = 1;

// An endpoint that sends nothing and keeps the last reply.
class TestEndpoint final : public rma::Endpoint {
 public:
  const rma::Capabilities& capabilities() const override { return capabilities_; }
  Address address() const override { return {}; }
  Result<rma::PeerId> Connect(const Address&, int) override { return rma::PeerId{0}; }
  void Disconnect(rma::PeerId) override {}
  uint64_t RegionBytes(rma::PeerId, uint32_t) const override { return 0; }
  void Post(rma::PeerId, uint64_t, std::span<const rma::Operation>) override {}
  void Call(rma::PeerId, uint64_t, std::string_view) override {}
  void Reply(rma::PeerId, uint64_t, std::string_view reply) override { last_reply = reply; }
  std::span<const rma::Event> Poll(int) override { return {}; }
  void Wake() override {}
  bool Fence(rma::PeerId) override { return true; }

  std::string last_reply;

 private:
  rma::Capabilities capabilities_;
};

class SortedRoleTest : public testing::Test {
 protected:
  SortedRoleTest() {
    EngineOptions options;
    options.budget = &budget_;
    tree_ = ModelEngine::kInfo.make(options);
    state_.set_tree(tree_.get(), true);
  }
  // Ships so many entries of a client that is not known. Whether they are acknowledged.
  bool Ship(int count) {
    LogBatch batch(role_.log_end() + 1);
    for (int i = 0; i < count; ++i) {
      batch.Add({.kind = LogEntry::Kind::kDelete, .client = 1'000, .sequence = 1, .key = "k"});
    }
    std::string fields;
    AppendVarint(fields, kEpoch);
    batch.EncodeTo(fields);
    EXPECT_TRUE(role_.Handle({}, MessageKind::kShip, fields));
    return endpoint_.last_reply.at(0) == static_cast<char>(ReplyCode::kOk);
  }
  uint64_t PutOff() const { return role_.log_end() - state_.applied(); }

  MemoryBudget budget_{0};
  std::unique_ptr<Engine> tree_;
  TestEndpoint endpoint_;
  SimClock clock_;
  IndexState state_{{}};
  IndexContext context_{.endpoint = endpoint_,
                        .clock = clock_,
                        .times = {},
                        .keys_per_piece = 10,
                        .keys_per_step = 10,
                        .free_chunks_min = 0,
                        .replicas = 1,
                        .removes_lost = false,
                        .applies_first = false,
                        .log = nullptr,
                        .state = state_,
                        .map = {.epoch = kEpoch, .hash_server = 1, .sorted_server = 2},
                        .reply = {}};
  SortedRole role_{context_};
};

// Goal: entries that were acknowledged are put off while there is something else to do, but not
// more than kWaitingMax of them, however many come in one turn.
TEST_F(SortedRoleTest, WhatItPutsOffIsBounded) {
  ASSERT_TRUE(Ship(40'000));
  EXPECT_FALSE(role_.Turn(false));
  EXPECT_EQ(PutOff(), 40'000u);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Ship(40'000));
  EXPECT_TRUE(role_.Turn(false));
  EXPECT_LE(PutOff(), SortedRole::kWaitingMax);
  EXPECT_GT(PutOff(), 0u);
  EXPECT_TRUE(role_.Turn(true));
  EXPECT_EQ(PutOff(), 0u);
  EXPECT_FALSE(role_.Turn(true));
}

}  // namespace
}  // namespace skep::pool

#include "pool/index_builders.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "model/model_engine.h"
#include "pool/index_memory_test.h"
#include "rma/mem_fabric.h"

namespace skep::pool {
namespace {

constexpr uint32_t kKeysPerStep = 64;
constexpr uint32_t kTreeKeys = 20'000;
constexpr DigestKeys kDigestKeys = {.index = {1, 2}, .tag = {3, 4}};

// A server's state, which has the tree alone.
class HashBuilderTest : public testing::Test {
 protected:
  HashBuilderTest() {
    Batch batch;
    for (uint32_t i = 0; i < kTreeKeys; ++i) {
      batch.Put(batch.scratch().Copy(std::to_string(i)), batch.scratch().Copy(BytesOf(SlotOf(i))));
    }
    tree_->Execute(batch);
    state_.set_tree(tree_.get(), true);
  }
  static std::unique_ptr<Engine> MakeTree() {
    static MemoryBudget budget;
    EngineOptions options;
    options.budget = &budget;
    return ModelEngine::kInfo.make(options);
  }
  static KeyDigest DigestOf(uint32_t i) { return pool::DigestOf(kDigestKeys, std::to_string(i)); }
  static Slot SlotOf(uint32_t i) { return SlotAt(DigestOf(i), i, 0); }

  std::unique_ptr<Engine> tree_ = MakeTree();
  IndexState state_{kDigestKeys};
  rma::MemFabric fabric_;
  std::unique_ptr<rma::Endpoint> endpoint_ = fabric_.Open({}).value();
  IndexContext context_ = {.endpoint = *endpoint_,
                           .clock = SystemClock(),
                           .times = {},
                           .keys_per_piece = 0,
                           .keys_per_step = kKeysPerStep,
                           .free_chunks_min = 0,
                           .replicas = 1,
                           .removes_lost = false,
                           .applies_first = false,
                           .log = nullptr,
                           .state = state_,
                           .map = {},
                           .reply = {}};
};

// Goal: no step does more than it may, since all requests wait for it, and no key is moved by a
// split; in the end the index has what the tree has.
TEST_F(HashBuilderTest, StepsAreSmall) {
  IndexMemory memory(kTreeKeys / 2, kTreeKeys / 8);
  const auto hash = memory.Create({.first_depth = 0});
  state_.set_hash(hash.get(), false);
  HashBuilder builder(context_, *hash);
  uint32_t steps = 0;
  for (bool is_whole = false; !is_whole; ++steps) {
    const uint64_t items = hash->items();
    const uint64_t buckets = hash->buckets();
    ASSERT_TRUE(builder.Step(&is_whole));
    ASSERT_LE(hash->items() - items, kKeysPerStep);
    ASSERT_LE(hash->buckets() - buckets, HashBuilder::kBucketsPerStep);
  }
  EXPECT_GE(steps, kTreeKeys / kKeysPerStep + kTreeKeys / 4 / HashBuilder::kBucketsPerStep);
  EXPECT_EQ(hash->leftovers(), 0u);
  EXPECT_EQ(hash->items(), kTreeKeys);
  EXPECT_EQ(hash->Verify(), nullptr);
  for (uint32_t i = 0; i < kTreeKeys; ++i) ASSERT_EQ(hash->Find(DigestOf(i)), SlotOf(i));
}

// Goal: an index that has no room for all keys is given up, and the state goes on with the tree.
TEST_F(HashBuilderTest, AnIndexWithoutRoomIsGivenUp) {
  IndexMemory memory(kTreeKeys / 32, 1);
  const auto hash = memory.Create({.first_depth = 0});
  state_.set_hash(hash.get(), false);
  HashBuilder builder(context_, *hash);
  bool is_whole = false;
  while (builder.Step(&is_whole)) ASSERT_FALSE(is_whole);
  EXPECT_FALSE(state_.keeps_hash());
  EXPECT_EQ(state_.Find("17"), SlotOf(17));
}

}  // namespace
}  // namespace skep::pool

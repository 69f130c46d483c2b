// solo_pool_test.h: a simulated pool that has lost one of its index servers, and a client of it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "pool/commit_client_test.h"
#include "pool/coordinated_pool_test.h"

namespace skep::pool {

inline constexpr uint32_t kFirst = 5;
inline constexpr uint32_t kSecond = 9;
inline constexpr uint32_t kNewcomer = 20;
inline constexpr uint32_t kAnother = 30;

class SoloPoolTest : public testing::Test {
 protected:
  // A pool whose `solo` server has lost the other one, and has some state.
  void BeginSolo(uint64_t seed, uint32_t solo) {
    client_.reset();
    pool_ = std::make_unique<CoordinatedPool>(seed);
    client_ = std::make_unique<CommitClient>(*pool_, seed);
    pool_->each_turn = [this] { client_->Turn(); };
    pool_->Start(kFirst);
    pool_->Start(kSecond);
    ASSERT_TRUE(RunUntilDone(100));
    pool_->Kill(kFirst + kSecond - solo);
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(solo, 0); }));
    solo_ = solo;
    ASSERT_TRUE(pool_->RunUntil([&] {
      const IndexState* const state = StateOf(solo);
      return state->hash() != nullptr && state->tree() != nullptr;
    }));
  }
  // So many operations more.
  bool RunUntilDone(uint64_t count) {
    const uint64_t end = client_->done() + count;
    return pool_->RunUntil([&] { return client_->done() >= end; });
  }
  bool RunUntilPaired(uint32_t hash_server, uint32_t sorted_server) {
    return pool_->RunUntil([&] { return pool_->HasRoles(hash_server, sorted_server); });
  }
  void Settle() {
    client_->Rest(true);
    ASSERT_TRUE(pool_->RunUntil([&] { return client_->IsIdle(); }));
  }
  IndexState* StateOf(uint32_t id) { return pool_->at(id).index->state(); }

  // The server is solo, or becomes so, and has what the client has been told: in both indexes, once
  // it has built them. What the client sends again comes to what it came to before.
  void ExpectAllIsThere(uint32_t id) {
    Settle();
    IndexState& state = *StateOf(id);
    ASSERT_TRUE(pool_->RunUntil([&] {
      return pool_->HasRoles(id, 0) && state.hash() != nullptr && state.tree() != nullptr;
    }));
    ExpectKeys(state);
    client_->SendOldOnesAgain();
    ASSERT_TRUE(pool_->RunUntil([&] { return client_->IsIdle(); }));
    ExpectKeys(state);
    client_->Rest(false);
    ASSERT_TRUE(RunUntilDone(20));
  }
  void ExpectKeys(IndexState& state) {
    const auto& items = client_->items();
    EXPECT_EQ(state.hash()->Verify(), nullptr);
    EXPECT_EQ(state.hash()->items(), items.size());
    Batch batch;
    batch.Scan(Range::All());
    state.tree()->Execute(batch);
    ASSERT_EQ(batch.outcome(0).item_count, items.size());
    auto expected = items.begin();
    for (const Item& item : batch.items(0)) {
      EXPECT_EQ(item.key, expected->first);
      EXPECT_EQ(SlotOf(item.value), expected->second);
      EXPECT_EQ(state.hash()->Find(DigestOf(state.keys(), item.key)), expected->second);
      ++expected;
    }
    std::map<uint32_t, uint32_t> items_of_chunk;
    std::map<uint32_t, uint32_t> units_of_chunk;
    uint64_t all_units = 0;
    for (const auto& [key, slot] : items) {
      ++items_of_chunk[slot.chunk()];
      units_of_chunk[slot.chunk()] += slot.units();
      all_units += slot.units();
    }
    EXPECT_EQ(state.chunks().live_units(), all_units);
    const auto& chunks = state.chunks().all();
    for (uint32_t i = 0; i < chunks.size(); ++i) {
      EXPECT_EQ(chunks[i].items, items_of_chunk[i]);
      EXPECT_EQ(chunks[i].live_units, units_of_chunk[i]);
      const bool is_empty = chunks[i].state == Chunks::State::kSealed && chunks[i].items == 0;
      EXPECT_EQ(state.chunks().empty().contains(i), is_empty);
    }
  }

  std::unique_ptr<CoordinatedPool> pool_;
  std::unique_ptr<CommitClient> client_;
  uint32_t solo_ = 0;
};

}  // namespace skep::pool

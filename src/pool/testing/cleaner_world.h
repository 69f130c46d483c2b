// cleaner_world.h: a simulated pool with a client and an agent that are called step by step; for
// tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_engine.h"
#include "pool/cleaner.h"
#include "pool/counted_fabric_test.h"
#include "pool/testing/sim_pool.h"
#include "pool/upkeep_agent.h"

namespace skep::pool {
class CleanerWorld : public testing::Test {
 protected:
  static constexpr uint64_t kMs = 1'000'000;
  static constexpr PoolTimes kTimes = {
      .read_ns_max = 20 * kMs, .lease_ns = 200 * kMs, .silence_ns_max = 4'000 * kMs};
  static constexpr uint32_t kChunks = 8;
  static constexpr size_t kTwentieth = 100'000;  // of a chunk

  static std::unique_ptr<Engine> MakeTree() {
    static MemoryBudget budget;
    EngineOptions options;
    options.budget = &budget;
    return ModelEngine::kInfo.make(options);
  }

  void Begin(Eviction eviction = Eviction::kNone, uint32_t memory_servers = 1) {
    agent_.reset();
    engine_.reset();
    keys_.clear();
    agent_ends_ = false;
    pool_ = std::make_unique<SimPool>(1, SimPoolOptions{.fabric = {.step_ns_max = 100'000},
                                                        .memory_servers = memory_servers,
                                                        .chunks = kChunks,
                                                        .times = [](uint32_t) { return kTimes; },
                                                        .make_tree = &MakeTree});
    engine_ = NewEngine(pool_->fabric());
    eviction_ = eviction;
    agent_ = NewAgent(pool_->fabric());
  }
  std::unique_ptr<PoolEngine> NewEngine(rma::Fabric& fabric) {
    return std::make_unique<PoolEngine>(
        fabric, pool_->simulation().clock(), [this] { return pool_->map(); },
        PoolEngineOptions{.timeout_ms = 1'000});
  }
  std::unique_ptr<UpkeepAgent> NewAgent(rma::Fabric& fabric) {
    auto agent = std::make_unique<UpkeepAgent>(fabric, pool_->simulation().clock(),
                                               UpkeepOptions{.server = 1, .eviction = eviction_});
    agent->SetMap(pool_->map());
    return agent;
  }

  Status Put(const std::string& key, size_t bytes) {
    const std::string value = key + std::string(bytes, 'v') + std::to_string(++writes_);
    batch_.Clear();
    batch_.Put(key, value);
    engine_->Execute(batch_);
    const Status status = batch_.outcome(0).status;
    if (status.ok()) keys_[key] = value;
    return status;
  }
  Status Delete(const std::string& key) {
    batch_.Clear();
    batch_.Delete(key);
    engine_->Execute(batch_);
    const Status status = batch_.outcome(0).status;
    if (status.ok()) keys_.erase(key);
    return status;
  }
  static std::string NthKey(const std::string& prefix, int n) {
    return prefix + std::to_string(10'000 + n);
  }
  std::string Get(const std::string& key) {
    batch_.Clear();
    batch_.Get(key);
    engine_->Execute(batch_);
    return std::string(batch_.outcome(0).value);
  }
  // So many items with this prefix. False: not all of them.
  bool Fill(const std::string& prefix, int count, size_t bytes) {
    for (int i = 0; i < count; ++i) {
      if (!Put(NthKey(prefix, i), bytes).ok()) return false;
    }
    return true;
  }
  // Six chunks of which a tenth is left, and some items more.
  void FillWithGarbage() {
    ASSERT_TRUE(Fill("a", 120, kTwentieth));
    for (int i = 0; i < 120; ++i) {
      if (i % 10 == 0) continue;
      ASSERT_TRUE(Delete(NthKey("a", i)).ok());
    }
    ASSERT_TRUE(Fill("b", 20, kTwentieth));
  }

  void TurnOrPause(UpkeepAgent& agent) {
    if (!agent.Turn()) pool_->Sleep(UpkeepThread::kPauseMs * kMs);
  }
  // The agent works whenever the simulation runs, until it is ended.
  void AddAgentFiber() {
    const auto body = [this] {
      while (!agent_ends_) TurnOrPause(*agent_);
    };
    pool_->AddClient("agent", body, [] { return 0; });
  }
  void EndAgentFiber() {
    agent_ends_ = true;
    ASSERT_TRUE(pool_->Run(std::chrono::minutes(1)));
  }

  // So many turns of the agent, with a pause after each that has found nothing.
  void Clean(int turns) {
    for (int i = 0; i < turns; ++i) TurnOrPause(*agent_);
  }
  Slot SlotOfKey(const std::string& key) { return pool_->index_server(1)->state()->Find(key); }
  const Chunks& chunks() { return pool_->index_server(1)->state()->chunks(); }
  UpkeepFigures Figures() {
    UpkeepFigures figures;
    engine_->Describe(0, [&](std::string_view name, uint64_t value) {
      if (name == "pool_items_moved") figures.items_moved = value;
      if (name == "pool_bytes_moved") figures.bytes_moved = value;
      if (name == "pool_chunks_cleaned") figures.chunks_cleaned = value;
      if (name == "pool_items_evicted") figures.items_evicted = value;
      if (name == "pool_chunks_evicted") figures.chunks_evicted = value;
    });
    return figures;
  }

  // Every key has the value that it was given last, and the counts are those of the index.
  void ExpectAllIsThere() {
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> counted;
    for (const auto& [key, value] : keys_) {
      batch_.Clear();
      batch_.Get(key);
      engine_->Execute(batch_);
      ASSERT_EQ(batch_.outcome(0).verdict, Verdict::kDone) << key;
      ASSERT_TRUE(batch_.outcome(0).value == value) << key;
      const Slot slot = SlotOfKey(key);
      ++counted[slot.chunk()].first;
      counted[slot.chunk()].second += slot.units();
    }
    for (uint32_t i = 0; i < chunks().all().size(); ++i) {
      EXPECT_EQ(chunks().all()[i].items, counted[i].first) << i;
      EXPECT_EQ(chunks().all()[i].live_units, counted[i].second) << i;
    }
  }

  std::unique_ptr<SimPool> pool_;
  std::unique_ptr<PoolEngine> engine_;
  std::unique_ptr<UpkeepAgent> agent_;
  bool agent_ends_ = false;
  Eviction eviction_ = Eviction::kNone;
  Batch batch_;
  std::map<std::string, std::string> keys_;
  int writes_ = 0;
};

}  // namespace skep::pool

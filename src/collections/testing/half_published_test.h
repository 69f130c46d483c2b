// half_published_test.h: reads that begin while a write of several leaves has published one of them
// and not yet the others, for tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "btree/btree_engine.h"
#include "btree/core.h"
#include "collections/testing/collection_world_test.h"
#include "types/text.h"

namespace skep::collections {

// Two things that each write makes the same, and reads of both. Another write, which is stopped in
// its middle, holds back the release of all these.
class HalfPublished {
 public:
  // `write` and `write_near` do not wait for the release, which the stopped write holds back.
  struct Scene {
    std::function<void(Engine&)> fill;
    std::function<void(Engine&, int number)> write;       // makes both things of this number
    std::function<void(Engine&, int number)> write_near;  // something else in the same leaves
    std::function<std::string(Engine&)> read;             // both things, as texts
  };

  explicit HalfPublished(Scene scene) : scene_(std::move(scene)) {
    auto tree = BtreeEngine::Make({.budget = &budget_});
    tree_ = static_cast<BtreeEngine*>(tree.get());
    engine_ = std::make_unique<CollectionEngine>(std::move(tree), 8192);
    scene_.fill(*engine_);
  }

  void Run() {
    tree_->core().hook = {.call = &HalfPublished::AtPoint, .context = this};
    for (int round = 0; round < kRounds; ++round) {
      Batch put;
      put.Put("other", "value");
      tells_ = Tells::kStall;
      engine_->Execute(put);
      tells_ = Tells::kNothing;
      if (reader_.joinable()) reader_.join();
    }
    tree_->core().hook = {};
    EXPECT_GT(stops_, 0);
    EXPECT_STREQ(engine_->Verify(), nullptr);
  }

 private:
  enum class Tells : uint8_t { kNothing, kStall, kPublish };
  static constexpr int kRounds = 40;

  static void AtPoint(void* context, btree::SyncPoint point) {
    static_cast<HalfPublished*>(context)->At(point);
  }
  void At(btree::SyncPoint point) {
    if (tells_ == Tells::kStall && point == btree::SyncPoint::kWriterFoundLeaf) {
      tells_ = Tells::kNothing;
      std::thread([this] { Write(); }).join();
    } else if (tells_ == Tells::kPublish && point == btree::SyncPoint::kMergeMapped) {
      if (reader_.joinable()) return;
      ++stops_;
      BeginRead();
    }
  }
  // Writes until a read has begun. That may have its turn at the key until the release, so later
  // writes would wait for it, and it for the write that has begun them.
  void Write() {
    for (int i = 0; i < 60 && !reader_.joinable(); ++i) {
      ++number_;
      tells_ = Tells::kPublish;
      scene_.write(*engine_, number_);
      tells_ = Tells::kNothing;
      if (reader_.joinable()) return;
      scene_.write_near(*engine_, number_);
    }
  }
  // A read that waits for this write does not end before it goes on: it is given some time to be
  // wrong in.
  void BeginRead() {
    const auto is_done = std::make_shared<std::atomic<bool>>(false);
    reader_ = std::thread([this, is_done] {
      types::Texts texts;
      const std::string found = scene_.read(*engine_);
      ASSERT_TRUE(types::TakeTexts(found, &texts));
      ASSERT_EQ(texts.size(), 2u);
      EXPECT_EQ(texts.front(), texts.back());
      *is_done = true;
    });
    for (int i = 0; i < 30 && !*is_done; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  inline static thread_local Tells tells_ = Tells::kNothing;
  const Scene scene_;
  MemoryBudget budget_{0};
  BtreeEngine* tree_ = nullptr;
  std::unique_ptr<CollectionEngine> engine_;
  std::thread reader_;
  int number_ = 0;
  int stops_ = 0;
};

}  // namespace skep::collections

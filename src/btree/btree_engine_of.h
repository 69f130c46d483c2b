// btree_engine_of.h: the tree of one layout as an engine.
//
// BtreeEngine has everything that needs no layout. BtreeEngineOf executes batches
// (batch_executor.h) and does all else that looks into nodes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "btree/btree_engine.h"
#include "btree/core.h"
#include "btree/expirer.h"
#include "btree/log_merger.h"
#include "btree/reclaim.h"
#include "btree/upkeep.h"
#include "engine/plain_gets.h"

namespace skep {

namespace btree {

// Tells the freer about the contents of nodes of this layout.
template <class Layout>
class ContentsOf final : public NodeContents {
 public:
  // Called after the constructor: the core is made with its contents, which need its codec and
  // counters.
  void Bind(Core& core) { core_ = &core; }

  void Children(const NodeHeader* inner, std::vector<Link>* children) const override {
    const typename Layout::Inner view(core_->codec, inner);
    std::vector<typename Layout::InnerItem> items;
    view.CopyTo(&items);
    children->push_back(view.leftmost());
    for (const auto& item : items) children->push_back(item.child);
  }
  void Blocks(const NodeHeader* node, uint32_t used,
              std::vector<OutsideBlock>* blocks) const override {
    if (!core_->has_blocks.load(std::memory_order_relaxed)) return;
    Layout::BlocksOf(core_->codec, node, used, blocks);
  }
  void HasLeft(const NodeHeader* node) const override {
    (node->is_leaf() ? core_->leaves : core_->inner_nodes).fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Core* core_ = nullptr;
};

}  // namespace btree

template <class Layout>
class BtreeEngineOf final : public BtreeEngine, public ExpirySource, public PlainGets {
 public:
  explicit BtreeEngineOf(const EngineOptions& options);
  ~BtreeEngineOf() override;

  // Makes the root, an empty leaf. False: no memory. Called before anything else.
  bool CreateRoot();

  Version Execute(Batch& batch) override;
  std::optional<Version> GetPlain(std::string_view key, std::optional<std::string>* value) override;
  Version GetManyPlain(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                       PlainValues values) override;
  void ObserveExpiry(ExpiryObserver* observer) override {
    core_.expiry_observer.store(observer, std::memory_order_release);
  }
  bool Maintain(uint64_t now_ms) override;
  void Release() override { upkeep_.Release(); }
  // Null, too, for a tree that has had more than a leaf.
  std::unique_ptr<BulkLoad> OpenBulkLoad() override;
  const char* Verify() const override;
  LeafLinks LinksFrom(std::string_view from, uint32_t links_max, size_t bytes_max) const override;
  btree::Core& core() const override { return core_; }

 private:
  std::optional<uint64_t> AddWatch(std::string_view key, uint64_t now_ms) override;

  btree::ContentsOf<Layout> contents_;
  mutable btree::Core core_;
  btree::Upkeep upkeep_;
  btree::Expirer<Layout> expirer_;
  btree::LogMerger<Layout> log_merger_;
};

}  // namespace skep

// bulk_load.h: builds a tree from its leaves up, instead of inserting key by key.
//
// A part makes leaves of the pairs as they come, filled to nine tenths, so that some keys may come
// before a leaf is split; a buffer is as long as its items and its log, so the free tenth takes no
// memory. When all parts are there, their leaves become neighbours, and inner nodes are built over
// them, level by level; the last one replaces the empty root.
//
// Every node is published by a StructureChange of its own, with a version of its own, where no
// search comes to it; the change of the root shows them all. No other thread uses the tree
// meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "btree/core.h"
#include "btree/structure_change.h"
#include "btree/upkeep.h"
#include "engine/bulk_load.h"

namespace skep::btree {

template <class Layout>
class TreeBulkLoad final : public BulkLoad {
 public:
  // Requires a tree without items, whose root is a leaf.
  TreeBulkLoad(Core& core, Upkeep& upkeep, const EngineTraits& traits)
      : core_(core), upkeep_(upkeep), traits_(traits) {}

  std::unique_ptr<BulkLoad::Part> Open(std::string_view lower,
                                       std::optional<std::string> upper) override;
  Status Finish() override;

 private:
  class Part;
  struct Child {
    std::string lower;  // the first key it may have
    Link link;
  };
  using Children = std::vector<Child>;

  Link BuildInner(ThreadState& thread, uint8_t level, std::span<const Child> children,
                  const std::string* upper, Link root);
  size_t CountFitting(std::span<const Child> children) const;
  Status NoMemory() const {
    return {Code::kOutOfMemory, "the memory limit is reached", core_.budget.limit()};
  }

  Core& core_;
  Upkeep& upkeep_;
  const EngineTraits& traits_;
  Mutex mutex_;
  std::vector<Children> parts_ SKEP_GUARDED_BY(mutex_);  // the leaves of the finished parts
};

}  // namespace skep::btree

// tree_test_within.h: lets one thread play two: in the middle of a batch it executes others.
#pragma once

#include <functional>
#include <utility>

#include "btree/testing/tree_test_tree.h"

namespace skep::btree {

// Executes `batch`, and `inside` when the batch first comes to `point`. The batches in `inside`
// must not need a lock that `batch` holds there.
inline void RunWithin(TestTree& tree, Batch& batch, SyncPoint point, std::function<void()> inside) {
  struct Stop {
    SyncPoint point;
    std::function<void()> inside;
  } stop{point, std::move(inside)};
  tree.core().hook = {.call =
                          [](void* context, SyncPoint here) {
                            Stop& at = *static_cast<Stop*>(context);
                            if (here != at.point || !at.inside) return;
                            std::exchange(at.inside, nullptr)();
                          },
                      .context = &stop};
  tree.Execute(batch);
  tree.core().hook = {};
  EXPECT_FALSE(stop.inside) << "never came to the point";
}

}  // namespace skep::btree

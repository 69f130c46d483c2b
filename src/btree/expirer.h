// expirer.h: reclaiming keys whose deadline has passed.
//
// Such keys are gone for every reader already; what is left to do is to free their memory. A leaf
// whose turn it is (expiry_queue.h) is built anew without them, by a change like any other, at a
// version of its own: snapshots that still see the keys keep the old buffer.
#pragma once

#include "btree/change.h"
#include "btree/core.h"
#include "btree/structure.h"

namespace skep::btree {

// The caller's slot is outside its epoch. Thread-safe.
template <class Layout>
class Expirer {
 public:
  explicit Expirer(Core& core) : core_(core), structure_(core), reader_(core) {}

  // Looks at up to `leaves_max` leaves, the one with the earliest deadline first. Returns whether
  // there are more that are due. Cost: a merge for each leaf, some 20 us.
  bool Run(Slot& slot, uint64_t now_ms, uint32_t leaves_max);

 private:
  void Clean(Slot& slot, const ExpiryQueue::Entry& due, uint64_t now_ms);
  void TryClean(Slot& slot, const LeafPlace& place, uint64_t now_ms);

  Core& core_;
  Structure<Layout> structure_;
  const Reader<Layout> reader_;
};

}  // namespace skep::btree

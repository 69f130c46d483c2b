// expirer.h: reclaiming keys whose deadline has passed.
//
// Readers do not see such keys any more; what is left to do is to free their memory. A leaf that is
// due (expiry_queue.h) is built anew without them, by a change like any other, at a version of its
// own: snapshots that still see the keys keep the old buffer.
//
// No thread waits for that, and the processor is needed elsewhere, so the expirer works in small
// pieces, in one thread at a time, and begins some time after the deadline: a leaf whose keys
// expire one after the other is cleaned once for many. The pieces grow if it falls behind.
//
// If the queue has lost an entry for want of memory, all leaves are looked at again, from left
// to right, a piece with each call.
#pragma once

#include <string>

#include "base/mutex.h"
#include "btree/core.h"
#include "btree/split_join.h"
#include "btree/structure_change.h"

namespace skep::btree {

// Thread-safe. The calling thread is outside its epoch.
template <class Layout>
class Expirer {
 public:
  explicit Expirer(Core& core) : core_(core), split_join_(core), reader_(core) {}

  // Cleans a leaf or a few whose deadline was `lag_ms` ago or more, the earliest first. Returns
  // whether there are more; false also if another thread is cleaning. Throws std::bad_alloc. Cost:
  // some 10 us for each leaf.
  bool Run(ThreadState& thread, uint64_t now_ms, uint64_t lag_ms);

 private:
  void FindLost(ThreadState& thread) SKEP_REQUIRES(mutex_);
  void Clean(ThreadState& thread, const ExpiryQueue::Entry& due, uint64_t now_ms);
  void TryClean(ThreadState& thread, const LeafPlace& place, uint64_t now_ms);

  Mutex mutex_;  // held while a thread cleans
  // Where FindLost goes on; empty: at the first leaf.
  std::string look_from_ SKEP_GUARDED_BY(mutex_);
  uint64_t look_for_ SKEP_GUARDED_BY(mutex_) = 0;  // ExpiryQueue::lost() when FindLost began
  Core& core_;
  SplitJoin<Layout> split_join_;
  const Reader<Layout> reader_;
};

}  // namespace skep::btree

// upkeep.h: work beside the operations: releasing versions, reclaiming, making room.
#pragma once

#include "btree/core.h"

namespace skep::btree {

// Thread-safe; `thread` is the caller's own, or taken by nobody.
class Upkeep {
 public:
  explicit Upkeep(Core& core) : core_(core) {}

  // Releases every version that is finished. Cost: one load for each thread.
  void Release();

  // Reclaims a little, in proportion to what the batch has retired. The thread is out of its epoch.
  void AfterBatch(ThreadState& thread);

  // The most pieces of each kind (reclaim.h) that one call of Maintain visits: well under a
  // millisecond.
  static constexpr uint32_t kPiecesMaintain = 512;

  // Does a bounded piece of all upkeep but that of expired keys (expirer.h). True if there is more
  // to do now.
  bool Maintain(ThreadState& thread, uint64_t now_ms);

  // How often an operation that finds no memory may ask for room before it is refused. While other
  // threads free and take, something was always freed, so without a bound it might never end.
  static constexpr uint32_t kRoomsMax = 16;

  // Makes room after an allocation failed: reclaims until `wanted` bytes and some more are freed.
  // If that is not enough, gives up snapshots, the oldest first, until `wanted` bytes are freed;
  // but none if all of them together would not make that much room, and none while executing
  // readers hold back pieces that are on their way out. So a write may be refused that would fit a
  // moment later. Returns whether another try has a chance: some thread has freed memory meanwhile,
  // or there is room now. The thread's epoch ends and begins again, so the caller must begin its
  // operation again; it holds no locks. Waits for other threads that reclaim, for a bounded piece
  // of their work.
  bool MakeRoom(ThreadState& thread, uint64_t wanted);

 private:
  class Freed;
  void ReclaimUntil(ThreadState& thread, const Freed& freed, uint64_t wanted);
  bool MayFit(uint64_t wanted) const;
  // Takes over the pieces that idle threads have retired, and the slots in their caches.
  void ClearIdleThreads(ThreadState& own);

  Core& core_;
};

}  // namespace skep::btree

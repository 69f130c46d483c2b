// upkeep.h: what is done beside the operations: releasing versions, reclaiming, making room.
#pragma once

#include "btree/core.h"

namespace skep::btree {

// Thread-safe; `thread` is the caller's own, or of nobody.
class Upkeep {
 public:
  explicit Upkeep(Core& core) : core_(core) {}

  // Releases every version that is finished. Cost: one load a thread.
  void Release();

  // A little reclaiming, in proportion to what the batch has retired. Outside the thread's epoch.
  void AfterBatch(ThreadState& thread);

  // Buffers, blocks and nodes that one call of Maintain visits of each kind that reclaim.h has, at
  // most: well under a millisecond.
  static constexpr uint32_t kPiecesMaintain = 512;

  // A bounded piece of everything there is to do but for keys that expire (expirer.h). True if
  // there is more to do now.
  bool Maintain(ThreadState& thread, uint64_t now_ms);

  // How often an operation that finds no memory may ask for room before it is refused. While others
  // free and take, there is always something that was freed, so without a bound it might never end.
  static constexpr uint32_t kRoomsMax = 16;

  // After an allocation failed: reclaims what can be, until `wanted` bytes and some more are freed.
  // If that is not enough, gives up snapshots, the oldest first, until `wanted` bytes are freed;
  // but none if all of them together would not make room for so much, and none while executing
  // readers hold back what is on its way out. So a write may be refused that would fit a moment
  // later. Returns whether another try has a chance: memory was freed meanwhile, by whomever, or
  // there is room now. The thread's epoch ends and begins again, so the caller must begin its
  // operation again; it holds no locks. Waits for other threads that reclaim, for a bounded piece
  // of that.
  bool MakeRoom(ThreadState& thread, uint64_t wanted);

 private:
  class Freed;
  void ReclaimUntil(ThreadState& thread, const Freed& freed, uint64_t wanted);
  bool MayFit(uint64_t wanted) const;
  // Takes over what idle threads have retired, and what their caches hold.
  void ClearIdleThreads(ThreadState& own);

  Core& core_;
};

}  // namespace skep::btree

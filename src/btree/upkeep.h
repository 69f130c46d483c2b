// upkeep.h: what is done beside the operations: releasing versions, reclaiming, making room.
#pragma once

#include "btree/core.h"

namespace skep::btree {

// Thread-safe; `slot` is the caller's own, or of nobody.
class Upkeep {
 public:
  explicit Upkeep(Core& core) : core_(core) {}

  // Releases every version that is finished. Cost: one load a slot.
  void Release();

  // A little reclaiming, in proportion to what the batch has retired. Outside the slot's epoch.
  void AfterBatch(Slot& slot);

  // Buffers, blocks and nodes that one call of Maintain visits of each kind that reclaim.h has, at
  // most: well under a millisecond.
  static constexpr uint32_t kPiecesMaintain = 512;

  // A bounded piece of everything there is to do but for keys that expire (expirer.h). True if
  // there is more to do now.
  bool Maintain(Slot& slot, uint64_t now_ms);

  // After an allocation failed: reclaims what can be; gives up the oldest snapshot if that is not
  // enough. False: nothing can be freed. The slot's epoch ends and begins again, so the caller must
  // begin its operation again; it holds no locks.
  bool MakeRoom(Slot& slot);

 private:
  bool ReclaimAll(Slot& slot);
  // Takes over what idle slots have retired, and what their caches hold.
  void ClearIdleSlots(Slot& own);

  Core& core_;
};

}  // namespace skep::btree

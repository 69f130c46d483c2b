#include "btree/upkeep.h"

#include <new>
#include <thread>

namespace skep::btree {
namespace {

constexpr uint32_t kPiecesAfterBatch = 16;  // at least
constexpr uint32_t kVisitsOfBuffer = 4;     // at most; reclaim.h
constexpr uint32_t kPiecesMakeRoom = 1 << 16;

}  // namespace

void Upkeep::Release() {
  if (core_.multi_version) core_.gate.Release(core_.versions.Complete());
}

void Upkeep::AfterBatch(Slot& slot) {
  if (slot.retired.empty()) return;
  // More than what came needs, so that a backlog shrinks.
  const auto pieces =
      static_cast<uint32_t>(kVisitsOfBuffer * slot.retired.size()) + kPiecesAfterBatch;
  try {
    core_.reclaimer.Run(slot, pieces);
  } catch (const std::bad_alloc&) {
    // The batch is done; what it has retired waits.
  }
}

bool Upkeep::Maintain(Slot& slot, uint64_t now_ms) {
  core_.snapshots.CloseExpired(now_ms);
  Release();
  ClearIdleSlots(slot);
  const bool more = core_.reclaimer.Run(slot, kPiecesMaintain);
  if (more) return true;
  core_.arena.Flush(slot.cache);
  return core_.arena.Trim();
}

void Upkeep::ClearIdleSlots(Slot& own) {
  core_.slots.ForEach([&](Slot& slot) {
    if (&slot == &own || !core_.slots.TryTake(slot)) return;
    try {
      own.retired.insert(own.retired.end(), slot.retired.begin(), slot.retired.end());
    } catch (const std::bad_alloc&) {
      return core_.slots.Give(slot);  // another time
    }
    slot.retired.clear();
    core_.arena.Flush(slot.cache);
    core_.slots.Give(slot);
  });
}

bool Upkeep::ReclaimAll(Slot& slot) {
  const uint64_t before = core_.arena.Statistics().allocated_bytes;
  while (core_.reclaimer.Run(slot, kPiecesMakeRoom, true)) {
  }
  core_.arena.Flush(slot.cache);
  while (core_.arena.Trim()) {
  }
  return core_.arena.Statistics().allocated_bytes < before;
}

bool Upkeep::MakeRoom(Slot& slot) {
  core_.versions.LeaveEpoch(slot);
  core_.versions.EndWrites(slot);
  Release();
  ClearIdleSlots(slot);
  bool freed = ReclaimAll(slot);
  // While readers hold back what is on its way out, giving up snapshots frees nothing now.
  while (!freed && !core_.reclaimer.Statistics().is_held_back() && core_.snapshots.kept() > 0 &&
         core_.snapshots.CloseOldest()) {
    freed = ReclaimAll(slot);
  }
  core_.versions.BeginWrites(slot);
  core_.versions.EnterEpoch(slot);
  return freed;
}

}  // namespace skep::btree

#include "btree/upkeep.h"

#include <algorithm>
#include <new>

namespace skep::btree {
namespace {

constexpr uint32_t kPiecesAfterBatch = 16;  // at least so many a batch
constexpr uint32_t kVisitsOfBuffer = 4;     // at most; reclaim.h
constexpr uint32_t kPiecesMakeRoom = 4096;  // pieces of a run; others wait for its end
constexpr uint64_t kSpareBytes = 1 << 20;   // reclaimed beyond what is wanted

}  // namespace

void Upkeep::Release() { core_.multi_version.Release(core_.versions, core_.gate); }

void Upkeep::AfterBatch(ThreadState& thread) {
  if (thread.retired.empty()) return;
  // More pieces than the batch has added need, so that a backlog shrinks.
  const auto pieces =
      static_cast<uint32_t>(kVisitsOfBuffer * thread.retired.size()) + kPiecesAfterBatch;
  try {
    core_.reclaimer.Run(thread, pieces);
  } catch (const std::bad_alloc&) {
    // The batch is done; the pieces that it has retired wait.
  }
}

bool Upkeep::Maintain(ThreadState& thread, uint64_t now_ms) {
  core_.snapshots.CloseExpired(now_ms);
  Release();
  ClearIdleThreads(thread);
  const bool more = core_.reclaimer.Run(thread, kPiecesMaintain);
  if (more) return true;
  core_.arena.Flush(thread.cache);
  return core_.arena.Trim();
}

void Upkeep::ClearIdleThreads(ThreadState& own) {
  core_.threads.ForEach([&](ThreadState& thread) {
    if (&thread == &own || !core_.threads.TryTake(thread)) return;
    try {
      own.retired.insert(own.retired.end(), thread.retired.begin(), thread.retired.end());
    } catch (const std::bad_alloc&) {
      return core_.threads.Give(thread);  // tried again another time
    }
    thread.retired.clear();
    core_.arena.Flush(thread.cache);
    core_.threads.Give(thread);
  });
}

// Measures how many bytes any thread has freed since the object was made, as they are room for
// every thread. A fall of the allocated bytes alone does not tell, since other threads may have
// taken them again; nor do the bytes that the freer has freed, since slots also come back from
// caches.
class Upkeep::Freed {
 public:
  explicit Freed(const Core& core)
      : core_(core),
        freed_before_(core.reclaimer.freed_bytes()),
        allocated_before_(core.arena.Statistics().allocated_bytes) {}
  uint64_t bytes() const {
    const uint64_t allocated = core_.arena.Statistics().allocated_bytes;
    return std::max(core_.reclaimer.freed_bytes() - freed_before_,
                    allocated_before_ - std::min(allocated_before_, allocated));
  }

 private:
  const Core& core_;
  const uint64_t freed_before_;
  const uint64_t allocated_before_;
};

void Upkeep::ReclaimUntil(ThreadState& thread, const Freed& freed, uint64_t wanted) {
  while (core_.reclaimer.Run(thread, kPiecesMakeRoom, true) && freed.bytes() < wanted) {
  }
  core_.arena.Flush(thread.cache);
  while (core_.arena.Trim()) {
  }
}

// Whether `wanted` bytes might find room if all snapshots were given up that may be. Free space
// between allocations counts as room, so the answer may be yes too often, but never no without
// cause.
bool Upkeep::MayFit(uint64_t wanted) const {
  const uint64_t revocable = core_.snapshots.RevocableBytes();
  const uint64_t limit = core_.budget.limit();
  if (revocable == 0 || limit == 0) return revocable > 0;
  const ArenaStatistics arena = core_.arena.Statistics();
  const uint64_t free = arena.held_bytes - std::min(arena.held_bytes, arena.allocated_bytes);
  return core_.budget.used() + wanted <= limit + free + revocable;
}

bool Upkeep::MakeRoom(ThreadState& thread, uint64_t wanted) {
  core_.versions.LeaveEpoch(thread);
  core_.versions.EndWrites(thread);
  Release();
  const Freed freed(core_);
  ClearIdleThreads(thread);
  ReclaimUntil(thread, freed, wanted + kSpareBytes);
  // While readers hold back pieces on their way out, giving up snapshots frees nothing now.
  while (freed.bytes() < std::max<uint64_t>(wanted, 1) &&
         !core_.reclaimer.Statistics().is_held_back() && MayFit(wanted) &&
         core_.snapshots.CloseOldest()) {
    ReclaimUntil(thread, freed, wanted + kSpareBytes);
  }
  core_.versions.BeginWrites(thread);
  core_.versions.EnterEpoch(thread);
  // Other threads may have freed memory before this one began to look.
  const bool has_room =
      core_.budget.limit() != 0 && core_.budget.HasRoomFor(wanted + Arena::kSpanBytes);
  return has_room || freed.bytes() > 0;
}

}  // namespace skep::btree

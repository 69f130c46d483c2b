// atomic_batch.h: batches that are applied whole or not at all, at one version.
//
// There are two kinds: AtomicPoints (atomic_points.h) and AtomicRanges (atomic_ranges.h). Each
// locks leaves in its own way; the rest is the same and is here.
//
//   try       lock leaves, from left to right, as the kind does; perform the requests, in order, on
//             a copy of the few keys that they name; write what has changed (atomic_commit.h)
//   again     if the try was in vain: from the beginning, at the same request, with nothing held
//   refuse    if there is no memory, and the room that Upkeep makes is not enough: once more
//             without the parts that store something; if that needs memory too, nothing is applied
//
// Parts. Each is judged and performed on what the parts before have left in the copy; one that
// fails is taken back there. What is written in the end is what the copy has become.
//
// Locks. A batch that holds a leaf's lock waits only for locks further right, and no thread that
// holds a lock to the right waits for one to the left, so there is no deadlock. A batch that waits
// for a lock looks at the phase (protocol P of versions.h) and gives everything up when that
// changes. Before its first lock a batch lets the writes go first that have a turn at that leaf
// (tries.h).
//
// Why the tries end. A try is in vain because
//   the writers were stopped     at most two stops for each operation (P4)
//   leaves had to be split       they have the room that was wanted, unless others take it again:
//                                no bound but chance. A batch yields after three tries
//   there was no memory          Upkeep::kRoomsMax times, twice
// and within a try a lock is tried for again if the leaf changed after it was found: no bound but
// chance; it yields after 64.
//
// A batch that stalls holds back the writes of the leaves it has locked, and what its epoch and its
// write floor hold back (versions.h): the freeing of what was unlinked since it began, and the
// release of versions that were drawn since.
#pragma once

#include <optional>
#include <string_view>

#include "btree/atomic_commit.h"
#include "btree/atomic_lists.h"
#include "btree/core.h"
#include "btree/look_ahead.h"
#include "btree/reader.h"
#include "btree/structure.h"
#include "btree/structure_change.h"
#include "btree/upkeep.h"
#include "engine/atomic_parts.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// The state that both kinds of atomic batch work with.
template <class Layout>
struct AtomicContext {
  Core& core;
  Upkeep& upkeep;
  ThreadState& thread;  // inside an epoch; has called BeginWrites
  LookAhead<Layout>& look_ahead;
  Batch& batch;
  BatchWriter& out;
  const EngineTraits& traits;
  AtomicLists& lists;  // empty, or those of an earlier batch
};

// Owner: one execution of one batch.
template <class Layout>
class AtomicBatch {
 public:
  static constexpr size_t kKeysKept = 1024;

  explicit AtomicBatch(const AtomicContext<Layout>& context);
  virtual ~AtomicBatch() = default;
  AtomicBatch(const AtomicBatch&) = delete;
  AtomicBatch& operator=(const AtomicBatch&) = delete;

  // Once. Returns the highest version it has seen or made. If the batch has more than kKeysKept
  // requests, the lists give their memory back.
  Version Execute();

  // For ExecuteParts.
  void BeginPart(const Part& part);
  void Perform(uint32_t index);
  std::optional<uint32_t> FinishPart(const Part&) { return std::nullopt; }
  void TakeBack(const Part& part);

 protected:
  // --- The kind's. ---
  virtual Attempt Try() = 0;
  // What the batch sees of the key that a request names; of that of the request itself.
  virtual KeyState& StateOf(std::string_view key) = 0;
  virtual KeyState& OwnState(uint32_t index) = 0;
  // The same if the batch has looked at the key; else null.
  virtual const KeyState* Find(std::string_view key) = 0;
  // Fills in the outcome of a request, and makes of the copy what the request wants.
  virtual void PerformSlot(uint32_t index);

  const Request& request(uint32_t index) const { return batch_.requests()[index]; }
  Status Check(const Request& request) const {
    return IsSoundPoint(request, traits_) ? Status() : CheckRequest(request, batch_, traits_);
  }
  void BeginTry();
  void AddKey(KeyState* state, bool writes);
  Attempt LockKeys(StructureChange<Layout>& change);
  void AwaitTickets(const LeafPlace& leaf);
  void Look(const LeafPlace& place, KeyState* state);
  void Reflect(KeyState* state) const;
  bool PerformAll();
  void SetState(KeyState& state, const PointEffect& effect);
  Attempt Commit(StructureChange<Layout>& change);

  Core& core_;
  ThreadState& thread_;
  LookAhead<Layout>& look_ahead_;
  Batch& batch_;
  BatchWriter& out_;
  const Reader<Layout> reader_;
  AtomicLists& lists_;
  uint64_t now_ms_ = 0;
  Version seen_ = 0;
  bool is_alone_ = false;  // the other writers are stopped

 private:
  Version Run();
  uint64_t BytesToStore() const;
  bool LockLeaf(StructureChange<Layout>& change, uint32_t i, LeafPlace* place);
  void PerformPoint(uint32_t index);
  void PerformMove(uint32_t index);
  void RequireUnchanged(uint32_t index);
  void TellVersion(Version version);
  void BalanceErased();
  void RefuseForMemory(uint32_t index);

  Upkeep& upkeep_;
  const EngineTraits& traits_;
  Structure<Layout> structure_;
  AtomicCommit<Layout> commit_;
  bool no_room_ = false;  // what stores something is refused, and with it its part
  bool stored_ = false;   // the request that is being performed has stored something
  bool undoes_ = false;   // the part that is being performed may be taken back, and others not
};

}  // namespace skep::btree

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
// Parts. Each part is judged and performed on the copy as the parts before have left it; the
// changes of a part that fails are taken back there. The final state of the copy is written.
//
// Locks. A batch that holds a leaf's lock waits only for locks further right, and no thread that
// holds a lock to the right waits for one to the left, so there is no deadlock. A batch that waits
// for a lock looks at the phase (protocol P of versions.h) and gives everything up when that
// changes. Before its first lock a batch lets the writes go first that have a turn at that leaf
// (tries.h).
//
// Why the tries end. A try is in vain because
//   the writers were stopped     at most two stops for each operation (P4)
//   leaves had to be split       the splits make the room that was wanted, unless others take it
//                                again: no bound but chance. A batch yields after three tries
//   there was no memory          Upkeep::kRoomsMax times, twice
// Within a try a lock is tried for again if the leaf changed after it was found: no bound but
// chance; it yields after 64.
//
// A batch that stalls holds back the writes of the leaves it has locked, and all that its epoch and
// its write floor hold back (versions.h): the freeing of pieces unlinked since it began, and the
// release of versions drawn since.
#pragma once

#include <optional>
#include <string_view>

#include "btree/atomic_commit.h"
#include "btree/atomic_lists.h"
#include "btree/core.h"
#include "btree/look_ahead.h"
#include "btree/reader.h"
#include "btree/split_join.h"
#include "btree/structure_change.h"
#include "btree/upkeep.h"
#include "engine/atomic_parts.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// The state with which both kinds of atomic batch work.
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
// It has 31 methods: the steps of a try, which both kinds share, and the five that each has of its
// own.
template <class Layout>
class AtomicBatch {
 public:
  static constexpr size_t kKeysKept = 1024;

  explicit AtomicBatch(const AtomicContext<Layout>& context);
  virtual ~AtomicBatch() = default;
  AtomicBatch(const AtomicBatch&) = delete;
  AtomicBatch& operator=(const AtomicBatch&) = delete;

  // Executes the batch. Called once. Returns the highest version it has seen or made. If the batch
  // has more than kKeysKept requests, the lists give their memory back.
  Version Execute();

  // The visitor of ExecuteParts.
  void BeginPart(const Part& part);
  void Perform(uint32_t index);
  std::optional<uint32_t> FinishPart(const Part&) { return std::nullopt; }
  void TakeBack(const Part& part);

 protected:
  // --- Each kind has its own. ---
  virtual Attempt Try() = 0;
  // The state of a key that a request names; OwnState: of the request's own key.
  virtual KeyState& StateOf(std::string_view key) = 0;
  virtual KeyState& OwnState(uint32_t index) = 0;
  // The state of the key if the batch has looked at it; else null.
  virtual const KeyState* Find(std::string_view key) = 0;
  // Fills in the outcome of a request, and applies the request to the copy.
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
  void ReadPieces(KeyState* state);
  // `pieces`, and their `edit`: the value to store, if it is in pieces; else the effect has it.
  void SetState(KeyState& state, const PointEffect& effect, std::optional<StoredValue> pieces = {},
                EditedPieces* edit = nullptr);
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
  static bool MayEdit(const Request& request, const KeyState& state);
  void PerformEdit(uint32_t index, KeyState& state);
  void PerformMove(uint32_t index);
  void RequireUnchanged(uint32_t index);
  void TellVersion(Version version);
  void BalanceErased();
  void RefuseForMemory(uint32_t index);

  Upkeep& upkeep_;
  const EngineTraits& traits_;
  SplitJoin<Layout> split_join_;
  AtomicCommit<Layout> commit_;
  bool no_room_ = false;  // requests that store are refused, and with each its part
  bool applies_ = false;  // the slot is a function
  bool stored_ = false;   // the request that is performed now has stored something
  bool undoes_ = false;   // the part that is performed now may be taken back while others are not
  uint32_t part_ = 0;     // the number of that part, in all tries
};

}  // namespace skep::btree

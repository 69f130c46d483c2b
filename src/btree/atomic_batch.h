// atomic_batch.h: batches that are applied whole or not at all, at one version.
//
// Points only. The leaves of all keys are locked, from left to right; then the requests are judged
//   and performed in order on a copy of the few values they name; then everything that needs memory
//   is made; then one version is drawn, written into every item, and the leaves are unlocked.
//   Waiting for a leaf's lock is only waiting to the right, so there is no deadlock; and nobody who
//   holds a lock to the right waits for one to the left.
// Ways. The keys go down in windows, in their order (look_ahead.h), those of a window after the
//   leaves of the one before are locked. That is only reading, and what it finds are places: one
//   that holds no longer is looked for from the root. A leaf that is locked as it was found is the
//   newest of its LID and stays so; so a place that holds and is the leaf locked last needs no
//   other lock, and no key between two of one leaf is of another one. Nothing is detached between
//   the look and the lock: who detaches waits until this operation, begun before the look, is over
//   (P1).
// With ranges. The leaves of the ranges are locked too, in one sweep from left to right with those
//   of the points; of a range with a limit as many as hold so many keys. So whoever writes
//   elsewhere is not held up, and a condition on an empty range locks a leaf or two. The requests
//   are performed on a copy of what they touch, laid over the newest state; a range delete is one
//   delete for each key. Then as above. The other writers are stopped (protocol P) only if that is
//   not enough: where a range spans more than kLeavesHeldMax leaves, where a limit reaches further
//   since the batch itself deletes what it would have counted, and for samples and floors, which
//   may be anywhere.
//
// Room. A leaf whose log has no room for its items is merged with them; if that does not fit it is
// split beforehand, into as many as will be needed (structure.h: that changes no data), and the
// batch begins again. So at the moment of the version nothing can fail. If there is no memory, it
// begins again without the parts that store something.
//
// Parts. Each is judged and performed on what the parts before have left in the copy; one that
//   fails is taken back there. What is written in the end is what the copy has become.
//
// Cost: sorting the keys. A batch of points allocates nothing if its thread has executed one of as
// many keys before, up to kKeysKept, and no leaf is merged. One with ranges: a map entry for each
// key that it names or deletes; it holds up those that write to its leaves, not the readers, for as
// long as it takes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "btree/change.h"
#include "btree/core.h"
#include "btree/look_ahead.h"
#include "btree/reader.h"
#include "btree/structure.h"
#include "btree/upkeep.h"
#include "btree/writer.h"
#include "engine/atomic_parts.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// Whether a batch has requests that may name any number of keys.
bool NamesRanges(const Batch& batch);

// Owner: one execution of one batch. The slot is inside an epoch and has called BeginWrites.
// kHasRanges: NamesRanges(batch).
template <class Layout, bool kHasRanges>
class AtomicBatch {
 public:
  AtomicBatch(Core& core, Upkeep& upkeep, Slot& slot, LookAhead<Layout>& look_ahead, Batch& batch,
              BatchWriter& out, const EngineTraits& traits)
      : core_(core),
        upkeep_(upkeep),
        slot_(slot),
        look_ahead_(look_ahead),
        batch_(batch),
        out_(out),
        traits_(traits),
        structure_(core),
        reader_(core),
        lists_(ListsOfThread()) {}

  // Returns the highest version it has seen or made.
  Version Execute();

  // For ExecuteParts.
  void BeginPart(const Part& part);
  void Perform(uint32_t index);
  std::optional<uint32_t> FinishPart(const Part&) { return std::nullopt; }
  void TakeBack(const Part& part);

 private:
  using Found = typename Layout::Found;
  // A key as the batch sees it.
  struct State {
    Found found;           // before, maybe expired
    bool present = false;  // now
    std::string_view value;
    uint64_t deadline_ms = 0;
    bool changed = false;
  };
  // Of the batch's keys, in order: without ranges, all are there from the beginning. The views live
  // as long as the batch, the nodes by the epoch.
  using States = std::conditional_t<kHasRanges, std::map<std::string_view, State>,
                                    std::vector<std::pair<std::string_view, State>>>;
  using StateAt = typename States::iterator;
  struct Named {
    std::string_view key;
    uint32_t slot;
    bool is_other;  // what a move moves to
    bool writes;
  };
  // What must not change while the batch is performed: a key, or the first keys of a range.
  struct Span {
    std::string_view lo, hi;
    bool is_point = true;
    bool unbounded = false;
    uint64_t keys_max = UINT64_MAX;
    uint32_t slot = 0;
  };
  // A range of which not all leaves are locked: those below `end` are.
  struct Cut {
    uint32_t slot;
    std::string end;
  };
  // Of the keys that are locked.
  struct LockedLeaf {
    LeafPlace place;
    uint32_t begin, end;
  };
  // One set a thread, so that a batch has the memory of the one before.
  struct Lists {
    std::vector<Named> named;
    States states;
    std::vector<uint32_t> places;  // without ranges, by slot: where its key is in `states`
    std::vector<StateAt> changed;  // of batches with ranges, ascending
    std::vector<Request> probes;   // of the keys to be locked, ascending: for LookAhead
    std::vector<LockedLeaf> leaves;
    std::vector<Span> spans;      // of batches with ranges, ascending
    std::vector<LeafPlace> held;  // leaves of the spans, ascending
    std::vector<Cut> cuts;
    std::vector<std::pair<StateAt, State>> undo;  // what the part has changed
    std::vector<uint32_t> wrote;                  // slots that changed something, ascending
    std::vector<uint32_t> changed_by_batch;  // slots that require what the batch itself has changed
    std::vector<LeafEdit> edits;     // of one leaf
    std::vector<std::pair<NodeHeader*, uint32_t>> log_items;  // to be given the version
    std::vector<Found> replaced;                              // values whose blocks have to go
    std::vector<std::string> separators;                      // where leaves must be split first
  };
  // Of batches of more keys the memory is given back.
  static constexpr size_t kKeysKept = 1024;
  static constexpr size_t kLeavesHeldMax = 1024;

  static Lists& ListsOfThread() {
    static thread_local Lists lists;
    return lists;
  }

  Version Run();
  uint64_t BytesToStore() const;
  Attempt TryAlone();
  Attempt Try();
  void ListSpans();
  void AddSpan(const Request& request, uint32_t slot);
  Attempt LockSpans(Change<Layout>& change);
  Attempt LockSpan(Change<Layout>& change, const Span& span);
  bool HoldLeaf(Change<Layout>& change, std::string_view key);
  void AwaitTickets(const LeafPlace& leaf);
  uint64_t CountKeys(const LeafPlace& leaf, const Span& span) const;
  size_t SeekHeld(std::string_view key) const;
  LeafPlace HeldLeafOf(std::string_view key) const;
  std::string UpperOf(const LeafPlace& leaf) const;
  Status Check(const Request& request) const;
  void ListNamed();
  void ListChanged();
  void AddProbe(std::string_view key, bool writes);
  // Key number `i` of those to be locked.
  StateAt KeyAt(uint32_t i) {
    if constexpr (kHasRanges) {
      return lists_.changed[i];
    } else {
      return lists_.states.begin() + i;
    }
  }
  Attempt LockKeys(Change<Layout>& change);
  bool LockLeaf(Change<Layout>& change, uint32_t i, LeafPlace* place);
  StateAt Find(std::string_view key);
  StateAt StateOf(std::string_view key);
  StateAt StateOfSlot(uint32_t index);
  void SetState(StateAt at, const PointEffect& effect);
  void Read(const LeafPlace& place, std::string_view key, State* state);

  void PerformSlot(uint32_t index);
  void PerformPoint(uint32_t index);
  void PerformMove(uint32_t index);
  void PerformRange(uint32_t index);
  void RequireEmpty(uint32_t index);
  void RequireUnchanged(uint32_t index);
  void PerformScan(uint32_t index);
  void PerformSample(uint32_t index);
  template <typename Visit>
  void ForEach(uint32_t index, Visit visit);
  template <typename Visit>
  void ForEachForward(std::string_view lo, std::string_view hi, bool unbounded, Visit visit);
  template <typename Visit>
  void ForEachReverse(std::string_view lo, std::string_view hi, bool unbounded, Visit visit);
  std::string_view Floor(std::string_view key);

  Attempt Apply(Change<Layout>& change);
  bool Prepare(Change<Layout>& change, const LockedLeaf& leaf, Storing& storing);
  bool ListEdits(const LockedLeaf& leaf, Storing& storing);
  bool AppendAll(Change<Layout>& change, const LockedLeaf& leaf);
  bool Merge(Change<Layout>& change, const LockedLeaf& leaf);
  void NoteSeparators(std::span<const typename Layout::LeafItem> items);
  Attempt SplitAll();
  void Finish(Version version);
  void BalanceErased();
  void RefuseForMemory(uint32_t index);

  Core& core_;
  Upkeep& upkeep_;
  Slot& slot_;
  LookAhead<Layout>& look_ahead_;
  Batch& batch_;
  BatchWriter& out_;
  const EngineTraits& traits_;
  Structure<Layout> structure_;
  Reader<Layout> reader_;
  Lists& lists_;
  uint64_t now_ms_ = 0;
  // The next try stops the writers: what the batch has locked was not enough.
  bool stops_ = false;
  bool no_room_ = false;  // what stores something is refused, and with it its part
  bool stored_ = false;   // the slot that is being performed has
  bool undoes_ = false;   // the part that is being performed may be taken back, and others not
  const Found* first_found_ = nullptr;  // of the first of lists_.edits
  Arena::Limit limit_ = Arena::Limit::kObey;
  Version seen_ = 0;
};

}  // namespace skep::btree

// atomic_batch.h: batches that are applied whole or not at all, at one version.
//
// Points only. The leaves of all keys are locked, from left to right; then the requests are judged
//   and performed in order on a copy of the few values they name; then everything that needs memory
//   is made; then one version is drawn, written into every item, and the leaves are unlocked.
//   Waiting for a leaf's lock is only waiting to the right, so there is no deadlock; and nobody who
//   holds a lock to the right waits for one to the left.
// With ranges. What a range names is not known beforehand, so the other writers are stopped
//   (protocol P). The requests are performed on a copy of what they touch, laid over the newest
//   state; a range delete is one delete for each key. Then as above.
//
// Room. A leaf whose log has no room for its items is merged with them; if that does not fit it is
// split beforehand, into as many as will be needed (structure.h: that changes no data), and the
// batch begins again. So at the moment of the version nothing can fail. If there is no memory, it
// begins again without the parts that store something.
//
// Parts. Each is judged and performed on what the parts before have left in the copy; one that
// fails
//   is taken back there. What is written in the end is what the copy has become.
//
// Cost: a map entry for each key the batch names or deletes. A batch with ranges holds up the other
// writers, not the readers, for as long as it takes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "btree/change.h"
#include "btree/core.h"
#include "btree/reader.h"
#include "btree/structure.h"
#include "btree/upkeep.h"
#include "btree/writer.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// Owner: one execution of one batch. The slot is inside an epoch and has called BeginWrites.
template <class Layout>
class AtomicBatch {
 public:
  AtomicBatch(Core& core, Upkeep& upkeep, Slot& slot, Batch& batch, BatchWriter& out,
              const EngineTraits& traits)
      : core_(core),
        upkeep_(upkeep),
        slot_(slot),
        batch_(batch),
        out_(out),
        traits_(traits),
        structure_(core),
        reader_(core) {}

  // Returns the highest version it has seen or made.
  Version Execute();

 private:
  // A key as the batch sees it.
  struct State {
    typename Layout::Found found;  // before, maybe expired
    bool present = false;          // now
    std::string_view value;
    uint64_t deadline_ms = 0;
    bool changed = false;
  };
  // Of the batch's keys, in order. The views live as long as the batch, the nodes by the epoch.
  using States = std::map<std::string_view, State>;
  struct LockedLeaf {
    LeafPlace place;
    std::vector<typename States::iterator> keys;
  };

  bool HasRanges() const;
  Attempt Try(bool stopped);
  Attempt LockKeys(Change<Layout>& change, std::vector<LockedLeaf>* leaves, bool changed_only);
  bool LockLeaf(Change<Layout>& change, std::string_view key, LeafPlace* place);
  typename States::iterator StateOf(std::string_view key);
  void SetState(typename States::iterator at, const PointEffect& effect);
  void TakeBack(const Part& part);
  State Read(const LeafPlace& place, std::string_view key);

  bool PerformAll();
  std::optional<uint32_t> PerformPart(const Part& part);
  void PerformSlot(uint32_t index);
  void PerformPoint(uint32_t index);
  void PerformMove(uint32_t index);
  void PerformRange(uint32_t index);
  void RequireEmpty(uint32_t index);
  void RequireUnchanged(uint32_t index);
  void PerformScan(uint32_t index);
  void PerformSample(uint32_t index);
  template <typename Visit>
  void ForEach(const Request& request, Visit visit);
  template <typename Visit>
  void ForEachForward(std::string_view lo, std::string_view hi, bool unbounded, Visit visit);
  template <typename Visit>
  void ForEachReverse(std::string_view lo, std::string_view hi, bool unbounded, Visit visit);
  std::string_view Floor(std::string_view key);

  Attempt Apply(Change<Layout>& change, std::vector<LockedLeaf>& leaves);
  bool Prepare(Change<Layout>& change, const LockedLeaf& leaf, Storing& storing);
  bool AppendAll(Change<Layout>& change, const LockedLeaf& leaf,
                 std::span<const LeafEdit<Layout>> edits);
  void NoteSeparators(std::span<const typename Layout::LeafItem> items);
  Attempt SplitAll();
  void Finish(Version version);
  void BalanceErased();
  void RefuseForMemory(uint32_t index);

  Core& core_;
  Upkeep& upkeep_;
  Slot& slot_;
  Batch& batch_;
  BatchWriter& out_;
  const EngineTraits& traits_;
  Structure<Layout> structure_;
  Reader<Layout> reader_;
  States states_;
  uint64_t now_ms_ = 0;
  bool no_room_ = false;  // what stores something is refused, and with it its part
  bool stored_ = false;   // the slot that is being performed has
  std::vector<std::pair<typename States::iterator, State>> undo_;  // what the part has changed
  std::vector<uint32_t> wrote_;             // slots that changed something, ascending
  std::vector<uint32_t> changed_by_batch_;  // slots that require what the batch itself has changed
  std::vector<std::pair<NodeHeader*, uint32_t>> log_items_;  // to be given the version
  std::vector<typename Layout::Found> replaced_;             // what log_items_ take the place of
  std::vector<std::string> separators_;                      // where leaves must be split first
  Arena::Limit limit_ = Arena::Limit::kObey;
  Version seen_ = 0;
};

}  // namespace skep::btree

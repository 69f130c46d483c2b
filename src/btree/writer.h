// writer.h: writes of one key (Honeycomb, section 3.4; spec 5.1, 5.2, 5.4).
//
//   find     the leaf, and in it the key, of the newest state, without locks
//   decide   what becomes of the value
//   append   lock the leaf if it is as it was read, and check that the key has not expired since;
//            write the item behind the log's end; draw the version; write it into the item; store
//            size, sequence and unlocked state as one word.
//            A reader sees no item or a whole one, and a reader at a version none it must not see.
//   merge    if the log is full: a new buffer of the sorted items with the log and the new item
//            worked in, without expired items, mapped in place of the old one
//   split    if that does not fit: split_join.h; then begin again
//
// The version is drawn under the leaf's lock, so the versions of a log rise.
//
// A write that meets others in its leaf begins again: tries.h bounds how often. The outside block
// of the request's own value is made once, whatever the number of tries.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "btree/core.h"
#include "btree/expired_keys.h"
#include "btree/leaf_edit.h"
#include "btree/look_ahead.h"
#include "btree/reader.h"
#include "btree/split_join.h"
#include "btree/structure_change.h"
#include "btree/upkeep.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep::btree {

// Counts expired items that have left the tree.
inline void CountExpired(Core& core, ThreadState& thread, uint64_t items) {
  if (items == 0) return;
  thread.AddItems(-static_cast<int64_t>(items), -static_cast<int64_t>(items));
  core.expired_keys.fetch_add(items, std::memory_order_relaxed);
}

// Lowers the leaf's deadline for a value that is about to be appended. The caller has locked the
// leaf.
template <class Layout>
void LowerDeadline(Core& core, Lid leaf, NodeHeader* node, const StoredValue& value) {
  if (!Layout::LowerDeadline(core.codec, node, DeadlineOf(value))) return;
  core.expiry.Add(leaf, DeadlineOf(value));
}

// Retires blocks of values that appended log items have replaced: they belong to the node no
// longer. There is room for them in thread.retired.
inline void RetireReplaced(ThreadState& thread, std::span<const OutsideBlock> replaced,
                           Version version) {
  for (const OutsideBlock& block : replaced) {
    thread.retired.push_back(RetiredOf(block, version));
  }
}

// Whether a leaf with `present` keys left should be merged though its log has room, since most of
// its sorted block is deleted.
inline bool IsSparse(const NodeHeader* leaf, uint32_t present) {
  return present * 4 < leaf->sorted_count;
}

// Thread safety: stateless but for the core. The caller is inside an epoch.
template <class Layout>
class Writer {
 public:
  Writer(Core& core, Upkeep& upkeep)
      : core_(core), upkeep_(upkeep), split_join_(core), reader_(core) {}

  // Executes a point operation that may write, of an unordered batch. Fills in its outcome and
  // returns the highest version it has seen or made. `now_ms`, by which deadlines are judged, moves
  // on if the key has expired for others meanwhile. `look_ahead` may know the leaf of request
  // `index`; null: it does not. The thread has called BeginWrites.
  Version Execute(ThreadState& thread, const Request& request, uint64_t* now_ms,
                  LookAhead<Layout>* look_ahead, const EngineTraits& traits, BatchWriter& out,
                  uint32_t index);

 private:
  struct Edit {
    const typename Layout::Found* found;
    LeafEdit edit;
    Arena::Limit limit;
    uint64_t now_ms;
  };

  struct Merged {
    uint32_t bytes = 0;                                 // of the new leaf
    bool fits = false;                                  // the new leaf is not too large
    bool on_bench = false;                              // the new leaf is built, if it fits
    std::vector<typename Layout::LeafItem> items = {};  // its items, if it is not on the bench
    uint64_t expired = 0;                               // items left out because they have expired
    std::vector<std::string> expired_keys = {};         // theirs, if somebody wants to be told
  };

  // The effect of a request on a value that lies outside the nodes, where the value need not be
  // stored anew.
  struct OutsideEffect {
    enum class Kind : uint8_t { kNone, kCarry, kEdit };
    Kind kind = Kind::kNone;
    PartsEffect parts = {};  // kEdit
  };

  PointEffect ApplyOutside(const Request& request, const StoredValue& value, uint64_t now_ms,
                           const EngineTraits& traits, BatchWriter& out, uint32_t index,
                           OutsideEffect* outside) const;
  bool Store(const Request& request, const PointEffect& effect, bool has_block, Storing& storing,
             LeafEdit* edit, std::optional<StoredValue>* kept);
  static bool StoreOutside(const StoredValue& before, uint64_t deadline_ms,
                           const OutsideEffect& effect, Storing& storing, StoredValue* stored);
  bool HasExpiredSince(const Edit& edit) const;
  Attempt Append(ThreadState& thread, const typename Layout::Leaf& leaf, const LeafPlace& place,
                 const Edit& edit, Storing& storing, Version* version);
  void MergeItems(ThreadState& thread, const LeafPlace& place, const Edit& edit, Merged* merged);
  Attempt Merge(ThreadState& thread, const LeafPlace& place, const Edit& edit, Storing& storing,
                Version* version, bool* is_small);

  Core& core_;
  Upkeep& upkeep_;
  SplitJoin<Layout> split_join_;
  const Reader<Layout> reader_;
};

}  // namespace skep::btree

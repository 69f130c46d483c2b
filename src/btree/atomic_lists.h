// atomic_lists.h: what an atomic batch notes while it is executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/leaf_edit.h"
#include "btree/node_items.h"
#include "btree/reader.h"
#include "skep/batch.h"

namespace skep::btree {

// A key as the batch sees it: what the tree has of it, and what the batch has made of that.
struct KeyState {
  std::string_view key;  // lives as long as the batch
  Found found;           // in the tree, maybe expired; its views live as long as the epoch
  bool present = false;  // now
  std::string_view value;
  uint64_t deadline_ms = 0;
  bool changed = false;
};

// A leaf that is locked, and the numbers of the locked keys that lie in it.
struct LockedLeaf {
  LeafPlace place;
  uint32_t begin, end;
};

// A key that a request names.
struct NamedKey {
  std::string_view key;
  uint32_t slot;
  bool is_other;  // what a move moves to
  bool writes;
};

// The lists of one batch, which leave their memory to the next one. Owner: one execution.
struct AtomicLists {
  // The keys whose leaves are to be locked, ascending, each once; a request for each, by which
  // LookAhead finds its leaf; and their leaves, as far as they are locked.
  std::vector<KeyState*> keys;
  std::vector<Request> probes;
  std::vector<LockedLeaf> leaves;

  // Of the requests.
  std::vector<std::pair<KeyState*, KeyState>> undo;  // what the part has changed, before that
  std::vector<uint32_t> wrote;                       // slots that changed something, ascending
  std::vector<uint32_t> changed_by_batch;  // slots that require what the batch itself has changed

  // AtomicPoints.
  std::vector<NamedKey> named;
  std::vector<KeyState> states;  // of all keys that are named, ascending
  std::vector<uint32_t> places;  // by slot: where its key is in `states`

  // AtomicCommit.
  std::vector<LeafEdit> edits;                              // of one leaf
  std::vector<std::pair<NodeHeader*, uint32_t>> log_items;  // to be given the version
  std::vector<Found> replaced;                              // values whose blocks have to go
  std::vector<std::string> separators;                      // where leaves must be split first
};

}  // namespace skep::btree

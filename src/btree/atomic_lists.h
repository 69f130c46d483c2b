// atomic_lists.h: the lists of an atomic batch while it is executed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/edited_pieces.h"
#include "btree/leaf_edit.h"
#include "btree/node_items.h"
#include "btree/reader.h"
#include "skep/batch.h"

namespace skep::btree {

// A key as the batch sees it: the tree's item of it, and its state after the batch's own changes.
struct KeyState {
  std::string_view key;  // lives as long as the batch
  Found found;           // the tree's item, maybe expired; its views live as long as the epoch
  bool present = false;  // now, after the changes so far
  // The value. Of one in pieces it is empty until the batch has read it whole.
  std::string_view value;
  std::optional<StoredValue> pieces;  // of a value in pieces
  EditedPieces* edit = nullptr;       // what the batch makes of `pieces`; null: nothing
  uint64_t deadline_ms = 0;
  uint8_t type = kPlainType;
  bool changed = false;
  bool is_put = false;  // a request that is no function has stored the value, or one before it
};

// The bytes of the value that the batch has given to the key.
inline size_t ValueBytes(const Codec& codec, const KeyState& state) {
  if (state.edit != nullptr) return state.edit->size();
  return state.pieces ? codec.SizeOf(*state.pieces) : state.value.size();
}

// Whether the value is the one in pieces that the tree has for this key.
inline bool IsOwn(const KeyState& state) {
  return state.pieces && state.found.present &&
         state.pieces->bytes.data() == state.found.value.bytes.data();
}

// A locked leaf, and the numbers in `keys` of the keys that lie in it.
struct LockedLeaf {
  LeafPlace place;
  uint32_t begin, end;
};

// A key that a request names.
struct NamedKey {
  std::string_view key;
  uint32_t slot;
  bool is_other;  // the target of a move
  bool writes;
};

// The lists of one batch; the next one uses their memory again. Owner: one execution.
struct AtomicLists {
  // The keys whose leaves are to be locked, ascending, each once; a request for each, by which
  // LookAhead finds its leaf; and those of the leaves that are locked.
  std::vector<KeyState*> keys;
  std::vector<Request> probes;
  std::vector<LockedLeaf> leaves;

  // Lists of the requests.
  std::vector<std::pair<KeyState*, KeyState>> undo;   // states before the part changed them
  std::vector<uint32_t> wrote;                        // slots that changed something, ascending
  std::vector<std::unique_ptr<EditedPieces>> edited;  // values that states name
  std::vector<uint32_t> changed_by_batch;  // slots whose condition fails by the batch's own writes

  // Lists of AtomicPoints.
  std::vector<NamedKey> named;
  std::vector<KeyState> states;  // of all keys that requests name, ascending
  std::vector<uint32_t> places;  // by slot: where its key is in `states`

  // Lists of AtomicCommit.
  std::vector<LeafEdit> edits;                              // edits of one leaf
  std::vector<const Found*> found;                          // the leaf's item for each of them
  std::vector<std::pair<NodeHeader*, uint32_t>> log_items;  // get the version when it is drawn
  std::vector<OutsideBlock> replaced;   // blocks of values that are to be retired
  std::vector<std::string> separators;  // where leaves must be split first
};

}  // namespace skep::btree

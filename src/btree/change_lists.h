// change_lists.h: the lists of a StructureChange, until it is published or undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "btree/link.h"
#include "btree/node.h"
#include "btree/stored.h"

namespace skep::btree {

struct ChangeLists {
  struct Locked {
    NodeHeader* node;
    uint64_t word;  // before the lock
  };
  struct Made {
    Link link;
    NodeHeader* node;
    ArenaAddress at;
    NodeHeader* replaces;    // null: a new LID
    uint64_t left, right;    // of a replaced leaf, when the new one was built
    bool lists_gone = true;  // blocks that the old node names and the new one does not, are listed
  };
  struct Leaving {
    Link link;
    NodeHeader* node;
  };
  struct Append {
    NodeHeader* node;
    uint64_t word;
    uint32_t used;
  };

  // If a change has locked more nodes than this the memory is given back.
  static constexpr size_t kLockedKept = 1024;

  void Clear() {
    locked.clear();
    made.clear();
    leaving.clear();
    appends.clear();
    gone.clear();
  }

  std::vector<Locked> locked;
  std::vector<Made> made;
  std::vector<Leaving> leaving;
  std::vector<Append> appends;
  std::vector<OutsideBlock> gone;  // blocks that old nodes name and new ones do not
};

}  // namespace skep::btree

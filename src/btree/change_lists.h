// change_lists.h: what a change of nodes notes until it is published or undone.
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
    uint64_t word;  // before
  };
  struct Made {
    Link link;
    NodeHeader* node;
    ArenaAddress at;
    NodeHeader* replaces;  // null: a new LID
    uint64_t left, right;  // leaves that replace one: its siblings when this was built
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

  // Of a change that has locked more nodes the memory is given back.
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
  std::vector<OutsideBlock> gone;  // what old nodes name and new ones do not
};

}  // namespace skep::btree

// node_items.h: what nodes are built of, whatever their layout.
#pragma once

#include "btree/link.h"
#include "btree/stored.h"

namespace skep::btree {

struct LeafItem {
  StoredKey key;
  StoredValue value;
};

struct InnerItem {
  StoredKey separator;
  Link child;  // of the keys from the separator up
};

// The key range of a node: the lower fence is in it, the upper one is not.
struct Fences {
  StoredKey lower;
  StoredKey upper;  // ignored if unbounded
  bool unbounded = true;
};

}  // namespace skep::btree

// leaf_edit.h: changes to the items of one leaf, before they are written.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "btree/node_items.h"
#include "btree/stored.h"

namespace skep::btree {

// A change of one key: a new value, or an erasure.
struct LeafEdit {
  std::string_view key;
  StoredKey stored_key;
  bool erase = false;
  StoredValue value;  // unless erase
};

// Applies the edits, ascending by key, to the items. The items stay views of nodes or of the
// strings that the edits name.
void ApplyEdits(const Codec& codec, std::span<const LeafEdit> edits, std::vector<LeafItem>* items);

// Removes the items that have expired; returns how many there were.
uint64_t EraseExpired(uint64_t now_ms, std::vector<LeafItem>* items);

}  // namespace skep::btree

// leaf_links.h: what an engine that is a tree tells of its leaves, so that a client can name the
// leaf of a key in the hints of its requests (Request::hint).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "engine/engine.h"
#include "skep/scratch.h"

namespace skep {

struct LeafLink {
  std::string_view lower;  // the leaf has the keys from here up to the next link's `lower`
  Hint hint;
  uint64_t hits = 0;  // sampled operations on the leaf, about one in 64
};

// Leaves that follow each other.
struct LeafLinks {
  std::vector<LeafLink> links;
  std::string next;  // the lower fence of the leaf behind the last one; empty: there is none
  Scratch bytes;     // what the links are views of
};

// The memory of a tree that other processes may map (BtreeOptions::shared): what they read is told
// by netindex/leaves/leaf_reader.h.
struct SharedLeaves {
  SharedMemory* board = nullptr;            // a LeafBoard; null: the tree is not shared
  SharedMemory* rows = nullptr;             // of the page table: 8 bytes for each LID
  std::vector<SharedMemory*> regions = {};  // of the arena, so far
};

// The interface of an engine that has such leaves.
class HasLeafLinks {
 public:
  // Returns the links of leaves from that of the key `from` on: at most `links_max` (> 0), and no
  // more once their fences take `bytes_max` bytes. Leaves may split, join and vanish at any time,
  // which makes a link stale and nothing worse. Thread-safe; waits for nobody.
  virtual LeafLinks LinksFrom(std::string_view from, uint32_t links_max,
                              size_t bytes_max) const = 0;
  // The memory is valid as long as the engine.
  virtual SharedLeaves Shared() const { return {}; }

 protected:
  ~HasLeafLinks() = default;
};

// The interface of the engine, or of the one that it forwards to; null: it has none.
const HasLeafLinks* LeafLinksOf(const Engine& engine);

}  // namespace skep

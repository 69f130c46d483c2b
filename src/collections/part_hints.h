// part_hints.h: the separators of the items of one part of a collection, and where the items were
// in the tree.
//
//   firsts   | first separator of block 0 | of block 1 | ...       ascending
//   blocks   | up to kBlockNames separators, ascending  | ...      none is empty
//
// A block that is full is divided: in the middle, or if a separator comes behind all others of the
// part, so that what is added in order fills blocks. So an addition moves what lies behind it in
// one block, and a search is one of the firsts and one of a block (ordered_names.h).
//
// Thread safety: as a vector; but `place` may be read and written by many threads beside each other
// with std::atomic_ref.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "collections/layout.h"
#include "collections/ordered_names.h"
#include "skep/scratch.h"

namespace skep::collections {

class PartHints {
 public:
  static constexpr size_t kBlockNames = 128;

  static constexpr size_t kBlockBytes = kBlockNames * (OrderedNames::kNameBytes + sizeof(uint64_t));

  // A separator of the part, by its number in its block. `block` may be beyond the end: none.
  struct At {
    size_t block = 0;
    size_t index = 0;
  };

  explicit PartHints(Part part) : part_(part) {}

  Part part() const { return part_; }
  // Finds the last separator that is not above the place; *found tells whether there is one.
  At Find(std::string_view place, bool* found) const;
  // Whether Find would find `at`, where that takes less to see: in a part of one block.
  bool IsAt(At at, std::string_view place) const;
  // Its address is that of no other separator.
  std::string_view SeparatorAt(At at) const { return blocks_[at.block].names[at.index]; }
  uint64_t& place(At at) { return blocks_[at.block].places[at.index]; }
  // Adds a separator, whose bytes are copied to the scratch, unless it is there.
  void Add(std::string_view separator, Scratch& bytes);
  void Erase(std::string_view separator);
  // Copies the bytes of all separators to another scratch.
  void Relocate(Scratch& bytes);
  // The memory of the blocks, each of kBlockBytes, without the bytes of the separators.
  size_t held_bytes() const { return blocks_.size() * kBlockBytes; }

 private:
  struct Block {
    OrderedNames names;
    std::vector<uint64_t> places;  // Hint::bits of each
  };
  void AddBlock(size_t at);

  Part part_;
  OrderedNames firsts_;
  std::vector<Block> blocks_;
};

}  // namespace skep::collections

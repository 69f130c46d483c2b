// link.h: the names of nodes, and links to them.
#pragma once

#include <cstdint>

namespace skep::btree {

// The name of a node, whatever buffer holds it now: a row of the page table. 48 bits; 0 is none.
using Lid = uint64_t;

// A LID and the generation it has while its node covers one key range. The LID of a node that is
// gone may be given to another node, of the next generation, so a link that was kept too long
// matches no generation.
struct Link {
  uint64_t bits = 0;  // generation 16 | LID 48, as skep::Hint
  static Link Of(Lid lid, uint16_t generation) {
    return {.bits = uint64_t{generation} << 48 | lid};
  }
  Lid lid() const { return bits & ((uint64_t{1} << 48) - 1); }
  uint16_t generation() const { return static_cast<uint16_t>(bits >> 48); }
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(const Link&, const Link&) = default;
};
static_assert(sizeof(Link) == 8);

}  // namespace skep::btree

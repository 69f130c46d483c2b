// chunk_items.h: which items lie in a chunk, told by its bytes alone.
//
// Items begin at units and check themselves (item.h). Where the bytes of a unit are no item of this
// chunk and generation, because its client died while it wrote or a generation before has left
// them, the next unit is tried. Whether an item that is found is anybody's still, only the index
// tells; and an item that lies within what looks like another one is not found.
//
// Cost: the checksums, a nanosecond for 20 bytes. Of bytes that are made up to look like the heads
// of long items each unit may cost the checksum of one, 50 microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pool/item.h"

namespace skep::pool {

struct ChunkItem {
  uint32_t unit = 0;
  uint32_t units = 0;
  ItemView view;  // of the chunk's bytes
};

// The items in their order. `bytes` are all of the chunk.
std::vector<ChunkItem> ItemsIn(uint32_t chunk, uint8_t gen, std::span<const std::byte> bytes);

}  // namespace skep::pool

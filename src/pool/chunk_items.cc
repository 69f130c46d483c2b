#include "pool/chunk_items.h"

namespace skep::pool {

std::vector<ChunkItem> ItemsIn(uint32_t chunk, uint8_t gen, std::span<const std::byte> bytes) {
  std::vector<ChunkItem> items;
  for (uint32_t unit = 0; unit < kChunkUnits;) {
    const auto rest = bytes.subspan(size_t{unit} * kUnitBytes);
    const auto view = ReadItem({.chunk = chunk, .unit = unit, .gen = gen}, rest);
    const uint32_t units = view ? UnitsOf(view->key.size(), view->value.size()) : 1;
    if (view) items.push_back({.unit = unit, .units = units, .view = *view});
    unit += units;
  }
  return items;
}

}  // namespace skep::pool

// merge_model.h: joins free slabs of 32 bytes into larger ones, all of a store at once, in two ways
// (KV-Direct, sections 3.3.2 and 5.1.2, figure 12).
//
//   free slots, in any order      one bit a slot        -+
//       9 2 0 3 1 8 ..       -->  or sorted             -+->  blocks of 1, 2, 4, 8 and 16 slots,
//                                 0 1 2 3 8 9 ..              aligned to their size:  0: 4, 8: 2
//
//   MergeByBitmap  sets a bit for each, anywhere in a map of all slots, then walks the map
//   MergeBySort    radix sort, nine bits a pass, then walks the sorted slots: 512 streams through
//                  memory instead of random words, and no map of the slots that are not free
//
// Threads divide the incoming slots, or groups of sixteen adjacent ones. Two threads may set bits
// in one word of the map, so if there are more than one they use an atomic operation.
//
// The engine itself does neither: its slabs keep one bit a slot in each span of 64 KiB
// (hash/slabs.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace skep::bench {

inline constexpr uint32_t kMergeClasses = 5;
inline constexpr uint32_t kMergeGroup = 1u << (kMergeClasses - 1);

// The first slot of each block; blocks[c] has those of 1 << c slots, in ascending order.
using MergedBlocks = std::array<std::vector<uint32_t>, kMergeClasses>;

// `free` has no slot twice, and each is below slot_count <= 2^32, a multiple of 64. threads > 0.
MergedBlocks MergeByBitmap(std::span<const uint32_t> free, uint64_t slot_count, uint32_t threads);
MergedBlocks MergeBySort(std::span<const uint32_t> free, uint64_t slot_count, uint32_t threads);

}  // namespace skep::bench

// seeds.h: tells tests which seeds a simulation runs.
#pragma once

#include <cstdint>
#include <ranges>

namespace skep {

using SeedRange = std::ranges::iota_view<uint64_t, uint64_t>;

// Returns consecutive seeds and prints the first one. SKEP_SIM_SEED says which is the first (else
// it is random), SKEP_SIM_SEEDS how many there are (else Rounds(count)).
SeedRange Seeds(uint64_t count);

// Returns whether there are so many seeds that together they must show every outcome that one of
// them may show.
inline bool AreMany(const SeedRange& seeds) { return seeds.size() >= 12; }

}  // namespace skep

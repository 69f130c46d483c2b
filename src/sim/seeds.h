// seeds.h: for tests: which seeds a simulation runs.
#pragma once

#include <cstdint>
#include <ranges>

namespace skep {

using SeedRange = std::ranges::iota_view<uint64_t, uint64_t>;

// Consecutive seeds; the first one is printed. SKEP_SIM_SEED says which is first (else it is
// random), SKEP_SIM_SEEDS how many (else Rounds(count)).
SeedRange Seeds(uint64_t count);

// So many that together they must have seen what each of them may see.
inline bool AreMany(const SeedRange& seeds) { return seeds.size() >= 12; }

}  // namespace skep

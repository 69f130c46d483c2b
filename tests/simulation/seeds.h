// seeds.h: which seeds a test of a simulation runs.
#pragma once

#include <cstdint>
#include <ranges>

namespace skep::simulation {

// Consecutive seeds; the first one is printed. SKEP_SIM_SEED says which is first (else it is
// random), SKEP_SIM_SEEDS how many (else Rounds(count)).
std::ranges::iota_view<uint64_t, uint64_t> Seeds(uint64_t count);

}  // namespace skep::simulation

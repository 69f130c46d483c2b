#include "sim/seeds.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "base/sanitized.h"

namespace skep {
namespace {

uint64_t NumberOr(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

SeedRange Seeds(uint64_t count) {
  const uint64_t first = NumberOr("SKEP_SIM_SEED", std::random_device{}());
  fmt::print("SKEP_SIM_SEED={}\n", first);
  // Where there are few seeds, each may be of a kind of its own, so none is left out.
  constexpr uint64_t kFew = 12;
  const uint64_t rounds = count <= kFew ? count : Rounds(count);
  return {first, first + NumberOr("SKEP_SIM_SEEDS", rounds)};
}

}  // namespace skep

#include "types/collection.h"

#include <algorithm>

#include "base/random.h"

namespace skep::types {

std::optional<std::vector<size_t>> DrawIndexes(size_t members, const DrawRequest& request) {
  SeededRandom draws(request.seed);  // a replay draws the same ones
  std::vector<size_t> drawn;
  if (request.count < 0) {
    if (request.count < -kDrawsMax) return std::nullopt;
    for (int64_t i = request.count; i < 0; ++i) drawn.push_back(draws.Below(members));
    return drawn;
  }
  // Each member is taken with the probability that makes all sets of that size as likely.
  uint64_t wanted = std::min<uint64_t>(static_cast<uint64_t>(request.count), members);
  drawn.reserve(wanted);
  for (size_t i = 0; i < members && wanted > 0; ++i) {
    if (draws.Below(members - i) >= wanted) continue;
    drawn.push_back(i);
    --wanted;
  }
  return drawn;
}

std::optional<std::vector<size_t>> DrawIndexesToRead(size_t members, const DrawRequest& request) {
  if (request.count != 1) return DrawIndexes(members, request);
  return std::vector<size_t>{SeededRandom(request.seed).Below(members)};
}

}  // namespace skep::types

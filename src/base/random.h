// random.h: randomness, injected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace skep {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;

  // Returns a number that is uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // True with a probability of `numerator` in `denominator`.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }
};

// Randomness of getrandom(2), for seeds and secrets. Thread-safe; lives as long as the process.
Random& SystemRandom();

// xoshiro256** from one seed: equal seeds give equal streams on every machine. Not for secrets.
// Thread safety: one owner.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed);
  uint64_t Next() override;

 private:
  uint64_t state_[4];
};

}  // namespace skep

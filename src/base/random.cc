#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

#include <array>
#include <bit>
#include <utility>

#include "base/check.h"

namespace skep {
namespace {

// Words from the kernel, fetched together because a system call costs more than a word.
class KernelWords {
 public:
  uint64_t Next() {
    if (next_ == words_.size()) Fill();
    return std::exchange(words_[next_++], 0);  // the word is overwritten: it may become a secret
  }

 private:
  void Fill() {
    ssize_t got;
    do {
      got = getrandom(words_.data(), sizeof(words_), 0);
    } while (got < 0 && errno == EINTR);
    // getrandom(2) gives up to 256 bytes whole once the kernel's pool is initialised.
    static_assert(sizeof(words_) <= 256);
    SKEP_CHECK(got == static_cast<ssize_t>(sizeof(words_)));
    next_ = 0;
  }

  std::array<uint64_t, 32> words_;
  size_t next_ = words_.size();
};

class MachineRandom final : public Random {
 public:
  uint64_t Next() override {
    thread_local KernelWords words;
    return words.Next();
  }
};

// splitmix64: spreads a seed of any quality over the whole state, which must not be all zero.
uint64_t SplitMix(uint64_t& state) {
  uint64_t mixed = state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace

Random& SystemRandom() {
  static MachineRandom random;
  return random;
}

SeededRandom::SeededRandom(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

// xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021).
uint64_t SeededRandom::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

}  // namespace skep

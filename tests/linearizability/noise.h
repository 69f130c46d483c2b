// noise.h: a client whose operations are not recorded and keep changing the tree around recorded
// keys.
//
// It fills stretches of keys beside or between those of the history and empties them again: one by
// one, in atomic batches, by range. So leaves split and join, the tree grows and shrinks levels,
// and whole leaves disappear at once, while the history stays as small as the checker needs it.
#pragma once

#include <memory>
#include <random>
#include <thread>

#include "tests/linearizability/kv_client.h"
#include "tests/linearizability/padded_client.h"
#include "tests/linearizability/workload.h"

namespace skep::linearizability {

// Thread safety: one owner; it has a thread of its own.
class Noise {
 public:
  // Fills the keys beside the first `mix.keys` letters, then goes on in its thread until it is
  // destroyed. Without neighbours it does nothing.
  Noise(std::unique_ptr<KvClient> client, uint64_t seed, const Mix& mix, Neighbours neighbours);

 private:
  void Move();
  Operation Grow();
  Operation Shrink();
  std::string Letter();
  std::string Name(const std::string& letter);
  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  static constexpr uint32_t kNames = 40;  // beside each letter
  static constexpr uint32_t kFirstMoves = 12;

  const std::unique_ptr<KvClient> client_;
  std::mt19937_64 rng_;
  std::string letters_;
  bool grows_ = true;
  uint32_t moves_ = 0;
  std::jthread thread_;
};

}  // namespace skep::linearizability

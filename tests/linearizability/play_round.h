// play_round.h: one round of a test with real threads: its clients, their padding, and the noise
// around them.
#pragma once

#include <functional>
#include <memory>

#include "tests/linearizability/checker.h"
#include "tests/linearizability/history.h"
#include "tests/linearizability/kv_client.h"
#include "tests/linearizability/round_shape.h"

namespace skep::linearizability {

inline constexpr uint32_t kRoundOperations = 40;  // of each client

struct PlayedRound {
  History history;
  CheckOptions check;  // its initial contents are the store's at the beginning
};

// Plays a round on an empty store; `new_client` makes its clients, and may be called by any thread.
PlayedRound PlayRound(uint64_t seed, const RoundShape& shape,
                      const std::function<std::unique_ptr<KvClient>()>& new_client);

}  // namespace skep::linearizability

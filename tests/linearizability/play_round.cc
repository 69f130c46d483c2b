#include "tests/linearizability/play_round.h"

#include "tests/linearizability/noise.h"
#include "tests/linearizability/padded_client.h"
#include "tests/linearizability/recorder.h"

namespace skep::linearizability {

PlayedRound PlayRound(uint64_t seed, const RoundShape& shape,
                      const std::function<std::unique_ptr<KvClient>()>& new_client) {
  const Padding padding = shape.pads_keys ? Padding(seed) : Padding::None();
  const auto padded = [&](Neighbours neighbours) {
    return std::make_unique<PaddedClient>(new_client(), padding, neighbours);
  };
  PlayedRound round;
  if (shape.filled) round.check.initial = Fill(*padded(Neighbours::kNone), shape.mix);
  const Noise noise(padded(Neighbours::kNone), seed, shape.mix, shape.neighbours);
  round.history = RunHistory(shape.clients, kRoundOperations, seed, shape.mix,
                             [&](uint32_t) { return padded(shape.neighbours); });
  return round;
}

}  // namespace skep::linearizability

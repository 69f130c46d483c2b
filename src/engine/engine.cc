#include "engine/engine.h"

#include <atomic>

#include "base/cpu.h"

namespace skep {

uint64_t Engine::NewSnapshotId() {
  // Relaxed: only uniqueness matters.
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Engine::AwaitRelease(Version ticket) {
  constexpr int kLooksMax = 256;
  if (syncs_to_release() && !gate().IsReleased(ticket)) WantSync(ticket, true);
  for (int looks = 0; !gate().IsReleased(ticket); ++looks) {
    if (looks == kLooksMax) return gate().Wait(ticket);
    Pause();
    Release();
  }
}

void Engine::Describe(uint64_t, const StatsVisitor&) const {}

}  // namespace skep

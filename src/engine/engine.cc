#include "engine/engine.h"

#include <atomic>

namespace skep {

uint64_t Engine::NewSnapshotId() {
  // Relaxed: only uniqueness matters.
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Engine::Describe(uint64_t, const Teller&) const {}

}  // namespace skep

#include "server/incidents.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace skep {

void Incidents::Tell(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text) {
  uint64_t untold = 0;
  {
    std::lock_guard lock(mutex_);
    Kind& kind = kinds_[static_cast<size_t>(what)];
    // Each worker has read the clock at a moment of its own.
    if (kind.told && now_ms < kind.told_ms + kPauseMs) {
      ++kind.untold;
      return;
    }
    kind.told = true;
    kind.told_ms = now_ms;
    untold = std::exchange(kind.untold, 0);
  }
  if (untold == 0) return log.warn("{}", text);
  log.warn("{} ({} more like it were not logged)", text, untold);
}

}  // namespace skep

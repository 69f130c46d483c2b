#include "server/incidents.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace skep {
namespace {

constexpr std::array<std::string_view, kIncidents> kNames = {
    "requests of HTTP or TLS",
    "wrong passwords",
    "connections over maxclients",
    "connections closed for a query that was too long",
    "connections closed for replies that they did not take",
    "connections closed before they had logged in",
    "connections that could not be accepted",
    "rounds of clients closed for maxmemory-clients",
    "times that the log could not be written",
    "times that the log was written again",
};

}  // namespace

void Incidents::Tell(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text) {
  uint64_t untold = 0;
  {
    std::lock_guard lock(mutex_);
    Kind& kind = kinds_[static_cast<size_t>(what)];
    kind.last_ms = now_ms;
    // Each worker has read the clock at a moment of its own.
    if (kind.told && now_ms < kind.told_ms + kPauseMs) {
      ++kind.untold;
      return;
    }
    kind.told = true;
    kind.told_ms = now_ms;
    untold = std::exchange(kind.untold, 0);
  }
  const auto level = what == Incident::kLogFails ? spdlog::level::err : spdlog::level::warn;
  if (untold == 0) return log.log(level, "{}", text);
  log.log(level, "{} ({} more like it were not logged)", text, untold);
}

void Incidents::TellWhatIsOver(uint64_t now_ms, spdlog::logger& log) {
  for (size_t i = 0; i < kIncidents; ++i) {
    uint64_t untold = 0;
    {
      std::lock_guard lock(mutex_);
      Kind& kind = kinds_[i];
      if (!kind.told || now_ms < kind.last_ms + kPauseMs) continue;
      kind.told = false;
      untold = std::exchange(kind.untold, 0);
    }
    log.warn("{}: none for a minute; {} were not logged", kNames[i], untold);
  }
}

}  // namespace skep

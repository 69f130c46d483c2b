#include "server/incidents.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/mutex.h"

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

void Incidents::Report(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text) {
  uint64_t unreported = 0;
  {
    const MutexLock lock(mutex_);
    Kind& kind = kinds_[static_cast<size_t>(what)];
    kind.last_ms = now_ms;
    // Each worker has its own "now", which may be before the last report.
    if (kind.reported && now_ms < kind.reported_ms + kPauseMs) {
      ++kind.unreported;
      return;
    }
    kind.reported = true;
    kind.reported_ms = now_ms;
    unreported = std::exchange(kind.unreported, 0);
  }
  const auto level = what == Incident::kLogFails ? spdlog::level::err : spdlog::level::warn;
  if (unreported == 0) return log.log(level, "{}", text);
  log.log(level, "{} ({} more like it were not logged)", text, unreported);
}

void Incidents::ReportWhatIsOver(uint64_t now_ms, spdlog::logger& log) {
  for (size_t i = 0; i < kIncidents; ++i) {
    uint64_t unreported = 0;
    {
      const MutexLock lock(mutex_);
      Kind& kind = kinds_[i];
      if (!kind.reported || now_ms < kind.last_ms + kPauseMs) continue;
      kind.reported = false;
      unreported = std::exchange(kind.unreported, 0);
    }
    log.warn("{}: none for a minute; {} were not logged", kNames[i], unreported);
  }
}

}  // namespace skep

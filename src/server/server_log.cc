#include "server/server_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "base/mutex.h"
#include "server/log.h"

namespace skep {

Status ServerLog::Open(const ServerOptions& options) {
  auto logger = MakeLog(options, environment_.files, environment_.clock);
  if (!logger) return logger.error();
  logger_ = std::move(*logger);
  return {};
}

void ServerLog::Report(Incident what, std::string_view text) {
  incidents_.Report(what, environment_.clock.MonotonicMs(), *logger_, text);
}

void ServerLog::ReportWhatIsOver() {
  incidents_.ReportWhatIsOver(environment_.clock.MonotonicMs(), *logger_);
}

void ServerLog::WatchClock(const StoreNow& now) {
  constexpr uint64_t kReportedMs = 1000;  // a shorter time is not worth a line
  uint64_t noted_ms = noted_behind_ms_.load(std::memory_order_relaxed);
  const uint64_t behind_ms = now.behind_ms < kReportedMs ? 0 : now.behind_ms;
  if (behind_ms == noted_ms ||
      !noted_behind_ms_.compare_exchange_strong(noted_ms, behind_ms, std::memory_order_relaxed)) {
    return;
  }
  if (behind_ms == 0) {
    logger_->warn("the clock has caught up: keys expire by it again");
  } else {
    logger_->warn(
        "the clock is {:.3f} s behind the time that keys expire by; that goes on at its pace, and "
        "deadlines come late, until the clock has caught up",
        static_cast<double>(behind_ms) / 1000);
  }
}

void ServerLog::WatchDisk(durable::Persistence& persistence) {
  if (!disk_mutex_.try_lock()) return;  // another worker is looking
  const MutexLock lock(disk_mutex_, std::adopt_lock);
  const Status now = persistence.log().status();
  if (now == disk_status_) return;
  disk_status_ = now;
  if (now.ok()) {
    Report(Incident::kLogIsMended, "the log is written again: writes are accepted");
  } else {
    Report(Incident::kLogFails,
           fmt::format("the log cannot be written, so writes are refused: {}", now.ToString()));
  }
}

void ServerLog::WatchSnapshots(const durable::Persistence& persistence) {
  const Status last = persistence.saver().statistics().last_status;
  const MutexLock lock(snapshots_mutex_);
  if (std::exchange(snapshots_fail_, !last.ok()) == !last.ok()) return;
  if (last.ok()) {
    logger_->warn("snapshots are written again");
  } else {
    logger_->error("a snapshot could not be written, and is tried again: {}", last.ToString());
  }
}

void ServerLog::Reopen() {
  logger_->info("the log file is opened anew");
  if (const Status s = ReopenLog(*logger_); !s.ok()) {
    logger_->error("the log file cannot be opened anew, and the old one is kept: {}", s.ToString());
  }
}

}  // namespace skep

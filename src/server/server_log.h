// server_log.h: reports of events to the server's log: about clients, the disk, the clock.
//
//   Report    logs an incident, which may come any number of times: incidents.h keeps it to few
//             lines
//   Watch...  logs a line when something has changed since the last call
//
// Thread-safe from Open() on.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "base/environment.h"
#include "base/mutex.h"
#include "base/store_now.h"
#include "durable/persistence.h"
#include "server/incidents.h"
#include "server/options.h"
#include "skep/status.h"

namespace spdlog {
class logger;
}

namespace skep {

class ServerLog {
 public:
  explicit ServerLog(const Environment& environment) : environment_(environment) {}

  //   kIo  the log file cannot be opened
  Status Open(const ServerOptions& options);
  bool is_open() const { return logger_ != nullptr; }
  spdlog::logger& logger() { return *logger_; }

  void Report(Incident what, std::string_view text);
  // Reports the incidents that are over.
  void ReportWhatIsOver();
  // Reports when the wall clock begins or ceases to be behind.
  void WatchClock(const StoreNow& now);
  // Reports when the disk begins to refuse writes, and when it takes them again.
  void WatchDisk(durable::Persistence& persistence);
  // Reports when a snapshot cannot be written, and when snapshots are written again.
  void WatchSnapshots(const durable::Persistence& persistence);

  // Opens the log file anew: it may have been moved away.
  void Reopen();

 private:
  const Environment environment_;
  std::shared_ptr<spdlog::logger> logger_;
  Incidents incidents_;
  std::atomic<uint64_t> noted_behind_ms_{0};
  Mutex snapshots_mutex_;
  bool snapshots_fail_ SKEP_GUARDED_BY(snapshots_mutex_) = false;  // the state reported last
  Mutex disk_mutex_;
  Status disk_status_ SKEP_GUARDED_BY(disk_mutex_);  // the state reported last
};

}  // namespace skep

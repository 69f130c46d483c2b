// incidents.h: events that can happen again and again, reported in the log without filling it.
//
// The first incident of a kind is logged at once. Those that follow are counted, and their number
// is logged once a minute. When none has come for a minute, the rest is logged, and the next one is
// again logged at once.
//
//   time   0 s    0.1 s ... 59 s    61 s                62 s ... 70 s   130 s
//   log    line                     line (1,234 more)                   "over": 56 more
//
// Thread-safe. Cost: a lock, and rarely a line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/mutex.h"

namespace spdlog {
class logger;
}

namespace skep {

enum class Incident : uint8_t {
  kWebPage,         // a request of HTTP, or a handshake of TLS
  kWrongPassword,   // in AUTH, HELLO, or the packed protocol
  kRefusedClient,   // a connection over maxclients
  kQueryTooLong,    // a connection closed because of the size of its input
  kRepliesUnread,   // a connection closed because it did not read its replies
  kStranger,        // a connection closed for either, before it has logged in
  kNoDescriptors,   // no descriptors are left to accept connections
  kClientsEvicted,  // the largest clients, closed for maxmemory-clients
  kLogFails,        // the log of writes refuses them: an error (the others are warnings)
  kLogIsMended,     // the log of writes takes them again
};
inline constexpr size_t kIncidents = 10;

class Incidents {
 public:
  static constexpr uint64_t kPauseMs = 60'000;

  // Logs `text`, or counts the incident. `now_ms` is of the monotonic clock.
  void Report(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text);
  // Reports the incidents that are over. Called now and then.
  void ReportWhatIsOver(uint64_t now_ms, spdlog::logger& log);

 private:
  struct Kind {
    bool reported = false;     // the incident is not over
    uint64_t reported_ms = 0;  // of the last report
    uint64_t last_ms = 0;      // of the latest incident
    uint64_t unreported = 0;   // number of incidents since reported_ms
  };

  Mutex mutex_;
  std::array<Kind, kIncidents> kinds_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep

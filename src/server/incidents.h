// incidents.h: what can go wrong again and again, told in the log without filling it.
//
// The first incident of a kind is logged at once. Those that follow are counted, and told with
// their number once a minute. When none has come for a minute, the log is told of the rest, and the
// next one is again logged at once.
//
//   time   0 s    0.1 s ... 59 s    61 s                62 s ... 70 s   130 s
//   log    line                     line (1,234 more)                   "over": 56 more
//
// Thread-safe. Cost: a lock, and a line for few of them.
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
  kWrongPassword,   // AUTH, HELLO, or that of the packed protocol
  kRefusedClient,   // over maxclients
  kQueryTooLong,    // a connection closed for what it sent
  kRepliesUnread,   // one closed for what it did not read
  kStranger,        // one closed for either, before it has logged in
  kNoDescriptors,   // connections that cannot be accepted
  kClientsEvicted,  // the largest, closed for maxmemory-clients
  kLogFails,        // the log of writes begins to refuse them; an error, others are warnings
  kLogIsMended,     // it takes them again
};
inline constexpr size_t kIncidents = 10;

class Incidents {
 public:
  static constexpr uint64_t kPauseMs = 60'000;

  // Logs `text` if it is time to. `now_ms` is of the monotonic clock.
  void Report(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text);
  // Reports the incidents that are over. To be called now and then.
  void ReportWhatIsOver(uint64_t now_ms, spdlog::logger& log);

 private:
  struct Kind {
    bool reported = false;     // and it is not over
    uint64_t reported_ms = 0;  // when last
    uint64_t last_ms = 0;      // when the latest came
    uint64_t unreported = 0;   // since reported_ms
  };

  Mutex mutex_;
  std::array<Kind, kIncidents> kinds_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep

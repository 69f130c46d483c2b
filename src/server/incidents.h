// incidents.h: what can go wrong again and again, told in the log without filling it.
//
// The first incident of a kind is logged at once. Those that follow are counted, and told with
// their number once a minute. A kind of which nothing has come for a minute begins anew: its next
// incident is again logged at once.
//
//   time   0 s   0.1 s ... 59 s    61 s              200 s
//   log    line                    line (1,234 more)  line
//
// Thread-safe. Cost: a lock, and a line for few of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace spdlog {
class logger;
}

namespace skep {

enum class Incident : uint8_t {
  kWebPage,        // a request of HTTP
  kQueryTooLong,   // a connection closed for what it sent
  kRepliesUnread,  // one closed for what it did not read
  kStranger,       // one closed for either, before it has logged in
  kNoDescriptors,  // connections that cannot be accepted
};
inline constexpr size_t kIncidents = 5;

class Incidents {
 public:
  static constexpr uint64_t kPauseMs = 60'000;

  // Logs `text` as a warning if it is time to. `now_ms` is of the monotonic clock.
  void Tell(Incident what, uint64_t now_ms, spdlog::logger& log, std::string_view text);

 private:
  struct Kind {
    bool told = false;     // within the last kPauseMs, or since then more have come
    uint64_t told_ms = 0;  // when last
    uint64_t untold = 0;   // since then
  };

  std::mutex mutex_;
  std::array<Kind, kIncidents> kinds_;  // guarded by mutex_
};

}  // namespace skep

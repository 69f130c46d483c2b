// expiry_server.h: a connection to the server of an expiry run, apart from the measured commands.
//
// Uses only commands that both Redis and Skep have: SET with PXAT, TIME and INFO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/record_format.h"
#include "bench/resp_pipeline.h"
#include "skep/status.h"

namespace skep::bench {

// Thread safety: none; one owner.
class ExpiryServer {
 public:
  // The keys of keyspace 0 that take memory, also those that readers do not see any more.
  struct Keys {
    uint64_t all = 0;
    uint64_t with_deadline = 0;
  };
  struct Memory {
    std::optional<uint64_t> used_bytes;  // used_memory
    std::optional<uint64_t> rss_bytes;   // used_memory_rss
  };
  // Deadlines of `count` keys from `first` on, spread evenly over `spread_ms`: the i-th expires at
  // first_ms + i * spread_ms / count.
  struct Deadlines {
    uint64_t first_ms = 0;  // since 1970, by the server's clock
    uint64_t spread_ms = 0;
  };

  // Errors of all calls:
  //   kInvalidArgument   the host's name is unknown
  //   kUnavailable, kIo  the connection broke, or was not possible
  //   kCorrupt           the server's reply is not RESP, or not one to this command
  static Result<ExpiryServer> Connect(const std::string& host, uint16_t port);

  // Returns "skep 0.1.0", "redis 7.0.15".
  Result<std::string> Name();
  Result<Keys> CountKeys();
  Result<Memory> MeasureMemory();
  // Returns how far the server's clock (milliseconds since 1970) is ahead of our
  // Clock::MonotonicNs(), exact to half a round trip. The server may be another machine.
  Result<int64_t> ClockLeadNs();

  // Stores keys first .. first + count - 1; without deadlines, keys that stay.
  Status Load(KeyFormat format, const ValuePool& values, uint64_t first, uint64_t count,
              std::optional<Deadlines> deadlines);

 private:
  explicit ExpiryServer(StreamConnection connection) : pipeline_(std::move(connection)) {}

  Result<std::string_view> Info(std::string_view section);

  RespPipeline pipeline_;
};

}  // namespace skep::bench

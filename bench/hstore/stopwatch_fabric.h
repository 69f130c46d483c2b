// stopwatch_fabric.h: a fabric that tells where the time of clients of a pool goes (figure 9).
//
//   client                    hash server                       sorted server
//     | Call ----------------> | Poll                              |
//     |                        |   queue_wait                      |
//     |                        | Call (ship) --------------------> |
//     |                        |   log_sync                        |
//     |                        | <-------------------------------- |
//     |                        |   index_op                        |
//     | <--------------- Reply |                                   |
//     | Post ------------------------------------> memory server: kv_access
//     | Post ----------------> hash server's memory: index_read
//
// The rest of a Call, from the request until an index server's Poll and from its Reply until the
// client's Poll, is rpc: the wire, and waiting for the other thread. A request that needs no
// shipment, as a scan, is index_op from the server's Poll on.
//
// Thread safety: that of the fabric below.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/mutex.h"
#include "rma/fabric.h"

namespace skep::bench {

// Nanoseconds of all requests together.
struct TimeParts {
  uint64_t kv_access = 0;
  uint64_t index_read = 0;
  uint64_t calls = 0;  // rpc is what remains of these
  uint64_t queue_wait = 0;
  uint64_t log_sync = 0;
  uint64_t index_op = 0;

  uint64_t rpc() const {
    const uint64_t at_server = queue_wait + log_sync + index_op;
    return calls > at_server ? calls - at_server : 0;
  }
};
TimeParts operator-(const TimeParts& a, const TimeParts& b);

class StopwatchFabric final : public rma::Fabric {
 public:
  // Outlives its endpoints, and is outlived by `inner` and `clock`.
  StopwatchFabric(rma::Fabric& inner, Clock& clock) : inner_(inner), clock_(clock) {}

  Result<std::unique_ptr<rma::Endpoint>> Open(const rma::EndpointOptions& options) override;
  // Of all endpoints since their begin.
  TimeParts parts() const;

 private:
  friend class StopwatchEndpoint;
  struct Sums {
    std::atomic<uint64_t> kv_access{0};
    std::atomic<uint64_t> index_read{0};
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> queue_wait{0};
    std::atomic<uint64_t> log_sync{0};
    std::atomic<uint64_t> index_op{0};
  };

  bool IsMemoryServer(const Address& address) const {
    const MutexLock lock(mutex_);
    return memory_servers_.contains(address);
  }

  rma::Fabric& inner_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::set<Address> memory_servers_ SKEP_GUARDED_BY(mutex_);
  Sums sums_;
};

}  // namespace skep::bench

// sim_coordinator_wire.h: what lies between the clients and the servers of a simulated coordination
// service: connections, whose messages take time and get lost with all that follows them.
//
// Everything that happens in the service or in a client library is an event with an instant.
// RunDue() runs those that are due in the order of their instants, each at its own: so it makes no
// difference how late, or by whom, it is called.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/random.h"
#include "sim/sim_clock.h"
#include "sim/trace.h"

namespace skep {

struct SimCoordinatorOptions {
  // Each message arrives after a seeded time in this range, behind those before it.
  uint64_t delay_ns_min = 50'000;
  uint64_t delay_ns_max = 2'000'000;
  // How many of a million messages take up to slow_ns_max instead.
  uint32_t slow_ppm = 0;
  uint64_t slow_ns_max = 1'000'000'000;
  // A server learns of a change up to so much later than it was made: reads are old, watches late.
  uint64_t lag_ns_max = 5'000'000;
  // The service ends a session up to so much later than its time-out says.
  uint64_t late_expiry_ns_max = 50'000'000;
  // How many of a million messages are lost, and their connection with them. So a request may be
  // done whose answer is lost.
  uint32_t losses_ppm = 0;
  // How many of a million messages are followed by up to partition_ns_max in which nothing passes
  // between their client and the service.
  uint32_t partitions_ppm = 0;
  uint64_t partition_ns_max = 2'000'000'000;
  // What the service grants.
  uint32_t timeout_ms_min = 400;
  uint32_t timeout_ms_max = 60'000;
};

// What lies between one client and the service.
enum class SimCoordinatorLink : uint8_t {
  kOpen,
  kParted,    // nothing passes
  kOneWay,    // requests pass, answers do not
  kMinority,  // the client's server is cut off from the majority: it answers reads and pings from
              // what it knows, and no request that a majority has to answer
};

// The link, and what comes upon it by itself.
struct SimCoordinatorLinkState {
  SimCoordinatorLink link = SimCoordinatorLink::kOpen;
  uint64_t parted_until_ns = 0;
};

class SimCoordinatorWire {
 public:
  enum Way : uint8_t { kToService = 0, kToClient = 1 };

  // One connection, while it lasts.
  struct Connection {
    std::shared_ptr<SimCoordinatorLinkState> link;
    std::array<bool, 2> is_open = {true, true};  // by Way: what is sent arrives
    std::array<uint64_t, 2> last_arrival_ns = {};
    std::function<void()> on_break;  // tells the client soon, if it is told at all
  };

  SimCoordinatorWire(uint64_t seed, SimClock& clock, Trace& trace,
                     const SimCoordinatorOptions& options)
      : options_(options), clock_(clock), trace_(trace), random_(seed) {}

  // The instant of the event that runs.
  uint64_t now_ns() const { return now_ns_; }
  Random& random() { return random_; }
  const SimCoordinatorOptions& options() const { return options_; }
  void set_options(const SimCoordinatorOptions& options) { options_ = options; }

  void After(uint64_t ns, std::function<void()> event);
  void RunDue();
  // Runs `arrive` when a message that is sent now has arrived, if it does.
  void Carry(const std::shared_ptr<Connection>& connection, Way way, std::function<void()> arrive);
  // Nothing more arrives in either way. The client may be told of it, or has to find out.
  void Break(Connection& connection);

 private:
  void Lose(Connection& connection, Way way);
  bool Passes(const Connection& connection, Way way) const;
  void DrawPartition(Connection& connection);
  uint64_t DrawDelay();

  SimCoordinatorOptions options_;
  SimClock& clock_;
  Trace& trace_;
  SeededRandom random_;
  uint64_t now_ns_ = SimClock::kStartNs;
  bool is_running_ = false;
  std::multimap<uint64_t, std::function<void()>> due_;
};

}  // namespace skep

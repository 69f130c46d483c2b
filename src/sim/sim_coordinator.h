// sim_coordinator.h: a coordination service in memory, in one thread, from a seed, which does to
// its clients what a real one may do.
//
//   SimCoordinatorSession    the client's library: pings, gives up, connects again
//          |
//   SimCoordinatorWire       connections: delays, losses, partitions
//          |
//   SimCoordinator           servers that are behind the majority by up to lag_ns_max; and the
//          |                 majority, which has every change by its number, and the sessions
//   SimNodes                 the nodes, and what a request makes of them
//
// What a client may meet, by seed (SimCoordinatorOptions) or when it is asked for:
//   * a request that was done and whose answer is lost, or that is done after it was answered
//     kUnknown; but not after the session's next connection was accepted (R4 of coordinator.h);
//   * old answers to reads, and watches that fire late, within R3 and W2;
//   * a session that the service ends while its client is parted from it and cannot know;
//   * a server that answers pings and reads although it is cut off from the majority, which ends
//     the session meanwhile (SimCoordinatorLink::kMinority; S4);
//   * a service that is gone, and comes back with all sessions, each with its whole time-out.
//
// Time is the SimClock's; it has a reminder of whatever comes next, and arrivals are noted in the
// trace, so that actors of a Simulation look for events when there may be some.
//
// Thread safety: one owner of the service and all its sessions. The service outlives them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/coordinator.h"
#include "sim/sim_clock.h"
#include "sim/sim_coordinator_session.h"
#include "sim/sim_coordinator_wire.h"
#include "sim/sim_nodes.h"
#include "sim/trace.h"

namespace skep {

class SimCoordinator final : public Coordinator {
 public:
  using Link = SimCoordinatorLink;

  SimCoordinator(uint64_t seed, SimClock& clock, Trace& trace,
                 const SimCoordinatorOptions& options = {});

  Result<std::unique_ptr<CoordinatorSession>> Open(
      const CoordinatorSessionOptions& options) override;

  // From now on, for a session of this service. A process that is killed: part it, and destroy it.
  void SetLink(CoordinatorSession& session, Link link);
  // Breaks its connection; it makes another one.
  void Reset(CoordinatorSession& session);
  // The service ends the session now, as its administrator can.
  void Expire(const CoordinatorSession& session);
  // Whether the service knows it; false before it was connected.
  bool Lives(const CoordinatorSession& session);
  // All servers are gone, and come back.
  void Stop();
  void Start();
  // From now on.
  void set_options(const SimCoordinatorOptions& options) { wire_.set_options(options); }

 private:
  friend class SimCoordinatorSession;
  using ConnectionPtr = SimCoordinatorSession::ConnectionPtr;

  // The nodes after a change, and what it has touched.
  struct Change {
    uint64_t at_ns;
    std::shared_ptr<const SimNodes> nodes;
    std::vector<SimNodes::Touched> touched;
  };
  struct Session {
    uint32_t timeout_ms;
    uint64_t expires_ns;
    ConnectionPtr connection;  // the newest
  };

  SimCoordinatorWire& wire() { return wire_; }

  // What arrives from clients.
  void OnConnect(const ConnectionPtr& connection, uint64_t id, uint32_t timeout_ms, uint64_t seen,
                 const std::vector<SimCoordinatorWatch>& watches);
  void OnRequest(const ConnectionPtr& connection, const CoordinatorRequest& request);
  void OnPing(const ConnectionPtr& connection);
  void OnClose(const ConnectionPtr& connection);

  bool IsCutOff(const ConnectionPtr& connection) const;
  uint64_t OpenSession(uint32_t timeout_ms);
  void AcceptConnection(const ConnectionPtr& connection, uint64_t id, uint64_t seen,
                        const std::vector<SimCoordinatorWatch>& watches);
  void Touch(uint64_t id);
  void CheckExpiry(uint64_t id);
  void EndSession(uint64_t id);
  CoordinatorEvent Do(const ConnectionPtr& connection, const CoordinatorRequest& request);
  void Append(SimNodes nodes, std::vector<SimNodes::Touched> touched);
  void AdvanceLater(uint64_t id);
  uint64_t LaggingView();
  void AdvanceView(const ConnectionPtr& connection, uint64_t view);
  void FireWatches(const ConnectionPtr& connection, const Change& change);
  uint64_t LeaveWatch(const ConnectionPtr& connection, const CoordinatorRequest& read);
  void Tell(const ConnectionPtr& connection, std::function<void(SimCoordinatorSession&)> tell);

  SimCoordinatorWire wire_;
  bool is_serving_ = true;
  std::vector<Change> changes_;  // by number; the first one made the root
  std::map<uint64_t, Session> sessions_;
  uint64_t last_session_ = 0;
  uint64_t last_watch_ = 0;
};

}  // namespace skep

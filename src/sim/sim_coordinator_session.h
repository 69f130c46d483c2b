// sim_coordinator_session.h: the client's side of a session with a simulated coordination service:
// what a client library does in threads of its own.
//
// Follows ZooKeeper's client where its owner can tell the difference:
//   C1  A third of the time-out without anything sent: a ping. Two thirds without anything
//       received: the connection is given up, and another one is made.
//   C2  A connection that is given up is first told (kDisconnected), then whatever has no answer is
//       answered kUnknown. What has been sent may still arrive.
//   C3  A new connection brings the watches along, and the newest change that the client has seen:
//       no server that is behind it takes the client.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/coordinator.h"
#include "sim/sim_coordinator_wire.h"

namespace skep {

class SimCoordinator;

// A watch as both sides know it.
struct SimCoordinatorWatch {
  uint64_t id = 0;
  CoordinatorRequest read;  // what left it
};

class SimCoordinatorSession final : public CoordinatorSession {
 public:
  struct Connection : SimCoordinatorWire::Connection {
    // Of the client's, or null once it has given the connection up.
    SimCoordinatorSession* client = nullptr;
    // Of the server's that has accepted it.
    uint64_t session = 0;
    uint64_t view = 0;   // up to which change its server knows the nodes
    bool stuck = false;  // a request waits for a majority for ever, and so does what follows it
    std::vector<SimCoordinatorWatch> watches;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  SimCoordinatorSession(SimCoordinator& service, const CoordinatorSessionOptions& options);
  ~SimCoordinatorSession() override;

  uint64_t LastContactNs() const override;
  uint64_t id() const override { return id_; }
  uint32_t timeout_ms() const override { return timeout_ms_; }

  SimCoordinatorLinkState& link() { return *link_; }
  const ConnectionPtr& connection() const { return connection_; }

  // What comes from the service; `seen` is the newest change that it shows.
  void OnConnected(uint64_t id, uint32_t timeout_ms, uint64_t seen);
  void OnExpired();
  // `watch`: what the read has left; 0: none.
  void OnAnswer(CoordinatorEvent answer, uint64_t watch, uint64_t seen);
  void OnChanged(uint64_t watch, uint64_t seen);
  void OnPong();

 private:
  struct InFlight {
    CoordinatorRequest request;
    uint64_t sent_ns;
  };

  void Send(CoordinatorRequest request) override;
  std::vector<CoordinatorEvent> Receive() override;

  void Connect();
  void CheckSilence(const ConnectionPtr& connection);
  void GiveUp(const ConnectionPtr& connection);
  void PingLater(const ConnectionPtr& connection);
  void Heard(uint64_t seen);
  void Push(CoordinatorEvent event);
  uint64_t Fraction(uint64_t numerator) const;

  SimCoordinator& service_;
  SimCoordinatorWire& wire_;
  const std::shared_ptr<SimCoordinatorLinkState> link_ =
      std::make_shared<SimCoordinatorLinkState>();
  // Null once this object is destroyed: for events that come later.
  const std::shared_ptr<SimCoordinatorSession*> self_ =
      std::make_shared<SimCoordinatorSession*>(this);
  ConnectionPtr connection_;
  bool is_connected_ = false;
  bool is_expired_ = false;
  uint64_t id_ = 0;
  uint32_t timeout_ms_;
  uint64_t heard_ns_ = 0;
  uint64_t seen_ = 0;
  uint64_t last_contact_ns_ = 0;
  std::deque<InFlight> in_flight_;
  std::vector<SimCoordinatorWatch> watches_;
  std::vector<CoordinatorEvent> events_;
};

}  // namespace skep

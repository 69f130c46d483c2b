#include "sim/sim_coordinator_session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/sim_coordinator.h"

namespace skep {

using Kind = CoordinatorEvent::Kind;

SimCoordinatorSession::SimCoordinatorSession(SimCoordinator& service,
                                             const CoordinatorSessionOptions& options)
    : CoordinatorSession(options.wake),
      service_(service),
      wire_(service.wire()),
      timeout_ms_(options.timeout_ms) {
  Connect();
}

SimCoordinatorSession::~SimCoordinatorSession() {
  wire_.RunDue();
  *self_ = nullptr;
  connection_->client = nullptr;
  if (!is_connected_) return;
  wire_.Carry(connection_, SimCoordinatorWire::kToService,
              [&service = service_, connection = connection_] { service.OnClose(connection); });
}

uint64_t SimCoordinatorSession::LastContactNs() const {
  wire_.RunDue();
  return last_contact_ns_;
}

uint64_t SimCoordinatorSession::Fraction(uint64_t numerator) const {
  return timeout_ms_ * uint64_t{1'000'000} * numerator / 3;
}

void SimCoordinatorSession::Connect() {
  connection_ = std::make_shared<Connection>();
  connection_->link = link_;
  connection_->client = this;
  connection_->on_break = [self = self_, weak = std::weak_ptr(connection_)] {
    if (*self != nullptr) (*self)->GiveUp(weak.lock());
  };
  heard_ns_ = wire_.now_ns();
  wire_.Carry(connection_, SimCoordinatorWire::kToService, [this, connection = connection_] {
    if (connection->client == nullptr) return;
    service_.OnConnect(connection, id_, timeout_ms_, seen_, watches_);
  });
  CheckSilence(connection_);
}

// C1. Comes again whenever the connection could have been silent for too long.
void SimCoordinatorSession::CheckSilence(const ConnectionPtr& connection) {
  const uint64_t due_ns = heard_ns_ + Fraction(2);
  if (wire_.now_ns() >= due_ns) return GiveUp(connection);
  wire_.After(due_ns - wire_.now_ns(), [self = self_, connection] {
    if (*self != nullptr && connection->client != nullptr) (*self)->CheckSilence(connection);
  });
}

// C2.
void SimCoordinatorSession::GiveUp(const ConnectionPtr& connection) {
  if (connection == nullptr || connection->client == nullptr) return;
  connection->client = nullptr;
  connection->is_open[SimCoordinatorWire::kToClient] = false;
  if (std::exchange(is_connected_, false)) {
    Push({.kind = Kind::kDisconnected, .at_ns = wire_.now_ns()});
  }
  for (const InFlight& lost : in_flight_) {
    Push({.token = lost.request.token, .outcome = CoordinatorOutcome::kUnknown});
  }
  in_flight_.clear();
  wire_.After(1 + wire_.random().Below(Fraction(1) / 20), [self = self_] {
    if (*self != nullptr) (*self)->Connect();
  });
}

void SimCoordinatorSession::PingLater(const ConnectionPtr& connection) {
  wire_.After(Fraction(1), [self = self_, connection] {
    if (*self == nullptr || connection->client == nullptr) return;
    SimCoordinatorSession& client = **self;
    client.wire_.Carry(connection, SimCoordinatorWire::kToService,
                       [&service = client.service_, connection] { service.OnPing(connection); });
    client.PingLater(connection);
  });
}

void SimCoordinatorSession::Heard(uint64_t seen) {
  heard_ns_ = wire_.now_ns();
  seen_ = std::max(seen_, seen);
}

void SimCoordinatorSession::Push(CoordinatorEvent event) {
  events_.push_back(std::move(event));
  Wake();
}

void SimCoordinatorSession::OnConnected(uint64_t id, uint32_t timeout_ms, uint64_t seen) {
  Heard(seen);
  id_ = id;
  timeout_ms_ = timeout_ms;
  is_connected_ = true;
  Push({.kind = Kind::kConnected, .at_ns = wire_.now_ns()});
  PingLater(connection_);
}

void SimCoordinatorSession::OnExpired() {
  is_expired_ = true;
  connection_->client = nullptr;
  watches_.clear();
  Push({.kind = Kind::kExpired, .at_ns = wire_.now_ns()});
}

void SimCoordinatorSession::OnAnswer(CoordinatorEvent answer, uint64_t watch, uint64_t seen) {
  Heard(seen);
  SKEP_CHECK(!in_flight_.empty() && in_flight_.front().request.token == answer.token);
  const InFlight asked = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (asked.request.is_confirming()) last_contact_ns_ = std::max(last_contact_ns_, asked.sent_ns);
  if (watch != 0) watches_.push_back({.id = watch, .read = asked.request});
  Push(std::move(answer));
}

void SimCoordinatorSession::OnChanged(uint64_t watch, uint64_t seen) {
  Heard(seen);
  const auto found = std::ranges::find(watches_, watch, &SimCoordinatorWatch::id);
  SKEP_CHECK(found != watches_.end());
  Push({.kind = Kind::kChanged, .token = found->read.token});
  watches_.erase(found);
}

void SimCoordinatorSession::OnPong() { Heard(0); }

void SimCoordinatorSession::Send(CoordinatorRequest request) {
  wire_.RunDue();
  if (!is_connected_) return AnswerUnsent(request.token, CoordinatorOutcome::kNotSent);
  in_flight_.push_back({.request = request, .sent_ns = wire_.now_ns()});
  wire_.Carry(connection_, SimCoordinatorWire::kToService,
              [&service = service_, connection = connection_, request] {
                service.OnRequest(connection, request);
              });
}

std::vector<CoordinatorEvent> SimCoordinatorSession::Receive() {
  wire_.RunDue();
  return std::exchange(events_, {});
}

}  // namespace skep

#include "sim/sim_coordinator.h"

#include <algorithm>
#include <utility>

namespace skep {
namespace {

constexpr auto kToClient = SimCoordinatorWire::kToClient;

bool Fires(const SimCoordinatorWatch& watch, const SimNodes::Touched& touched) {
  const bool is_of_children = watch.read.kind == CoordinatorRequest::Kind::kChildren;
  return watch.read.path == touched.path && (is_of_children ? touched.children : touched.bytes);
}

bool Fires(const SimCoordinatorWatch& watch, const std::vector<SimNodes::Touched>& touched) {
  return std::ranges::any_of(touched, [&](const auto& one) { return Fires(watch, one); });
}

}  // namespace

SimCoordinator::SimCoordinator(uint64_t seed, SimClock& clock, Trace& trace,
                               const SimCoordinatorOptions& options)
    : wire_(seed, clock, trace, options) {
  Append(SimNodes(), {});
}

Result<std::unique_ptr<CoordinatorSession>> SimCoordinator::Open(
    const CoordinatorSessionOptions& options) {
  if (options.timeout_ms == 0) {
    return Fail(Code::kInvalidArgument, "a coordinator's session needs a time-out");
  }
  wire_.RunDue();
  return std::make_unique<SimCoordinatorSession>(*this, options);
}

void SimCoordinator::SetLink(CoordinatorSession& session, Link link) {
  wire_.RunDue();
  auto& client = static_cast<SimCoordinatorSession&>(session);
  const ConnectionPtr& connection = client.connection();
  // A server that finds the majority again drops the clients whose requests it did not pass on, and
  // those whose sessions have ended.
  if (IsCutOff(connection) && link != Link::kMinority &&
      (connection->stuck || !sessions_.contains(connection->session))) {
    wire_.Break(*connection);
  }
  client.link().link = link;
  AdvanceLater(connection->session);
}

void SimCoordinator::Reset(CoordinatorSession& session) {
  wire_.RunDue();
  wire_.Break(*static_cast<SimCoordinatorSession&>(session).connection());
}

void SimCoordinator::Expire(const CoordinatorSession& session) {
  wire_.RunDue();
  EndSession(session.id());
}

bool SimCoordinator::Lives(const CoordinatorSession& session) {
  wire_.RunDue();
  return sessions_.contains(session.id());
}

void SimCoordinator::Stop() {
  wire_.RunDue();
  is_serving_ = false;
  for (auto& [id, session] : sessions_) wire_.Break(*session.connection);
}

void SimCoordinator::Start() {
  wire_.RunDue();
  is_serving_ = true;
  for (auto& [id, session] : sessions_) Touch(id);
}

bool SimCoordinator::IsCutOff(const ConnectionPtr& connection) const {
  return connection->link->link == Link::kMinority;
}

void SimCoordinator::OnConnect(const ConnectionPtr& connection, uint64_t id, uint32_t timeout_ms,
                               uint64_t seen, const std::vector<SimCoordinatorWatch>& watches) {
  if (!is_serving_ || IsCutOff(connection)) return wire_.Break(*connection);
  if (id == 0) id = OpenSession(timeout_ms);
  if (!sessions_.contains(id)) {
    return Tell(connection, [](SimCoordinatorSession& client) { client.OnExpired(); });
  }
  AcceptConnection(connection, id, seen, watches);
}

uint64_t SimCoordinator::OpenSession(uint32_t timeout_ms) {
  const SimCoordinatorOptions& options = wire_.options();
  const uint32_t granted = std::clamp(timeout_ms, options.timeout_ms_min, options.timeout_ms_max);
  sessions_.emplace(++last_session_, Session{.timeout_ms = granted, .expires_ns = 0});
  return last_session_;
}

// What an older connection of the session still carries is not done any more.
void SimCoordinator::AcceptConnection(const ConnectionPtr& connection, uint64_t id, uint64_t seen,
                                      const std::vector<SimCoordinatorWatch>& watches) {
  Session& session = sessions_.at(id);
  if (session.connection != nullptr) session.connection->is_open = {false, false};
  session.connection = connection;
  Touch(id);
  connection->session = id;
  connection->watches = watches;
  connection->view = seen;
  const uint64_t view = std::max(seen, LaggingView());
  Tell(connection, [id, timeout_ms = session.timeout_ms, seen](SimCoordinatorSession& client) {
    client.OnConnected(id, timeout_ms, seen);
  });
  AdvanceView(connection, view);
  AdvanceLater(id);
}

void SimCoordinator::Touch(uint64_t id) {
  Session& session = sessions_.at(id);
  const uint64_t late_ns = wire_.random().Below(wire_.options().late_expiry_ns_max + 1);
  const uint64_t timeout_ns = session.timeout_ms * uint64_t{1'000'000} + late_ns;
  session.expires_ns = std::max(session.expires_ns, wire_.now_ns() + timeout_ns);
  wire_.After(session.expires_ns - wire_.now_ns(), [this, id] { CheckExpiry(id); });
}

void SimCoordinator::CheckExpiry(uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !is_serving_) return;
  if (found->second.expires_ns <= wire_.now_ns()) EndSession(id);
}

void SimCoordinator::EndSession(uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const ConnectionPtr connection = std::move(found->second.connection);
  sessions_.erase(found);
  // A server that is cut off does not hear of it.
  if (connection != nullptr && !IsCutOff(connection)) wire_.Break(*connection);
  SimNodes nodes = *changes_.back().nodes;
  std::vector<SimNodes::Touched> touched;
  nodes.EndSession(id, touched);
  Append(std::move(nodes), std::move(touched));
}

void SimCoordinator::OnPing(const ConnectionPtr& connection) {
  if (!IsCutOff(connection)) Touch(connection->session);
  Tell(connection, [](SimCoordinatorSession& client) { client.OnPong(); });
}

void SimCoordinator::OnClose(const ConnectionPtr& connection) {
  if (!IsCutOff(connection)) EndSession(connection->session);
}

void SimCoordinator::OnRequest(const ConnectionPtr& connection, const CoordinatorRequest& request) {
  if (IsCutOff(connection)) {
    connection->stuck |= request.is_confirming();
  } else {
    Touch(connection->session);
  }
  if (connection->stuck) return;
  CoordinatorEvent answer = Do(connection, request);
  const bool leaves_watch = request.watch && answer.outcome == CoordinatorOutcome::kDone;
  const uint64_t watch = leaves_watch ? LeaveWatch(connection, request) : 0;
  Tell(connection, [answer = std::move(answer), watch, seen = connection->view](
                       SimCoordinatorSession& client) { client.OnAnswer(answer, watch, seen); });
}

CoordinatorEvent SimCoordinator::Do(const ConnectionPtr& connection,
                                    const CoordinatorRequest& request) {
  if (!request.is_confirming()) {
    if (!IsCutOff(connection)) AdvanceView(connection, LaggingView());
    return changes_[connection->view].nodes->Read(request);
  }
  SimNodes nodes = *changes_.back().nodes;
  std::vector<SimNodes::Touched> touched;
  CoordinatorEvent answer = nodes.Do(request, connection->session, touched);
  if (!touched.empty()) Append(std::move(nodes), std::move(touched));
  AdvanceView(connection, changes_.size() - 1);
  return answer;
}

void SimCoordinator::Append(SimNodes nodes, std::vector<SimNodes::Touched> touched) {
  changes_.push_back({.at_ns = wire_.now_ns(),
                      .nodes = std::make_shared<const SimNodes>(std::move(nodes)),
                      .touched = std::move(touched)});
  for (const auto& [id, session] : sessions_) AdvanceLater(id);
}

// The session's server, whichever it is then, learns of what is so now.
void SimCoordinator::AdvanceLater(uint64_t id) {
  const uint64_t lag_ns = wire_.random().Below(wire_.options().lag_ns_max + 1);
  wire_.After(lag_ns, [this, id, view = changes_.size() - 1] {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || IsCutOff(found->second.connection)) return;
    AdvanceView(found->second.connection, view);
  });
}

// What a server may know now, if it is behind by a seeded time.
uint64_t SimCoordinator::LaggingView() {
  const uint64_t lag_ns = wire_.random().Below(wire_.options().lag_ns_max + 1);
  const uint64_t known_ns = wire_.now_ns() - std::min(lag_ns, wire_.now_ns());
  const auto unknown = std::ranges::upper_bound(changes_, known_ns, {}, &Change::at_ns);
  return unknown == changes_.begin() ? 0 : static_cast<uint64_t>(unknown - changes_.begin()) - 1;
}

void SimCoordinator::AdvanceView(const ConnectionPtr& connection, uint64_t view) {
  while (connection->view < view) FireWatches(connection, changes_[++connection->view]);
}

void SimCoordinator::FireWatches(const ConnectionPtr& connection, const Change& change) {
  std::vector<SimCoordinatorWatch>& watches = connection->watches;
  for (const SimCoordinatorWatch& watch : watches) {
    if (!Fires(watch, change.touched)) continue;
    Tell(connection, [id = watch.id, seen = connection->view](SimCoordinatorSession& client) {
      client.OnChanged(id, seen);
    });
  }
  std::erase_if(watches, [&](const auto& watch) { return Fires(watch, change.touched); });
}

uint64_t SimCoordinator::LeaveWatch(const ConnectionPtr& connection,
                                    const CoordinatorRequest& read) {
  connection->watches.push_back({.id = ++last_watch_, .read = read});
  return last_watch_;
}

void SimCoordinator::Tell(const ConnectionPtr& connection,
                          std::function<void(SimCoordinatorSession&)> tell) {
  wire_.Carry(connection, kToClient, [connection, tell = std::move(tell)] {
    if (connection->client != nullptr) tell(*connection->client);
  });
}

}  // namespace skep

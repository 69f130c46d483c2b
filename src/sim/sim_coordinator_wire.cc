#include "sim/sim_coordinator_wire.h"

#include <algorithm>
#include <utility>

namespace skep {

void SimCoordinatorWire::After(uint64_t ns, std::function<void()> event) {
  const uint64_t at_ns = now_ns_ + ns;
  due_.emplace(at_ns, std::move(event));
  clock_.Remind(at_ns);
}

void SimCoordinatorWire::RunDue() {
  if (is_running_) return;
  is_running_ = true;
  const uint64_t until_ns = clock_.MonotonicNs();
  while (!due_.empty() && due_.begin()->first <= until_ns) {
    auto due = due_.extract(due_.begin());
    now_ns_ = due.key();
    due.mapped()();
  }
  now_ns_ = until_ns;
  is_running_ = false;
}

void SimCoordinatorWire::Carry(const std::shared_ptr<Connection>& connection, Way way,
                               std::function<void()> arrive) {
  uint64_t& last_ns = connection->last_arrival_ns[way];
  last_ns = std::max(last_ns, now_ns_ + DrawDelay());
  DrawPartition(*connection);
  const bool leaves = Passes(*connection, way);
  After(last_ns - now_ns_, [this, connection, way, leaves, arrive = std::move(arrive)] {
    if (!connection->is_open[way]) return;
    if (!leaves || !Passes(*connection, way)) {
      connection->is_open[way] = false;  // a stream has no holes: nothing arrives behind this one
      return;
    }
    if (random_.Chance(options_.losses_ppm, 1'000'000)) return Lose(*connection, way);
    trace_.Note(Trace::Event::kCoordinator, way, now_ns_);
    arrive();
  });
}

// If it is an answer that is lost, what the client has sent may still arrive.
void SimCoordinatorWire::Lose(Connection& connection, Way way) {
  Break(connection);
  connection.is_open[kToService] = way == kToClient && random_.Chance(1, 2);
}

void SimCoordinatorWire::Break(Connection& connection) {
  connection.is_open = {false, false};
  if (connection.on_break && random_.Chance(1, 2) && Passes(connection, kToClient)) {
    After(DrawDelay(), connection.on_break);
  }
}

bool SimCoordinatorWire::Passes(const Connection& connection, Way way) const {
  const SimCoordinatorLinkState& state = *connection.link;
  if (state.link == SimCoordinatorLink::kParted || now_ns_ < state.parted_until_ns) return false;
  return way == kToService || state.link != SimCoordinatorLink::kOneWay;
}

void SimCoordinatorWire::DrawPartition(Connection& connection) {
  if (!random_.Chance(options_.partitions_ppm, 1'000'000)) return;
  connection.link->parted_until_ns = now_ns_ + 1 + random_.Below(options_.partition_ns_max);
}

uint64_t SimCoordinatorWire::DrawDelay() {
  if (random_.Chance(options_.slow_ppm, 1'000'000)) return random_.Below(options_.slow_ns_max + 1);
  return options_.delay_ns_min + random_.Below(options_.delay_ns_max - options_.delay_ns_min + 1);
}

}  // namespace skep

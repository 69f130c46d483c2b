// A process that holds an ephemeral node of ZooKeeper until it is killed:
//
//   coordinator_holder SERVERS PATH TIMEOUT_MS
//
// Prints "ready" whenever the node is there. A busy machine may cost it a connection, or a session:
// then it makes the node again.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "zookeeper/zookeeper_coordinator.h"

namespace skep {
namespace {

// Returns when the session has ended.
void HoldBy(CoordinatorSession& session, const char* path) {
  while (session.state() != CoordinatorSession::State::kExpired) {
    for (const CoordinatorEvent& event : session.TakeEvents()) {
      if (event.kind == CoordinatorEvent::Kind::kConnected) {
        session.Create(1, path, "", CoordinatorNode::kEphemeral);
      }
      // A node that exists is the session's own: the answer of an earlier Create was lost.
      if (event.kind == CoordinatorEvent::Kind::kAnswer &&
          (event.outcome == CoordinatorOutcome::kDone ||
           event.outcome == CoordinatorOutcome::kExists)) {
        std::puts("ready");
        std::fflush(stdout);
      }
    }
    usleep(10'000);
  }
}

int Hold(const char* servers, const char* path, uint32_t timeout_ms) {
  ZooKeeperCoordinator coordinator(servers);
  while (auto session = coordinator.Open({.timeout_ms = timeout_ms})) HoldBy(**session, path);
  return 1;
}

}  // namespace
}  // namespace skep

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return skep::Hold(argv[1], argv[2], static_cast<uint32_t>(std::atoi(argv[3])));
}
